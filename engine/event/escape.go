// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes text from outside safe to show on a terminal, in a log line or in
// a page of plain text: control characters (also the C1 set and DEL), bytes that
// are not UTF-8, line separators, and the marks that turn the direction of
// writing are shown as \n, \t, \x1b or \u202e. Nothing that is printable
// changes.
func Escape(s string) string {
	if !strings.ContainsFunc(s, isUnsafeRune) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !isUnsafeRune(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// isUnsafeRune reports whether r may move the cursor, colour, hide or reorder text.
func isUnsafeRune(r rune) bool {
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}
