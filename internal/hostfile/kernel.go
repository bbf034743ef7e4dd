// SPDX-License-Identifier: Apache-2.0

package hostfile

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// Matches reports whether a name is one of these, which may have stars.
func Matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// HoldInStatus sets installed packages whose names match on hold in dpkg's status file, as
// `apt-mark hold` does in a system that runs, and returns their names. dpkg must not run.
func HoldInStatus(status []byte, patterns []string) (out []byte, held []string) {
	const from, to = "Status: install ok installed\n", "Status: hold ok installed\n"
	out = make([]byte, 0, len(status)+1024)
	name := ""
	for line := range bytes.Lines(status) {
		text := string(line)
		if n, ok := strings.CutPrefix(text, "Package: "); ok {
			name = strings.TrimSpace(n)
		}
		switch {
		case text == "\n":
			name = ""
		case (text == from || text == to) && Matches(name, patterns): // Package comes first in every stanza
			held, line = append(held, name), []byte(to)
		}
		out = append(out, line...)
	}
	return out, held
}

// DnfConf is the main configuration of dnf.
const DnfConf = "etc/dnf/dnf.conf"

// Exclude adds patterns to what dnf leaves alone, in the main section of its
// configuration, or takes them out of it. What stands there otherwise stays.
func Exclude(conf string, patterns []string, exclude bool) string {
	lines := strings.SplitAfter(conf, "\n")
	main, at := -1, -1
	section := ""
	for i, line := range lines {
		text := strings.TrimSpace(line)
		key, _, _ := strings.Cut(text, "=")
		switch key = strings.TrimSpace(key); {
		case strings.HasPrefix(text, "["):
			if section = text; section == "[main]" && main < 0 {
				main = i
			}
		case section == "[main]" && (key == "excludepkgs" || key == "exclude") && strings.Contains(text, "="):
			at = i
		}
	}
	if at >= 0 {
		return excludeInLine(lines, at, patterns, exclude)
	}
	if !exclude {
		return conf
	}
	line := "excludepkgs=" + strings.Join(patterns, " ") + "\n"
	if main < 0 {
		return "[main]\n" + line + conf
	}
	if !strings.HasSuffix(lines[main], "\n") {
		lines[main] += "\n"
	}
	return strings.Join(slices.Insert(lines, main+1, line), "")
}

// excludeInLine changes the line that is there.
func excludeInLine(lines []string, at int, patterns []string, exclude bool) string {
	key, value, _ := strings.Cut(strings.TrimRight(lines[at], "\r\n"), "=")
	list := strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
	list = slices.DeleteFunc(list, func(p string) bool { return !exclude && slices.Contains(patterns, p) })
	for _, p := range patterns {
		if exclude && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return strings.Join(slices.Delete(lines, at, at+1), "")
	}
	lines[at] = strings.TrimSpace(key) + "=" + strings.Join(list, " ") + "\n"
	return strings.Join(lines, "")
}
