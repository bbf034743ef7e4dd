// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// spread is how the figures of one check are distributed.
type spread struct {
	Check, Unit string
	Good, Bad   []float64 // sorted; those that failed are bad, allowed or not
	NoResult    int       // failed without a figure
	NotJudged   int
	Limits      []limit // different ones, sorted
	// Of says what limits a figure where it is not the same for all: "each has its own".
	Of string
}

// collectSpreads are the distributions of all checks that have figures, in the order of the
// tests.
func collectSpreads(tests []Test) (list []*spread) {
	at := map[string]*spread{}
	for _, t := range tests {
		for _, m := range t.Measurements {
			if m.Unit == "" {
				continue
			}
			key := m.Check + " " + m.Unit
			s := at[key]
			if s == nil {
				s = &spread{Check: m.Check, Unit: m.Unit}
				at[key], list = s, append(list, s)
			}
			s.add(m)
		}
	}
	for _, s := range list {
		slices.Sort(s.Good)
		slices.Sort(s.Bad)
		slices.SortFunc(s.Limits, func(a, b limit) int { return cmp.Compare(a.Value, b.Value) })
		s.Limits = slices.Compact(s.Limits)
	}
	return list
}

func (s *spread) add(m Measurement) {
	bad := m.Verdict == Fail || m.Verdict == Allowed
	switch {
	case bad && m.Measured == 0 && !strings.HasPrefix(m.Limit, "="):
		s.NoResult++
	case bad:
		s.Bad = append(s.Bad, m.Measured)
	case m.Verdict == NotJudged:
		s.NotJudged++
		if m.Measured != 0 {
			s.Good = append(s.Good, m.Measured)
		}
	default:
		s.Good = append(s.Good, m.Measured)
	}
	if l, ok := parseLimit(m); ok {
		s.Limits = append(s.Limits, l)
	}
}

// all are the figures, sorted.
func (s *spread) all() []float64 {
	list := slices.Concat(s.Good, s.Bad)
	slices.Sort(list)
	return list
}

// text is a figure in the unit of the spread.
func (s *spread) text(v float64) string {
	if s.Unit == "B/s" {
		return formatValue(Measurement{Measured: v, Unit: s.Unit, Verdict: Pass})
	}
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64) + " " + s.Unit
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + " " + s.Unit
}

// Counts says how many figures there are, and how many of them are bad.
func (s *spread) Counts() string {
	n := len(s.Good) + len(s.Bad)
	words := []string{fmt.Sprintf("%d %s", n, plural(n, "figure", "figures"))}
	if len(s.Bad) > 0 {
		words = append(words, fmt.Sprintf("%d beyond the limit", len(s.Bad)))
	}
	if s.NoResult > 0 {
		words = append(words, fmt.Sprintf("%d without a result", s.NoResult))
	}
	if s.NotJudged > 0 {
		words = append(words, fmt.Sprintf("%d not judged", s.NotJudged))
	}
	return strings.Join(words, ", ")
}

// Flat reports whether all figures are the same and none is bad: there is nothing to draw.
func (s *spread) Flat() bool {
	return !s.Failed() && s.NotJudged == 0 && len(s.Good) > 0 && s.Good[0] == s.Good[len(s.Good)-1]
}

// Failed reports whether anything of the check failed.
func (s *spread) Failed() bool { return len(s.Bad)+s.NoResult > 0 }

// Range says the least, the median and the most of the figures.
func (s *spread) Range() string {
	list := s.all()
	if len(list) == 0 {
		return "no figure"
	}
	least, median, most := s.text(list[0]), s.text(medianOf(list)), s.text(list[len(list)-1])
	if least == most {
		return "all " + least
	}
	return fmt.Sprintf("%s to %s, median %s", least, most, median)
}

// Limit says what the figures are held against.
func (s *spread) Limit() string {
	if len(s.Limits) == 0 {
		return "no limit"
	}
	first, last := s.Limits[0], s.Limits[len(s.Limits)-1]
	word := "at most"
	if first.Above {
		word = "at least"
	}
	if len(s.Limits) == 1 || s.text(first.Value) == s.text(last.Value) {
		return fmt.Sprintf("%s %s", word, s.text(first.Value))
	}
	return fmt.Sprintf("%s %s to %s", word, s.text(first.Value), s.text(last.Value))
}

// medianOf is that of a sorted list that is not empty.
func medianOf(list []float64) float64 {
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// bins is how many bars a distribution has.
const bins = 32

// bounds are the values at the ends of the axis: of all figures and limits, a little wider.
func (s *spread) bounds() (low, high float64) {
	list := s.all()
	for _, l := range s.Limits {
		list = append(list, l.Value)
	}
	if len(list) == 0 {
		return 0, 1
	}
	low, high = slices.Min(list), slices.Max(list)
	if low == high {
		return low - max(math.Abs(low)/10, 1), high + max(math.Abs(high)/10, 1)
	}
	margin := (high - low) / 20
	return low - margin, high + margin
}

// count puts figures into bins.
func (s *spread) count() (good, bad [bins]int) {
	low, high := s.bounds()
	bin := func(v float64) int { return min(max(int(bins*(v-low)/(high-low)), 0), bins-1) }
	for _, v := range s.Good {
		good[bin(v)]++
	}
	for _, v := range s.Bad {
		bad[bin(v)]++
	}
	return good, bad
}
