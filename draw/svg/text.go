// SPDX-License-Identifier: Apache-2.0

package svg

import (
	"strings"
	"unicode/utf8"
)

// widths are the advances of the printable ASCII characters from space on, in
// thousandths of the size. They are those of DejaVu Sans, which is the widest of
// the fonts that a viewer is likely to take for FontFamily: what fits by them
// fits in Arial, Helvetica and Liberation Sans as well.
var widths = [...]uint16{
	318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
	636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
	1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
	603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
	500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
	635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
}

// FontFamily is the family of all text.
const FontFamily = "Arial, Liberation Sans, Helvetica, DejaVu Sans, sans-serif"

const ellipsis = "…"

// advanceOf returns the width of one character in thousandths of the size; of those
// outside the table it is the most that such characters have.
func advanceOf(r rune) float64 {
	switch {
	case r >= ' ' && int(r-' ') < len(widths):
		return float64(widths[r-' '])
	case r < 0x250: // Latin with accents, · and ×
		return 840
	default:
		return 1000
	}
}

// TextWidth returns how wide s is drawn at most, in user units.
func TextWidth(s string, f Font) float64 {
	sum := 0.0
	for _, r := range s {
		sum += advanceOf(r)
	}
	return scaleOf(f) * sum
}

// scaleOf is user units per thousandth; bold is wider by up to 13%.
func scaleOf(f Font) float64 {
	if f.Bold {
		return f.size() / 1000 * 1.13
	}
	return f.size() / 1000
}

// ClipText shortens s to w units; what was cut is an ellipsis.
func ClipText(s string, f Font, w float64) string {
	if TextWidth(s, f) <= w {
		return s
	}
	room := w/scaleOf(f) - advanceOf('…')
	for i, r := range s {
		if room -= advanceOf(r); room < 0 {
			if i == 0 {
				return ""
			}
			return strings.TrimRight(s[:i], " ·-") + ellipsis
		}
	}
	return s
}

// appendEscaped appends s as text or attribute value of XML. Characters that XML 1.0
// section 2.2 forbids, and those that reorder or hide text (Unicode UAX #9, UTR
// #36), become U+FFFD.
func appendEscaped(b []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '&':
			b = append(b, "&amp;"...)
		case r == '<':
			b = append(b, "&lt;"...)
		case r == '>':
			b = append(b, "&gt;"...)
		case r == '"':
			b = append(b, "&#34;"...)
		case r == '\t' || r == '\n' || r == '\r':
			b = append(b, ' ')
		case r < ' ' || isHidden(r):
			b = utf8.AppendRune(b, utf8.RuneError)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

// EscapeText returns s as text of XML or HTML, as drawings write it.
func EscapeText(s string) string { return string(appendEscaped(nil, s)) }

// isHidden are control characters, those that change the direction of text or
// have no width, and those that are no characters.
func isHidden(r rune) bool {
	switch {
	case r >= 0x7f && r <= 0x9f, r == 0xad, r == 0x61c:
	case r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
	case r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r&0xfffe == 0xfffe, r >= 0xfdd0 && r <= 0xfdef:
	case r >= 0xe0000 && r <= 0xe0fff:
	default:
		return false
	}
	return true
}

// ElementID makes a name into an id of the document: letters, digits, "-" and "." stay,
// each other byte becomes "_" and two hexadecimal digits, so that two names never
// have one id.
func ElementID(kind, name string) string {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, len(kind)+1+len(name))
	b = append(append(b, kind...), '-')
	for i := range len(name) {
		switch ch := name[i]; {
		case ch >= 'a' && ch <= 'z', ch >= 'A' && ch <= 'Z', ch >= '0' && ch <= '9', ch == '-', ch == '.':
			b = append(b, ch)
		default:
			b = append(b, '_', hex[ch>>4], hex[ch&15])
		}
	}
	return string(b)
}
