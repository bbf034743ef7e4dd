// SPDX-License-Identifier: Apache-2.0

// Package checks holds the pages of the checks, one for each that `ironrail check`
// can report: what it finds, why that matters, where the rule comes from, and how
// to fix it. They are part of the program, for the night when there is no
// network. The package is read-only and safe for concurrent use.
package checks

import (
	"embed"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ironrail/ironrail/inventory/diag"
)

//go:embed *.md
var files embed.FS

// index is the list of all pages, which is none itself.
const index = "README.md"

// Sections are the headings of every page, in their order.
var Sections = [...]string{"What", "Why", "Source", "How to fix"}

// Page is the page of one check.
type Page struct {
	Name string // of the check, such as "power.feed-loss"
	What string // what it finds, in a sentence
	text string
}

// All returns the pages by name.
func All() []Page {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // an embedded folder is always there
	}
	var pages []Page
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".md")
		if !ok || e.Name() == index {
			continue
		}
		b, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		pages = append(pages, Page{Name: name, What: firstSentence(section(string(b), "What")), text: string(b)})
	}
	slices.SortFunc(pages, func(a, b Page) int { return strings.Compare(a.Name, b.Name) })
	return pages
}

// Find returns the page of a check. Without one, the hint names a check that is
// near, or is empty.
func Find(name string) (page Page, hint string, ok bool) {
	pages := All()
	var names []string
	for _, p := range pages {
		if p.Name == name {
			return p, "", true
		}
		names = append(names, p.Name)
	}
	return Page{}, diag.Nearest(name, names), false
}

// Area is what the check is about: the first word of its name.
func (p Page) Area() string {
	area, _, _ := strings.Cut(p.Name, ".")
	return area
}

// section returns the text below one heading.
func section(page, heading string) string {
	_, rest, ok := strings.Cut(page, "\n## "+heading+"\n")
	if !ok {
		return ""
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return strings.TrimSpace(text)
}

// firstSentence is the first sentence of a text, on one line.
func firstSentence(text string) string {
	paragraph, _, _ := strings.Cut(text, "\n\n")
	line := strings.Join(strings.Fields(paragraph), " ")
	for at := 0; ; {
		i := strings.Index(line[at:], ". ")
		if i < 0 {
			return strings.TrimSuffix(strings.TrimSuffix(line, "."), ":")
		}
		at += i
		if !abbreviated(line[:at]) {
			return line[:at]
		}
		at += 2
	}
}

// abbreviated reports whether text ends in a word whose full stop ends no
// sentence.
func abbreviated(text string) bool {
	return slices.ContainsFunc([]string{"e.g", "i.e", "approx"}, func(s string) bool { return strings.HasSuffix(text, s) })
}

// Plain returns the page for a terminal: paragraphs wrapped to width columns (0:
// as written), headings without signs, examples as they are.
func (p Page) Plain(width int) string {
	var b strings.Builder
	var paragraph []string
	flush := func(indent string) {
		if len(paragraph) > 0 {
			wrap(&b, strings.Join(paragraph, " "), indent, width)
			paragraph = nil
		}
	}
	indent, fenced := "  ", false
	for line := range strings.Lines(strings.TrimRight(p.text, "\n") + "\n") {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			flush(indent)
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    "):
			flush(indent)
			b.WriteString("      " + strings.TrimPrefix(line, "    ") + "\n")
		case strings.HasPrefix(line, "#"):
			flush(indent)
			b.WriteString(strings.TrimLeft(line, "# ") + "\n")
		case line == "":
			flush(indent)
			b.WriteByte('\n')
		case strings.HasPrefix(line, "- "), strings.HasPrefix(line, "|"):
			flush(indent)
			paragraph = []string{line}
		default:
			paragraph = append(paragraph, strings.TrimSpace(line))
		}
	}
	flush(indent)
	return b.String()
}

// wrap writes text in lines of at most width columns.
func wrap(b *strings.Builder, text, indent string, width int) {
	n := 0
	for _, word := range strings.Fields(plainLinks(text)) {
		size := utf8.RuneCountInString(word)
		switch {
		case n == 0:
			b.WriteString(indent)
			n = len(indent)
		case width > 0 && n+1+size > width:
			b.WriteString("\n" + indent)
			n = len(indent)
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += size
	}
	b.WriteByte('\n')
}

// plainLinks writes [text](target) as text: a terminal follows none.
func plainLinks(text string) string {
	for {
		before, rest, ok := strings.Cut(text, "[")
		if !ok {
			return text
		}
		words, after, ok := strings.Cut(rest, "](")
		if !ok {
			return text
		}
		_, after, ok = strings.Cut(after, ")")
		if !ok {
			return text
		}
		text = before + words + after
	}
}
