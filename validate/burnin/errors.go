// SPDX-License-Identifier: Apache-2.0

package burnin

import (
	"cmp"
	"fmt"
	"math"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// LinkErrors are errors that a PCIe link corrected under load: what was damaged was sent once
// more. Each is counted by AER, and by the GPU as a replay.
type LinkErrors struct {
	AER       int64   `json:"aer"`     // TOTAL_ERR_COR, which needs an operating system that owns AER
	Replays   int64   `json:"replays"` // of a GPU, as its driver says
	PerMinute float64 `json:"per_minute"`
	Limit     float64 `json:"limit_per_minute,omitempty"` // of a good link; 0: its width or speed is not known
}

const (
	// errorsPerGbit is how many errors a lane may make, for each gigabit a second that it
	// carries, in a minute: bit errors at the rate that PCIe allows, 1e-12. Source:
	// GetExpectedPcieReplayRate of modules/health/DcgmHealthWatch.cpp of DCGM.
	errorsPerGbit = 60.0 / 1000
)

const DoLink = "Reseat the part, then exchange its slot, riser and cable one by one; look at the slot's settings in the BIOS."

// Links returns what the PCIe links corrected under load, by address, and how many told it.
// Links that corrected nothing are left out.
func Links(s Seen) (all map[string]LinkErrors, told int) {
	before, minutes := linkCounts(s.Before), s.Result.Seconds/60
	after, all := linkCounts(s.After), map[string]LinkErrors{}
	for _, l := range s.After.Health.PCI {
		was, now := before[l.Address], after[l.Address]
		if len(was) == 0 || len(now) == 0 || minutes <= 0 {
			continue
		}
		told++
		e := LinkErrors{AER: rise(was, now, aer), Replays: rise(was, now, replays)}
		if most := max(e.AER, e.Replays); most > 0 {
			e.PerMinute, e.Limit = float64(most)/minutes, linkLimit(l)
			all[l.Address] = e
		}
	}
	return all, told
}

// Names of counters of a link.
const (
	aer     = "aer"
	replays = "replays"
)

// rise is by how much a counter rose; 0 where it was not told before and after.
func rise(before, after map[string]int64, name string) int64 {
	was, ok := before[name]
	now, also := after[name]
	if !ok || !also {
		return 0
	}
	return max(now-was, 0)
}

// linkCounts are the counters of all PCIe links, by address.
func linkCounts(s look.Seen) map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	put := func(address, name string, v *int64) {
		if v == nil {
			return
		}
		if all[address] == nil {
			all[address] = map[string]int64{}
		}
		all[address][name] = *v
	}
	for _, l := range s.Health.PCI {
		put(l.Address, aer, l.Corrected)
	}
	if s.NVIDIA != nil {
		for _, g := range s.NVIDIA.GPUs {
			put(g.BusID, replays, g.PCIe.Replays)
		}
	}
	if s.AMD != nil {
		for _, g := range s.AMD.GPUs {
			if g.Metric != nil {
				put(g.BDF, replays, g.Metric.Replays)
			}
		}
	}
	return all
}

// linkLimit is how many errors a minute a good link corrects at most; 0 where its width or its
// speed is not known. A GPU at rest has lowered its speed, and under load it had all of it.
func linkLimit(l wire.PCILink) float64 {
	if l.Width == nil || l.MaxSpeed == nil {
		return 0
	}
	return math.Ceil(errorsPerGbit * *l.MaxSpeed * float64(*l.Width))
}

// links reports links that correct more errors than PCIe allows.
func (j *judging) links() {
	all, _ := Links(j.Seen)
	for _, at := range sortedKeys(all) {
		if e := all[at]; e.Limit > 0 && e.PerMinute > e.Limit {
			j.fail(j.part(at), DoLink, e.Describe(at), "its PCIe link corrected %.0f errors a minute under load; %.0f are the most of a good one", e.PerMinute, e.Limit)
		}
	}
}

// Describe says what the link at an address corrected.
func (e LinkErrors) Describe(address string) string {
	return fmt.Sprintf("%s under load: aer_dev_correctable +%d, replays +%d", address, e.AER, e.Replays)
}

// hbm notes what the memory of GPUs corrected: vendors replace a GPU for rows that cannot be
// remapped and for the flag of its SRAM, which the health checks look at, and not for this.
func (j *judging) hbm() {
	before, after := corrected(j.Before), corrected(j.After)
	for _, at := range sortedKeys(after) {
		if was, ok := before[at]; ok && after[at] > was {
			j.notes = append(j.notes, fmt.Sprintf("the memory of %s corrected %d errors under load: that alone is no fault", j.part(at), after[at]-was))
		}
	}
}

// corrected is how many errors the memory of each GPU has corrected, by address.
func corrected(s look.Seen) map[string]int64 {
	all := map[string]int64{}
	if s.NVIDIA != nil {
		for _, g := range s.NVIDIA.GPUs {
			if n := cmp.Or(g.ECC.Volatile.DRAMCorrectable, g.ECC.Volatile.Correctable); n != nil {
				all[g.BusID] = *n
			}
		}
	}
	if s.AMD != nil {
		for _, g := range s.AMD.GPUs {
			if g.Metric == nil {
				continue
			}
			if n := cmp.Or(g.Metric.Blocks["UMC"].Correctable, g.Metric.ECC.Correctable); n != nil {
				all[g.BDF] = *n
			}
		}
	}
	return all
}
