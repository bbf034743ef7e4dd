// SPDX-License-Identifier: Apache-2.0

package diag

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// excerptLines is the most source lines of one subject that are shown.
const excerptLines = 4

// excerptWidth is the most characters of a source line that are shown.
const excerptWidth = 160

// Files holds the source of each file by its name, for excerpts. A file that is
// missing is shown without one.
type Files map[string][]byte

// WriteText writes l for a person: severity, summary, check, place, excerpt with
// the subject underlined, further places, detail wrapped to width columns (0: not
// wrapped). Control characters of the source never reach the terminal.
func WriteText(w io.Writer, l List, files Files, width int) error {
	var b bytes.Buffer
	for i, d := range l {
		if i > 0 {
			b.WriteByte('\n')
		}
		writeOne(&b, d, files, width)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func writeOne(b *bytes.Buffer, d Diagnostic, files Files, width int) {
	fmt.Fprintf(b, "%s: %s [%s]\n", d.Severity, Clean(d.Summary), d.Check)
	if d.Subject != nil {
		writeExcerpt(b, *d.Subject, d.Context, files)
	}
	for _, r := range d.Related {
		fmt.Fprintf(b, "  %s:\n", Clean(r.Message))
		writeExcerpt(b, r.Range, nil, files)
	}
	for _, line := range wrapText(Clean(d.Detail), width-2) {
		fmt.Fprintf(b, "  %s\n", line)
	}
}

// writeExcerpt writes the place and its lines, the header of the block first when
// it lies on another line.
func writeExcerpt(b *bytes.Buffer, r Range, context *Range, files Files) {
	fmt.Fprintf(b, "  %s:%d:%d\n", Clean(r.File), r.Start.Line, r.Start.Column)
	src, ok := files[r.File]
	if !ok || r.Start.Byte > len(src) {
		return
	}
	if context != nil && context.File == r.File && context.Start.Line < r.Start.Line {
		if line, _ := lineAt(src, context.Start.Byte); line != "" {
			fmt.Fprintf(b, "  %5d | %s\n", context.Start.Line, cutExcerpt(Clean(line)))
		}
	}
	at := r.Start.Byte
	for n := r.Start.Line; n <= r.End.Line && n < r.Start.Line+excerptLines; n++ {
		line, start := lineAt(src, at)
		fmt.Fprintf(b, "  %5d | %s\n", n, cutExcerpt(Clean(line)))
		if n == r.Start.Line {
			writeUnderline(b, line, r.Start.Byte-start, r.End.Byte-start)
		}
		at = start + len(line) + 1
		if at > len(src) {
			return
		}
	}
}

// writeUnderline marks the bytes from..to of line.
func writeUnderline(b *bytes.Buffer, line string, from, to int) {
	from, to = min(max(from, 0), len(line)), min(max(to, 0), len(line))
	lead := utf8.RuneCountInString(Clean(line[:from]))
	n := max(1, utf8.RuneCountInString(Clean(line[from:max(from, to)])))
	if lead >= excerptWidth {
		return
	}
	fmt.Fprintf(b, "        | %s%s\n", strings.Repeat(" ", lead), strings.Repeat("^", min(n, excerptWidth-lead)))
}

// lineAt returns the line that contains byte at, and where it starts.
func lineAt(src []byte, at int) (string, int) {
	at = min(max(at, 0), len(src))
	start := bytes.LastIndexByte(src[:at], '\n') + 1
	end := bytes.IndexByte(src[at:], '\n')
	if end < 0 {
		end = len(src)
	} else {
		end += at
	}
	return strings.TrimSuffix(string(src[start:end]), "\r"), start
}

func cutExcerpt(s string) string {
	if utf8.RuneCountInString(s) <= excerptWidth {
		return s
	}
	return string([]rune(s)[:excerptWidth]) + "…"
}

// Clean replaces control characters, direction overrides and broken UTF-8 by
// visible ones, and tabs by one space, so that text from outside cannot play
// with a terminal. Line breaks become spaces.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n':
			return ' '
		case r < 0x20:
			return '\u2400' + r
		case r == 0x7f:
			return '\u2421'
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), unicode.Is(unicode.Cf, r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// wrapText breaks text into lines of at most width characters; words are never cut.
func wrapText(text string, width int) []string {
	if width < 20 {
		return []string{text}
	}
	var lines []string
	line, n := "", 0
	for _, word := range strings.Fields(text) {
		size := utf8.RuneCountInString(word)
		if n > 0 && n+1+size > width {
			lines, line, n = append(lines, line), "", 0
		}
		if n > 0 {
			line, n = line+" ", n+1
		}
		line, n = line+word, n+size
	}
	if n > 0 {
		lines = append(lines, line)
	}
	return lines
}
