// SPDX-License-Identifier: Apache-2.0

package bandwidth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/result"
)

// above is how far a figure may lie above the median of its node's GPUs, as a part, before it is no
// measure of the GPU: clocks and copy engines are the same in all. Belief: three times what is let
// below it.
const above = 3 * spread

// mostGaps is how many pairs of GPUs a sentence names.
const mostGaps = 4

// FindGaps returns sentences: what of a node's GPUs a run did not measure, and figures that are too
// high to be one. They are no faults, and prove nothing.
func FindGaps(h *inventory.Hardware, r Output) (list []string) {
	want, interconnect := look.DeclaredGPUs(h, r.Vendor)
	var gpus []string
	for _, f := range r.Figures {
		gpus = append(gpus, f.GPU)
	}
	slices.Sort(gpus)
	gpus = slices.Compact(gpus)
	for _, m := range Measures {
		if m.Between && want < 2 {
			continue
		}
		var of []Figure
		for _, f := range r.Figures {
			if f.Measure == m.Name {
				of = append(of, f)
			}
		}
		if len(of) == 0 {
			list = append(list, fmt.Sprintf("%s: %s has no figure: %s were not measured", m.Name, r.Program, m.What))
			continue
		}
		switch joined := interconnect == "nvswitch" || interconnect == "xgmi"; {
		case !m.Between:
			list = append(list, unmeasured(m, gpus, max(want, len(gpus)), of)...)
			list = append(list, tooHigh(m, of)...)
		case joined: // each GPU reaches each other
			list = append(list, unmeasuredPairs(m, gpus, of)...)
		}
		if m.Between && interconnect == "nvswitch" { // links of others differ from pair to pair
			list = append(list, tooHigh(m, of)...)
		}
	}
	return list
}

// unmeasured are the GPUs without a figure of a measure that others have one of.
func unmeasured(m Measure, gpus []string, want int, of []Figure) (list []string) {
	for _, at := range gpus {
		if !slices.ContainsFunc(of, func(f Figure) bool { return f.GPU == at }) {
			list = append(list, fmt.Sprintf("%s of the GPU at %s was not measured, and that of others was", m.Name, at))
		}
	}
	if len(gpus) < want {
		list = append(list, fmt.Sprintf("%s was measured of %d of %d GPUs", m.Name, len(gpus), want))
	}
	return list
}

// unmeasuredPairs are the pairs without a figure, of GPUs that each reach each other.
func unmeasuredPairs(m Measure, gpus []string, of []Figure) []string {
	var missing []string
	for _, a := range gpus {
		for _, b := range gpus {
			if a != b && !slices.ContainsFunc(of, func(f Figure) bool { return f.GPU == a && f.Peer == b }) {
				missing = append(missing, a+" and "+b)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %d of %d copies between GPUs were not measured: %s", m.Name, len(missing), len(gpus)*(len(gpus)-1), strings.Join(missing[:min(len(missing), mostGaps)], ", "))}
}

// tooHigh are figures far above those of the node's other GPUs.
func tooHigh(m Measure, of []Figure) (list []string) {
	usual := medianOf(of)
	for _, f := range of {
		if usual > 0 && f.Rate > (1+above)*usual {
			list = append(list, fmt.Sprintf("%s of the GPU at %s is %s, %.0f%% above the median of the node's GPUs: it is no measure of it", m.Name, f.GPU, result.FormatRate(f.Rate), 100*(f.Rate/usual-1)))
		}
	}
	return list
}
