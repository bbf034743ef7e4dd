// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// writeHostlist writes names as Slurm's host list expression: n[001-032],head. Names
// that differ in their last number alone, with as many digits, are one range.
// Expressions keep a line far below the 64 KiB that slurmctld reads of one.
func writeHostlist(names []string) string {
	type run struct {
		prefix string
		width  int
	}
	numbers := map[run][]int{}
	var order []run
	var words []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		prefix, digits := cutNumber(name)
		if digits == "" || len(digits) > 9 {
			words = append(words, name)
			continue
		}
		n := 0
		for _, c := range digits {
			n = 10*n + int(c-'0')
		}
		r := run{prefix, 0}
		if digits[0] == '0' && len(digits) > 1 {
			r.width = len(digits) // padded: 001 is not 1
		} else if len(digits) > 1 {
			r.width = -len(digits) // 10 to 99 go together, padded or not; 9 and 10 are two ranges
		}
		if numbers[r] == nil {
			order = append(order, r)
		}
		numbers[r] = append(numbers[r], n)
	}
	for _, r := range order {
		words = append(words, r.prefix+formatRanges(numbers[r], max(r.width, -r.width, 1)))
	}
	return strings.Join(words, ",")
}

// cutNumber takes the digits from the end of a name.
func cutNumber(name string) (prefix, digits string) {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	return name[:i], name[i:]
}

// formatRanges writes numbers with so many digits: 7, [1-3] or [1-3,7].
func formatRanges(list []int, width int) string {
	slices.Sort(list)
	list = slices.Compact(list)
	var words []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		word := fmt.Sprintf("%0*d", width, list[i])
		if j > i {
			word += fmt.Sprintf("-%0*d", width, list[j])
		}
		words = append(words, word)
		i = j + 1
	}
	if len(words) == 1 && !strings.Contains(words[0], "-") {
		return words[0]
	}
	return "[" + strings.Join(words, ",") + "]"
}

// expandHostlist returns the names of a host list expression with at most one bracket a word.
// What is no expression is a name as it stands.
func expandHostlist(expression string) (names []string) {
	for _, word := range splitWords(expression) {
		prefix, rest, found := strings.Cut(word, "[")
		if !found || !strings.HasSuffix(rest, "]") {
			names = append(names, word)
			continue
		}
		for part := range strings.SplitSeq(strings.TrimSuffix(rest, "]"), ",") {
			low, high, isRange := strings.Cut(part, "-")
			if !isRange {
				high = low
			}
			from, err1 := strconv.Atoi(low)
			to, err2 := strconv.Atoi(high)
			if err1 != nil || err2 != nil || to-from >= mostExpanded {
				names = append(names, prefix+part)
				continue
			}
			for n := from; n <= to; n++ {
				names = append(names, fmt.Sprintf("%s%0*d", prefix, len(low), n))
			}
		}
	}
	return names
}

// mostExpanded bounds one range.
const mostExpanded = 1 << 20

// splitWords splits at the commas that are in no bracket.
func splitWords(s string) (words []string) {
	depth, from := 0, 0
	for i, c := range s {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			words, from = append(words, s[from:i]), i+1
		}
	}
	if from < len(s) {
		words = append(words, s[from:])
	}
	return words
}
