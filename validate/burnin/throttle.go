// SPDX-License-Identifier: Apache-2.0

package burnin

import (
	"fmt"

	"github.com/ironrail/ironrail/tool/amdsmi"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// throttledShare is the part of the load during which heat or the chassis may hold the clocks of a
// GPU of AMD down: its firmware counts in ticks of about a millisecond, and short peaks are
// none. Belief.
const throttledShare = 0.01

// throttles are the reasons of AMD's firmware that are faults, by their names in amd-smi metric
// (THROTTLE, ROCm 6.3 and later). The power limit (ppt) holds clocks down under every full load.
var throttles = []struct{ name, cause, action string }{
	{"socket_thermal", "heat held its clocks down", DoHeat},
	{"hbm_thermal", "the heat of its memory held its clocks down", DoHeat},
	{"vr_thermal", "the heat of its voltage regulators held its clocks down", DoHeat},
	{"prochot", "the chassis' signal PROCHOT held its clocks down", doBrake},
}

// amdMetrics are those of GPUs of AMD that count what held their clocks down, by address.
func amdMetrics(s look.Seen) map[string]*amdsmi.Metric {
	all := map[string]*amdsmi.Metric{}
	if s.AMD == nil {
		return all
	}
	for _, g := range s.AMD.GPUs {
		if m := g.Metric; m != nil && m.Ticks != nil && (g.Partition == nil || *g.Partition == 0) {
			all[g.BDF] = m
		}
	}
	return all
}

// ThrottlesTold is of how many GPUs of AMD it is known what held their clocks down under load.
func ThrottlesTold(s Seen) (n int) {
	before := amdMetrics(s.Before)
	for at, is := range amdMetrics(s.After) {
		if was := before[at]; was != nil && *is.Ticks > *was.Ticks {
			n++
		}
	}
	return n
}

// throttled reports GPUs of AMD whose clocks heat or the chassis held down for longer than a peak.
func (j *judging) throttled() {
	before, after := amdMetrics(j.Before), amdMetrics(j.After)
	for _, at := range sortedKeys(after) {
		was, is := before[at], after[at]
		if was == nil || *is.Ticks <= *was.Ticks { // the driver was loaded anew
			continue
		}
		ticks := *is.Ticks - *was.Ticks
		for _, t := range throttles {
			from, told := was.Accumulated[t.name]
			rose := is.Accumulated[t.name] - from
			if told && float64(rose) > throttledShare*float64(ticks) {
				j.fail(j.part(at), t.action, fmt.Sprintf("amd-smi metric: %s_accumulated +%d of %d ticks", t.name, rose, ticks), "%s under load, for %.0f%% of the time", t.cause, 100*float64(rose)/float64(ticks))
			}
		}
	}
}
