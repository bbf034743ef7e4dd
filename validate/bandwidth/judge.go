// SPDX-License-Identifier: Apache-2.0

package bandwidth

import (
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/floor"
)

// Measure is something that is measured of a GPU.
type Measure struct {
	Name    string // of its limit
	What    string // in words, of a GPU
	Over    string // what carries the bytes
	Between bool   // two GPUs
}

// Measures are all of them, in the order in which they are judged.
var Measures = []Measure{
	{floor.HBMCopy, "copies within its memory", "memory of the GPU", false},
	{floor.HostToDevice, "copies from the host's memory to it", "PCIe", false},
	{floor.DeviceToHost, "copies from it to the host's memory", "PCIe", false},
	{floor.PeerRead, "copies between it and its peers", "links between GPUs", true},
}

const (
	// spread is how far a GPU may lie below the median of its node's, as a part: in the
	// sample outputs of AMD's own acceptance guide healthy ones lie 4% apart. Acceptance
	// tests of clouds hold those of NVIDIA to 2% and 3%, by limits for one model.
	spread = 0.05
	// cohortLeast is how many figures make a median.
	cohortLeast = 4
)

// Limit is what a site asks for.
type Limit struct {
	Least float64 // bytes per second; 0: nothing
	Text  string  // as in the site's files
}

// Judged is what was measured of one measure.
type Judged struct {
	Measure Measure
	Least   float64 // what every figure was held against; 0: nothing is known
	Rule    string  // where Least comes from
	Figures []Figure
	Bad     []Figure
}

// Judge holds the figures of a run against the limits of the site by measure, the
// table of floors, and the median of the node's own GPUs: the site's limit comes
// before the table, and the median counts beside both.
func Judge(h *inventory.Hardware, r Output, limits func(measure string) Limit) (list []Judged) {
	for _, m := range Measures {
		j := Judged{Measure: m}
		for _, f := range r.Figures {
			if f.Measure == m.Name {
				j.Figures = append(j.Figures, f)
			}
		}
		if len(j.Figures) == 0 {
			continue
		}
		if least, source := floor.OfGPU(h, m.Name); least > 0 {
			j.Least, j.Rule = least, "what good hardware gives ("+source+")"
		}
		if l := limits(m.Name); l.Least > 0 {
			j.Least, j.Rule = l.Least, "the limit of the site, "+l.Text
		}
		if usual := medianOf(j.Figures); usual > 0 {
			if least := (1 - spread) * usual; least > j.Least {
				j.Least, j.Rule = least, fmt.Sprintf("%.0f%% of the median of the node's GPUs", 100*(1-spread))
			}
		}
		for _, f := range j.Figures {
			if f.Rate < j.Least {
				j.Bad = append(j.Bad, f)
			}
		}
		list = append(list, j)
	}
	return list
}

// medianOf returns that of the figures; 0 when they are too few to be compared.
func medianOf(list []Figure) float64 {
	if len(list) < cohortLeast {
		return 0
	}
	rates := make([]float64, 0, len(list))
	for _, f := range list {
		rates = append(rates, f.Rate)
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// Slowest is the smallest figure.
func (j Judged) Slowest() Figure { return slices.MinFunc(j.Figures, byRate) }

// Fastest is the largest figure.
func (j Judged) Fastest() Figure { return slices.MaxFunc(j.Figures, byRate) }

func byRate(a, b Figure) int {
	switch {
	case a.Rate < b.Rate:
		return -1
	case a.Rate > b.Rate:
		return 1
	}
	return 0
}

// Suspects names the GPUs behind the bad figures, in their order. Of copies between
// two GPUs the one that is bad with most of its peers is; where none stands out,
// both ends of the copy are.
func (j Judged) Suspects() (gpus [][]string) {
	if !j.Measure.Between {
		for _, f := range j.Bad {
			gpus = append(gpus, []string{f.GPU})
		}
		return gpus
	}
	rest := slices.Clone(j.Bad)
	for len(rest) > 0 {
		bad, all := tallyFigures(rest), tallyFigures(j.Figures)
		worst := slices.MaxFunc(bad.order, func(a, b string) int { return bad.of[a] - bad.of[b] })
		if bad.of[worst] < 3 || 2*bad.of[worst] < all.of[worst] {
			break
		}
		gpus = append(gpus, []string{worst})
		rest = slices.DeleteFunc(rest, func(f Figure) bool { return f.GPU == worst || f.Peer == worst })
	}
	for _, f := range rest {
		pair := []string{f.GPU, f.Peer}
		slices.Sort(pair)
		if !slices.ContainsFunc(gpus, func(have []string) bool { return slices.Equal(have, pair) }) {
			gpus = append(gpus, pair)
		}
	}
	return gpus
}

// tallied counts the figures that each GPU has a part in.
type tallied struct {
	of    map[string]int
	order []string // of their first figures
}

func tallyFigures(list []Figure) tallied {
	t := tallied{of: map[string]int{}}
	for _, f := range list {
		for _, at := range []string{f.GPU, f.Peer} {
			if t.of[at] == 0 {
				t.order = append(t.order, at)
			}
			t.of[at]++
		}
	}
	return t
}
