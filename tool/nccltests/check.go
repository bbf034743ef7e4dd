// SPDX-License-Identifier: Apache-2.0

package nccltests

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/tool"
)

// checkTest looks for what contradicts itself in a test, and for what is missing.
func checkTest(t *Test, problems *tool.Problems) {
	checkRanks(t, problems)
	n := t.RankCount()
	if t.Config.ReducedTo != nil {
		problems.Add(tool.Inconsistent, 0, "memory was enough for %d bytes only: %s bytes were asked for and not tested", *t.Config.ReducedTo, formatCount(t.Config.MaximumBytes))
	}
	if len(t.Rows) == 0 {
		problems.Add(tool.Missing, 0, "there is no row of results")
		return
	}
	if !t.ended {
		problems.Add(tool.Truncated, 0, "the end is not there: neither the count of wrong values nor the average")
	}
	bad := 0
	for _, row := range t.Rows {
		for i, p := range []*Placement{row.OutOfPlace, row.InPlace} {
			if text := findContradiction(t, row, p, n); text != "" {
				if bad++; bad <= mostContradictions {
					problems.Add(tool.Inconsistent, row.line, "size %d, %s: %s", row.Size, [2]string{"out of place", "in place"}[i], text)
				}
			}
		}
	}
	if bad > mostContradictions {
		problems.Add(tool.Inconsistent, 0, "%d more rows contradict themselves", bad-mostContradictions)
	}
	checkLargest(t, problems)
	checkMean(t, problems)
}

// mostContradictions is how many are told one by one.
const mostContradictions = 5

// checkRanks looks at the list of devices: one program over all ranks, or each alone.
func checkRanks(t *Test, problems *tool.Problems) {
	seen := map[int]int{}
	for _, r := range t.Ranks {
		seen[r.Rank]++
	}
	copies := t.copies
	for _, times := range seen {
		copies = max(copies, times-1)
	}
	switch {
	case t.partial, t.counted > 1:
	case len(t.Ranks) == 0 && t.counted == 0:
		problems.Add(tool.Missing, 0, "the list of devices is not there: over how many ranks and nodes this ran is not known")
	case copies > 0:
		problems.Add(tool.Inconsistent, 0, "%d copies of the program ran beside each other and not as one: it may be built without MPI, and then no network was tested", copies+1)
	case t.hasGaps(): // before the counts, which say nothing of a list that is cut
		problems.Add(tool.Missing, 0, "ranks are missing from the list of devices: %d are there, up to rank %d", len(seen), slices.Max(t.ranksSeen()))
	case devicesPerProcess(t) > 0 && len(t.Ranks)%devicesPerProcess(t) != 0:
		problems.Add(tool.Inconsistent, 0, "the list has %d devices, which is no multiple of the %d of each process", len(t.Ranks), devicesPerProcess(t))
	case len(t.Ranks) == 1, t.counted == 1:
		problems.Add(tool.Inconsistent, 0, "only one rank ran, so nothing was sent to another and every bus bandwidth is 0: the program may be built without MPI")
	}
}

func (t *Test) ranksSeen() (all []int) {
	for _, r := range t.Ranks {
		all = append(all, r.Rank)
	}
	return all
}

// hasGaps reports whether ranks are missing: numbers begin at 0 and follow one
// another, over all groups. Of copies of the program, which repeat numbers, that
// is not known.
func (t *Test) hasGaps() bool {
	seen := map[int]bool{}
	for _, r := range t.Ranks {
		seen[r.Rank] = true
	}
	return len(seen) > 0 && len(seen) == len(t.Ranks) && slices.Max(t.ranksSeen())+1 != len(seen)
}

// devicesPerProcess returns how many devices one process has; 0 when that is not said.
func devicesPerProcess(t *Test) int {
	if t.Config.Threads == nil || t.Config.GPUs == nil || *t.Config.Threads <= 0 || *t.Config.GPUs <= 0 || *t.Config.Threads > 1024 || *t.Config.GPUs > 1024 {
		return 0
	}
	return int(*t.Config.Threads * *t.Config.GPUs)
}

// RankCount is how many ranks one communicator had; 0 when that is not known, or
// when communicators differ.
func (t *Test) RankCount() int {
	if t.partial || t.counted > 0 {
		return t.counted
	}
	if t.hasGaps() {
		return 0
	}
	groups := map[int]int{}
	for _, r := range t.Ranks {
		g := 0
		if r.Group != nil {
			g = *r.Group
		}
		groups[g]++
	}
	n := 0
	for _, count := range groups {
		if n != 0 && count != n {
			return 0
		}
		n = count
	}
	return n
}

// BusFactor returns what bus bandwidth is of algorithm bandwidth for a collective over n
// ranks: all_reduce.cu:60 of nccl-tests and its sisters. False for a collective
// that has none.
func BusFactor(collective string, n int) (float64, bool) {
	if n < 1 {
		return 0, false
	}
	r := float64(n)
	switch collective {
	case "all_reduce", "all_reduce_bias":
		return 2 * (r - 1) / r, true
	case "all_gather", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter":
		return (r - 1) / r, true
	case "broadcast", "reduce", "sendrecv", "hypercube":
		return 1, true
	}
	return 0, false
}

// deduceRanks names an all-reduce that the output does not name: no other collective
// has a bus bandwidth above its algorithm bandwidth.
func deduceRanks(t *Test) {
	if t.Collective != "" {
		return
	}
	row, ok := t.Largest()
	p := row.OutOfPlace
	if !ok || p == nil || p.AlgBW == nil || p.BusBW == nil || *p.AlgBW < 1 {
		return
	}
	f := *p.BusBW / *p.AlgBW
	if want, ok := BusFactor("all_reduce", t.RankCount()); f > 1.05 && f <= 2 && (!ok || math.Abs(f-want) < 0.02) {
		t.Collective = "all_reduce"
	}
}

// busFactors returns those that a collective may have: its own, or any when it is not
// said which one it is.
func busFactors(collective string, n int) []float64 {
	if f, ok := BusFactor(collective, n); ok {
		return []float64{f}
	}
	var all []float64
	for _, c := range []string{"all_reduce", "all_gather", "broadcast"} {
		if f, ok := BusFactor(c, n); ok && collective == "" {
			all = append(all, f)
		}
	}
	return all
}

// slack is what figures may differ beyond their rounding: they are computed from
// times with more digits, and averaged over ranks.
const slack = 0.005

// findContradiction recomputes both bandwidths of half a row over n ranks, 0 when
// that is not known; "" when they fit.
func findContradiction(t *Test, row Row, p *Placement, n int) string {
	if p == nil || p.Time == nil || p.AlgBW == nil || p.BusBW == nil {
		return ""
	}
	lone := t.Collective == "hypercube" || t.Collective == "alltoallv"
	if !lone && !t.cpuTime && *p.Time > 0 {
		most := float64(row.Size) / 1e3 / max(*p.Time-halfOfLastDigit(p.shown[0]), 1e-9)
		least := float64(row.Size) / 1e3 / (*p.Time + halfOfLastDigit(p.shown[0]))
		if h := halfOfLastDigit(p.shown[1]); *p.AlgBW+h < least*(1-slack) || *p.AlgBW-h > most*(1+slack) {
			return "algbw " + figureOf(*p.AlgBW) + " GB/s does not follow from the time, which gives " + figureOf(float64(row.Size)/1e3 / *p.Time)
		}
	}
	all := busFactors(t.Collective, n)
	for _, f := range all {
		if math.Abs(*p.BusBW-*p.AlgBW*f) <= halfOfLastDigit(p.shown[2])+f*halfOfLastDigit(p.shown[1])+slack**p.BusBW {
			return ""
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "busbw " + figureOf(*p.BusBW) + " GB/s is not that of " + strconv.Itoa(n) + " ranks, which is " + figureOf(*p.AlgBW*all[0]) + " at algbw " + figureOf(*p.AlgBW)
}

func figureOf(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// halfOfLastDigit is half a unit of the last digit of a figure as it was printed.
func halfOfLastDigit(shown string) float64 {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(shown), "e")
	power, _ := strconv.Atoi(exponent)
	if _, fraction, ok := strings.Cut(mantissa, "."); ok {
		power -= len(fraction)
	}
	return 0.5 * math.Pow10(max(-20, min(power, 20)))
}

// checkLargest compares the largest size with the one that was asked for.
func checkLargest(t *Test, problems *tool.Problems) {
	c := t.Config
	if !t.ended || t.elided || c.ReducedTo != nil || c.MaximumBytes == nil || c.MinimumBytes == nil {
		return
	}
	last := int64(0)
	for _, row := range t.Rows {
		last = max(last, row.Size)
	}
	want := largestSize(*c.MinimumBytes, *c.MaximumBytes, c)
	if want >= 1<<20 && float64(last) < 0.99*float64(want) {
		problems.Add(tool.Inconsistent, 0, "the largest size is %d bytes, and %d were asked for", last, want)
	}
}

// largestSize returns the last size of a sweep from one size up to another.
func largestSize(from, to int64, c Config) int64 {
	if from <= 0 || to < from {
		return min(from, to)
	}
	switch {
	case c.StepFactor != nil && *c.StepFactor > 1:
		for from <= to / *c.StepFactor {
			from *= *c.StepFactor
		}
		return from
	case c.StepBytes != nil && *c.StepBytes > 0:
		return to - (to-from)%*c.StepBytes
	}
	return from
}

// checkMean compares the average with the rows that it is of.
func checkMean(t *Test, problems *tool.Problems) {
	if t.AvgBusBW == nil || t.elided || !t.ended {
		return
	}
	sum, n := 0.0, 0
	for _, row := range t.Rows {
		for _, p := range []*Placement{row.OutOfPlace, row.InPlace} {
			switch {
			case p == nil:
				continue
			case p.BusBW == nil:
				return
			}
			sum += *p.BusBW
			n++
		}
	}
	if got := sum / float64(max(n, 1)); math.Abs(got-*t.AvgBusBW) > 0.01+0.01*math.Abs(got) {
		problems.Add(tool.Inconsistent, 0, "the average %s GB/s is not that of the rows, which is %s: rows are missing", figureOf(*t.AvgBusBW), figureOf(got))
	}
}

func formatCount(n *int64) string {
	if n == nil {
		return "more"
	}
	return strconv.FormatInt(*n, 10)
}
