// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"slices"
	"strings"
)

// maxLicenses bounds what a package may declare: with more, nobody could read it.
const maxLicenses = 200

// licenseOfCopyright is the licence of a copyright file in Debian's machine-readable form
// (copyright-format 1.0): those of all its files, joined by AND. A file in another form, or
// with a licence that has no short name, says nothing.
func licenseOfCopyright(text string) string {
	stanzas := strings.Split(strings.ReplaceAll(text, "\r", ""), "\n\n")
	if !strings.Contains(field(stanzas[0], "Format"), "/copyright-format/1") {
		return ""
	}
	var all []string
	for _, s := range stanzas[1:] {
		if field(s, "Files") == "" {
			continue // the text of a licence, which files name
		}
		e := expressionOf(field(s, "License"))
		if e == "" {
			return ""
		}
		if strings.Contains(e, " OR ") {
			all = append(all, e)
		} else { // licences that all hold, each of which other files may have too
			all = append(all, strings.Split(strings.NewReplacer("(", "", ")", "").Replace(e), " AND ")...)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) == 0 || len(all) > maxLicenses {
		return ""
	}
	if len(all) > 1 {
		for i, e := range all {
			if strings.Contains(e, " OR ") {
				all[i] = "(" + e + ")"
			}
		}
	}
	return strings.Join(all, " AND ")
}

// field is the first line of a field of a stanza; for Files, what follows counts as well.
func field(stanza, name string) string {
	lines := strings.Split(strings.TrimLeft(stanza, "\n"), "\n")
	for i, line := range lines {
		key, value, ok := strings.Cut(line, ":")
		if !ok || !strings.EqualFold(key, name) {
			continue
		}
		if value = strings.TrimSpace(value); value == "" && name == "Files" && i+1 < len(lines) {
			value = strings.TrimSpace(lines[i+1])
		}
		return value
	}
	return ""
}
