// SPDX-License-Identifier: Apache-2.0

package dmesg

import "strings"

// cutStamp is what stamps find in lines of the two commonest forms, of dmesg and of the
// journal; false for any other line. Most of a long log is such lines, and the
// expressions took a third of the time in which one is read.
func cutStamp(line string) (time, rest string, ok bool) {
	if time, rest, ok = cutUptime(line); ok {
		return time, trimOneSpace(rest), true
	}
	const form = "Mmm dd hh:mm:ss "
	if len(line) < len(form) || !fits(line[:len(form)], form) {
		return "", "", false
	}
	time, rest = line[:len(form)-1], line[len(form):]
	host := strings.IndexAny(rest, " \t\n\f\r")
	if host < 1 {
		return "", "", false
	}
	rest, ok = strings.CutPrefix(rest[host:], " kernel:")
	if !ok || trimOneSpace(rest) == rest {
		return "", "", false
	}
	rest = trimOneSpace(rest)
	if _, text, ok := cutUptime(rest); ok && trimOneSpace(text) != text {
		rest = trimOneSpace(text)
	}
	return time, rest, true
}

// cutUptime takes "[   12.345678]" off a line.
func cutUptime(line string) (time, rest string, ok bool) {
	if !strings.HasPrefix(line, "[") {
		return "", "", false
	}
	begin := len(line) - len(strings.TrimLeft(line[1:], " "))
	dot := begin + digits(line[begin:])
	if dot == begin || !strings.HasPrefix(line[dot:], ".") {
		return "", "", false
	}
	end := dot + 1 + digits(line[dot+1:])
	if end == dot+1 || !strings.HasPrefix(line[end:], "]") {
		return "", "", false
	}
	return line[begin:end], line[end+1:], true
}

// digits returns how many digits a text begins with.
func digits(s string) int {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return i
		}
	}
	return len(s)
}

// trimOneSpace takes off what \s? matches.
func trimOneSpace(s string) string {
	if s != "" && strings.IndexByte(" \t\n\f\r", s[0]) >= 0 {
		return s[1:]
	}
	return s
}

// fits reports whether a text has the form of a time: M and m stand for letters, d, h and
// s and the m of minutes for digits, and the first d also for a blank.
func fits(s, form string) bool {
	for i := range len(form) {
		letter, digit := 'a' <= s[i]|0x20 && s[i]|0x20 <= 'z', '0' <= s[i] && s[i] <= '9'
		switch {
		case i < 3:
			if !letter {
				return false
			}
		case form[i] == ' ', form[i] == ':':
			if s[i] != form[i] {
				return false
			}
		case !digit && (i != 4 || s[i] != ' '):
			return false
		}
	}
	return true
}
