// SPDX-License-Identifier: Apache-2.0

// Package fold shortens what is equal on many nodes: names to ranges, as
// ClusterShell and Slurm write them, and findings with the same cause and action to
// one. Every list that a person reads uses it: refusals, the end of a run, `why` and
// the reports. It is a leaf and pure.
package fold

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxRanges is how many words Names writes before it only counts, and how many ranges
// stand in the bracket of one word.
const maxRanges = 12

// Names writes names as ranges, such as r[1-2]n[01-64],head. Names that differ in
// one number are one range; leading zeros are kept. The order of names does not
// matter. A list that would be long is cut: "n1,n3 and 40 more".
func Names(names []string) string {
	words := foldLast(slices.Compact(slices.Sorted(slices.Values(names))))
	if len(words) <= maxRanges {
		return joinWords(words)
	}
	more := 0
	for _, w := range words[maxRanges:] {
		more += w.count
	}
	return fmt.Sprintf("%s and %d more", joinWords(words[:maxRanges]), more)
}

// Nodes writes how many nodes there are, and which: "64 nodes: r1n[01-64]". A single
// one is its name.
func Nodes(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return formatCount(len(names), "node") + ": " + Names(names)
}

// formatCount returns a number of subjects of a kind: "2 switches".
func formatCount(n int, kind string) string {
	end := "s"
	if strings.HasSuffix(kind, "ch") {
		end = "es"
	}
	return fmt.Sprintf("%d %s%s", n, kind, end)
}

// word is a range, or a name that is in none.
type word struct {
	text  string
	count int // of names
}

func joinWords(words []word) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.text
	}
	return strings.Join(list, ",")
}

// stem is what the names of a range have in common.
type stem struct {
	before, after string
	width         int // of numbers with leading zeros; 0: without
}

// foldLast folds the last number of names, and then the number before it of the
// ranges that are equal: r1n[1-4] and r2n[1-4] are r[1-2]n[1-4].
func foldLast(names []string) []word {
	first := foldNumber(names, 1, func(name string) (before, digits, after string) {
		return cutNumber(name, len(name))
	})
	byRange := map[string][]word{} // ranges by what follows their first bracket
	var order []string
	for _, w := range first {
		_, rest, _ := strings.Cut(w.text, "[")
		if byRange[rest] == nil {
			order = append(order, rest)
		}
		byRange[rest] = append(byRange[rest], w)
	}
	var out []word
	for _, rest := range order {
		list := byRange[rest]
		if rest == "" || len(list) == 1 {
			out = append(out, list...)
			continue
		}
		texts := make([]string, len(list))
		for i, w := range list {
			texts[i] = w.text
		}
		out = append(out, foldNumber(texts, list[0].count, func(text string) (before, digits, after string) {
			return cutNumber(text, strings.IndexByte(text, '['))
		})...)
	}
	slices.SortStableFunc(out, func(a, b word) int { return strings.Compare(a.text, b.text) })
	return out
}

// foldNumber makes ranges of the number that cut finds. Each text stands for so many
// names.
func foldNumber(texts []string, each int, cut func(string) (before, digits, after string)) (out []word) {
	numbers := map[stem][]int{}
	var order []stem
	padded := map[stem]bool{}
	for _, t := range texts {
		if before, digits, after := cut(t); len(digits) > 1 && digits[0] == '0' {
			padded[stem{before, after, len(digits)}] = true
		}
	}
	for _, t := range texts {
		before, digits, after := cut(t)
		n, err := strconv.Atoi(digits)
		if err != nil || len(digits) > 9 {
			out = append(out, word{t, each})
			continue
		}
		s := stem{before, after, len(digits)}
		if !padded[s] {
			s.width = 0
		}
		if numbers[s] == nil {
			order = append(order, s)
		}
		numbers[s] = append(numbers[s], n)
	}
	for _, s := range order {
		for list := numbers[s]; len(list) > 0; {
			text, n := formatRanges(list, s.width)
			out, list = append(out, word{s.before + text + s.after, each * n}), list[n:]
		}
	}
	return out
}

// cutNumber finds the last number of text before end: r1n07 is r1n, 07 and nothing.
func cutNumber(text string, end int) (before, digits, after string) {
	last := strings.LastIndexAny(text[:end], "0123456789")
	if last < 0 {
		return text, "", ""
	}
	first := last
	for first > 0 && isDigit(text[first-1]) {
		first--
	}
	return text[:first], text[first : last+1], text[last+1:]
}

func isDigit(c byte) bool { return c < utf8.RuneSelf && '0' <= c && c <= '9' }

// formatRanges writes numbers with so many digits: 7, [1-3] or [1-3,7]. It returns how many
// of the list it wrote: what does not fit is for another word.
func formatRanges(list []int, width int) (text string, n int) {
	slices.Sort(list)
	var words []string
	for n < len(list) && len(words) < maxRanges {
		from := n
		for n++; n < len(list) && list[n] == list[n-1]+1; {
			n++
		}
		w := fmt.Sprintf("%0*d", width, list[from])
		if n-from > 1 {
			w += fmt.Sprintf("-%0*d", width, list[n-1])
		}
		words = append(words, w)
	}
	if n == 1 {
		return words[0], n
	}
	return "[" + strings.Join(words, ",") + "]", n
}
