// SPDX-License-Identifier: Apache-2.0

package nccllog

import "strings"

// ParseInfo takes a line apart that is nothing but what one rank says at level INFO, in the
// form that all but a few lines of a log have: "host:1234:5678 [0] NCCL INFO text".
// It is false for a line of any other form; what such a line is, the expressions say.
func ParseInfo(line string) (host, text string, ok bool) {
	host, rest, ok := strings.Cut(line, ":")
	if !ok || host == "" || !isName(host) {
		return "", "", false
	}
	for _, end := range []string{":", " ["} {
		var digits string
		if digits, rest, ok = strings.Cut(rest, end); !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
			return "", "", false
		}
	}
	device, text, ok := strings.Cut(rest, "] NCCL INFO ")
	if !ok || strings.Trim(device, "0123456789") != "" || strings.Contains(text, "NCCL ") || strings.Contains(text, "\n") {
		return "", "", false
	}
	return host, text, true
}

// isName reports whether a word can be the name of a host.
func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '.' && c != '_') {
			return false
		}
	}
	return true
}
