// SPDX-License-Identifier: Apache-2.0

package lazyregexp

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// program is a compiled pattern with what is known of the texts that it matches.
// Searching for a text is fifty times as fast as the automaton of an expression, and
// most expressions do not match most of what they are tried on.
type program struct {
	*regexp.Regexp
	needed []string // every match has one of them at least; empty: none is known
	lined  bool     // no match has a line break, nor depends on what other lines there are
}

// Bounds of what is looked for first.
const (
	mostNeeded  = 8
	leastNeeded = 2 // bytes: nearly every text has a single letter
)

func compile(pattern string) program {
	p := program{Regexp: regexp.MustCompile(pattern)}
	if tree, err := syntax.Parse(pattern, syntax.Perl); err == nil {
		tree = tree.Simplify()
		p.needed, p.lined = neededIn(tree), isLined(tree)
	}
	return p
}

// may reports whether a text may match: it has what every match has.
func (p program) may(text string) bool {
	return len(p.needed) == 0 || slices.ContainsFunc(p.needed, func(n string) bool { return strings.Contains(text, n) })
}

func (p program) mayBytes(text []byte) bool {
	return len(p.needed) == 0 || slices.ContainsFunc(p.needed, func(n string) bool { return bytes.Contains(text, []byte(n)) })
}

// match is Match, in which only the lines are tried that have what a match needs.
func (p program) match(text []byte) bool {
	if len(p.needed) == 0 || !p.lined {
		return p.mayBytes(text) && p.Match(text)
	}
	for _, n := range p.needed {
		for rest := text; ; {
			at := bytes.Index(rest, []byte(n))
			if at < 0 {
				break
			}
			from, to := bytes.LastIndexByte(rest[:at], '\n')+1, len(rest)
			if i := bytes.IndexByte(rest[at:], '\n'); i >= 0 {
				to = at + i
			}
			if p.Match(rest[from:to]) {
				return true
			}
			rest = rest[min(to+1, len(rest)):]
		}
	}
	return false
}

// neededIn returns texts of which each match of an expression has one; nil where none
// are known that are few and long enough to be worth looking for.
func neededIn(re *syntax.Regexp) []string {
	var found []string
	switch re.Op {
	case syntax.OpLiteral:
		if isOneText(re) {
			found = []string{string(re.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		found = neededIn(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			found = neededIn(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if n := neededIn(sub); shortest(n) > shortest(found) {
				found = n
			}
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			n := neededIn(sub)
			if len(n) == 0 {
				return nil
			}
			found = append(found, n...)
		}
	}
	if len(found) > mostNeeded || shortest(found) < leastNeeded {
		return nil
	}
	return found
}

// isOneText reports whether a literal matches its own bytes and no others: letters of the
// other case, and, as U+FFFD does, bytes that are no UTF-8.
func isOneText(re *syntax.Regexp) bool {
	return !slices.Contains(re.Rune, utf8.RuneError) && (re.Flags&syntax.FoldCase == 0 || !slices.ContainsFunc(re.Rune, unicode.IsLetter))
}

// shortest returns the length of the shortest of some texts; 0 of none.
func shortest(texts []string) int {
	if len(texts) == 0 {
		return 0
	}
	return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
}

// isLined reports whether an expression can be tried on each line of a text alone.
func isLined(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return !slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			if re.Rune[i] <= '\n' && '\n' <= re.Rune[i+1] {
				return false
			}
		}
	case syntax.OpAnyChar, syntax.OpBeginText, syntax.OpEndText:
		return false
	}
	return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !isLined(sub) })
}
