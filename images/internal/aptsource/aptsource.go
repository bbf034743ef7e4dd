// SPDX-License-Identifier: Apache-2.0

// Package aptsource reads where the packages of a system come from.
package aptsource

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Read returns the package archives of the root file system of an apt system in the
// one-line format of sources.list(5), sorted, without options. read reads a small text
// file below the root; one that is not there is fs.ErrNotExist.
func Read(root fs.FS, read func(name string) (string, error)) (string, error) {
	names, err := fs.Glob(root, "etc/apt/sources.list.d/*")
	if err != nil {
		return "", err
	}
	var all []string
	for _, name := range append([]string{"etc/apt/sources.list"}, names...) {
		stanzas := strings.HasSuffix(name, ".sources")
		if !stanzas && !strings.HasSuffix(name, ".list") {
			continue
		}
		text, err := read(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", err
		case stanzas:
			all = append(all, fromStanzas(text)...)
		default:
			all = append(all, fromLines(text)...)
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "\n") + "\n", nil
}

// fromLines reads the one-line format.
func fromLines(text string) (all []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "deb" {
			continue
		}
		words = words[1:]
		if strings.HasPrefix(words[0], "[") {
			end := slices.IndexFunc(words, func(w string) bool { return strings.HasSuffix(w, "]") })
			words = words[end+1:]
		}
		if len(words) >= 2 {
			all = append(all, "deb "+strings.Join(words, " "))
		}
	}
	return all
}

// fromStanzas reads the deb822 format.
func fromStanzas(text string) (all []string) {
	for _, stanza := range strings.Split(strings.ReplaceAll(text, "\r", ""), "\n\n") {
		fields, last := map[string]string{}, ""
		for line := range strings.Lines(stanza) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			if line[0] == ' ' || line[0] == '\t' {
				fields[last] += " " + strings.TrimSpace(line)
			} else if key, value, ok := strings.Cut(line, ":"); ok {
				last = strings.ToLower(key)
				fields[last] = strings.TrimSpace(value)
			}
		}
		if !slices.Contains(strings.Fields(fields["types"]), "deb") || strings.EqualFold(fields["enabled"], "no") {
			continue
		}
		for _, uri := range strings.Fields(fields["uris"]) {
			for _, suite := range strings.Fields(fields["suites"]) {
				all = append(all, strings.TrimSpace(fmt.Sprintf("deb %s %s %s", uri, suite, fields["components"])))
			}
		}
	}
	return all
}
