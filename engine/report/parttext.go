// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/evidence"
)

// PartsText writes a page for each failed part that one of the words names: a node, or the
// name of a part after its node's, as the report has it. No words: all of them. It returns how
// many there are. Text from outside is escaped.
func PartsText(w io.Writer, in Input, words []string) (int, error) {
	return writeParts(w, in, words, func(b *bytes.Buffer, in Input, p *FailedPart) {
		writePartPage(b, in, p)
		writeSection(b, "Text for a return", returnText(in, p))
	})
}

// ReturnsText writes for each of those parts only the text for its return to a vendor.
func ReturnsText(w io.Writer, in Input, words []string) (int, error) {
	return writeParts(w, in, words, func(b *bytes.Buffer, in Input, p *FailedPart) {
		for _, line := range returnText(in, p) {
			fmt.Fprintf(b, "%s\n", clean(line))
		}
	})
}

func writeParts(w io.Writer, in Input, words []string, write func(*bytes.Buffer, Input, *FailedPart)) (count int, err error) {
	in = orderInput(in)
	var b bytes.Buffer
	for _, p := range collectFailed(in) {
		if !p.matches(words) {
			continue
		}
		if count++; count > 1 {
			b.WriteString("\n" + strings.Repeat("-", textWidth) + "\n\n")
		}
		write(&b, in, p)
	}
	_, err = w.Write(wrapLines(b.Bytes(), textWidth))
	return count, err
}

// matches reports whether a part is named by one of the words, or there are none.
func (p *FailedPart) matches(words []string) bool {
	return len(words) == 0 || slices.ContainsFunc(words, func(word string) bool {
		return p.Title == word || slices.Contains(p.Nodes, word) ||
			slices.ContainsFunc(p.Suspects, func(s Suspect) bool { return s.Name == word || s.String() == word || isSamePart(word, s.String()) })
	})
}

func writePartPage(b *bytes.Buffer, in Input, p *FailedPart) {
	fmt.Fprintf(b, "%s\n", clean(p.Title))
	if !p.At.IsZero() {
		fmt.Fprintf(b, "Found %s, site %s, run %s\n", p.At.UTC().Format(time.RFC3339), clean(in.Site), clean(in.Run))
	}
	if len(p.Nodes) > 0 {
		fmt.Fprintf(b, "Nodes: %s\n", clean(strings.Join(p.Nodes, ", ")))
	}
	for _, f := range p.Findings {
		fmt.Fprintf(b, "\n%s\n", clean(partCause(f)))
		for _, e := range f.Evidence {
			fmt.Fprintf(b, "  seen: %s\n", clean(e))
		}
		if f.Action != "" {
			fmt.Fprintf(b, "  do: %s\n", clean(f.Action))
		}
	}
	writeSection(b, "Where", p.Places())
	writeSection(b, "Parts", textsOf(p.Parts()))
	writeSection(b, "Measured", figureTexts(p.Figures))
	writeSection(b, "Collected by vendors' programs", textsOf(p.Bundles()))
}

// writeSection writes lines below a heading; nothing where there are none.
func writeSection(b *bytes.Buffer, heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", heading)
	for _, l := range lines {
		fmt.Fprintf(b, "%s\n", strings.TrimRight("  "+clean(l), " "))
	}
}

func textsOf[T fmt.Stringer](list []T) (texts []string) {
	for _, x := range list {
		texts = append(texts, x.String())
	}
	return texts
}

// figureTexts are figures, each with its limit and what it is about.
func figureTexts(list []Measurement) (texts []string) {
	for _, m := range list {
		text := fmt.Sprintf("%s, %s: %s", m.Check, formatPlace(m), formatFigure(m))
		if m.Why != "" {
			text += "; " + m.Why
		}
		texts = append(texts, text)
	}
	return texts
}

// returnText is what a vendor is asked with: what the part is, where it was, what is wrong
// with it, and how that was measured. What only the site knows stands in brackets.
func returnText(in Input, p *FailedPart) []string {
	lines := []string{"Subject: Return of " + p.Title + ", site " + in.Site, "", "Account, contract, contact and address: [to be filled in]", "", "Part:"}
	parts := textsOf(p.Parts())
	if len(parts) == 0 {
		parts = []string{p.Title + " (no serial number is known: [to be filled in])"}
	}
	add := func(heading string, list []string) {
		if heading != "" && len(list) > 0 {
			lines = append(lines, "", heading)
		}
		for _, x := range list {
			lines = append(lines, "- "+x)
		}
	}
	add("", parts)
	add("Where it was:", p.Places())
	var wrong, seen []string
	for _, f := range p.Findings {
		wrong = append(wrong, f.Cause)
		for _, e := range f.Evidence {
			if !evidence.IsRef(e) {
				seen = append(seen, e)
			}
		}
	}
	add("What is wrong:", wrong)
	add("What was seen:", seen)
	add("What was measured:", figureTexts(p.Figures))
	var kept []string
	for _, x := range p.Bundles() {
		if x.Ref != "" {
			kept = append(kept, x.String())
		}
	}
	add("Attached, from when it was found [look through them before they leave the site]:", kept)
	found := "Found by an acceptance test"
	if !p.At.IsZero() {
		found += " at " + p.At.UTC().Format(time.RFC3339)
	}
	for _, v := range in.Versions {
		found += fmt.Sprintf(" (%s %s)", v.Name, v.Version)
	}
	return append(lines, "", found+".")
}
