// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestNoWordIsBroken: in every form of text no line is longer than a terminal of 80 columns,
// but one that is a single word, and no word is broken or lost.
func TestNoWordIsBroken(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]Input{"lab": lab(), "large": large(256)} {
		for form, write := range map[string]func(*bytes.Buffer) error{
			"text":    func(b *bytes.Buffer) error { return Text(b, in) },
			"parts":   func(b *bytes.Buffer) error { _, err := PartsText(b, in, nil); return err },
			"returns": func(b *bytes.Buffer) error { _, err := ReturnsText(b, in, nil); return err },
			"diff":    func(b *bytes.Buffer) error { d := Diff(lab(), in, .05); return d.WriteText(b, .05) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				line = strings.TrimRight(line, "\n")
				if n := utf8.RuneCountInString(line); n > textWidth && len(strings.Fields(line)) > 1 {
					t.Errorf("%s, %s: %d columns: %s", name, form, n, line)
				}
			}
		}
	}
}

func TestWrapLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	text := "short\n\n  - " + strings.Repeat("word ", 40) + "\n      evidence: " + long + "/gates.txt\n" + long + " " + long + "\n    é" + strings.Repeat(" é", 60) + "\n"
	got := string(wrapLines([]byte(text), 80))
	if !slices.Equal(strings.Fields(got), strings.Fields(text)) {
		t.Errorf("words were lost or broken:\n%s", got)
	}
	lines := strings.Split(got, "\n")
	if lines[0] != "short" || lines[1] != "" || !strings.HasPrefix(lines[2], "  - word") || !strings.HasPrefix(lines[3], "      word") {
		t.Errorf("indents:\n%s", got)
	}
	for _, l := range lines {
		if n := utf8.RuneCountInString(l); n > 80 && len(strings.Fields(l)) > 1 {
			t.Errorf("%d columns: %q", n, l)
		}
	}
}
