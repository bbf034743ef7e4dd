// SPDX-License-Identifier: Apache-2.0

package burn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/result"
)

// Checks of a burn-in and of the comparison of burn-ins.
const (
	burnTime        = "burn.time"               // seconds
	burnFaults      = "burn.faults"             // parts that did not stand it
	burnTemperature = "burn.temperature"        // degrees Celsius, of the chip
	burnMemory      = "burn.memory_temperature" // of the HBM
	burnHeld        = "burn.clocks_held"        // looks at which heat or the chassis held the clocks down
	burnPorts       = "burn.port_errors"        // rails that counted errors
	heatSpread      = "heat.above_median"       // degrees above the median of the slot
	clockSpread     = "burn.clock_of_median"    // least mean clock, in percent of the median of the slot
)

const degrees = "°C"

// Report is the burn-in of a node as the tests of groups have theirs: each figure with
// what it was held against. Of GPUs that are good the one nearest to its limit stands
// for all.
func (r Report) Report(node string) result.Report {
	rep := result.Report{At: r.At, Members: []string{node}, NotJudged: r.Notes,
		Proves: fmt.Sprintf("All GPUs computed right results under full load for %s, all at once, and stayed cool; their links and memory met no errors meanwhile. It does not prove CPUs, their memory and disks under load.", toDuration(r.Seconds))}
	if r.Memories == 0 {
		rep.NotJudged = append(slices.Clone(r.Notes), "errors of the host's memory under load: the kernel has no EDAC driver for its controllers")
	}
	if r.Vendor == "amd" {
		rep.NotJudged = append(slices.Clone(rep.NotJudged), "what held the GPUs' clocks down: AMD's driver is not asked for it")
	}
	if r.Rails == 0 {
		rep.NotJudged = append(slices.Clone(rep.NotJudged), "errors of rails under load: no port told its counters")
	}
	add := func(one result.Result) {
		one.Nodes, one.Evidence = []string{node}, r.Evidence
		rep.Results = append(rep.Results, one)
	}
	over := "full load"
	add(result.WithVerdict(result.Result{Check: burnTime, Measured: r.Seconds, Unit: "s", Limit: fmt.Sprintf(">= %.0f s", r.Asked.Seconds()), Rule: "burn_in of the site", Transport: over, Params: r.Program}, r.Seconds < r.Asked.Seconds(), "it ended early"))
	for _, f := range r.Faults {
		add(result.Result{Check: burnFaults, Part: f.Part, Measured: 1, Unit: "faults", Limit: "= 0", Verdict: result.Fail, Why: f.Cause, Transport: over})
	}
	if len(r.Faults) == 0 {
		add(result.Result{Check: burnFaults, Unit: "faults", Limit: "= 0", Verdict: result.Pass, Transport: over,
			Params: fmt.Sprintf("%d GPUs, results checked by the program; errors of %d memory controllers; all gates looked once more", len(r.GPUs), r.Memories)})
	}
	for _, one := range slices.Concat(r.temperatures(), r.memories(), r.clockResults()) {
		one.Transport = over
		add(one)
	}
	if r.Rails > 0 {
		add(result.WithVerdict(result.Result{Check: burnPorts, Measured: float64(len(r.Worn)), Unit: "rails", Limit: "= 0", Rule: "counters rise no faster than a good link's", Transport: over,
			Params: fmt.Sprintf("%d rails", r.Rails)}, len(r.Worn) > 0, strings.Join(r.Worn, "; ")))
	}
	return rep
}

func toDuration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}

// called is what the GPU at an address is called.
func (r Report) called(address string) string { return cmp.Or(r.Names[address], "GPU at "+address) }

// spared is a temperature with how far it stayed below its limit.
type spared struct {
	gpu  wire.BurnGPU
	most float64
	left float64
}

// worst are the results of GPUs that came too near to their limit, else that of the
// one that came nearest.
func (r Report) worst(check, rule string, all []spared) (list []result.Result) {
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b spared) int { return cmp.Compare(a.left, b.left) })
	for i, s := range all {
		bad := s.left < burnin.Spare
		if i > 0 && !bad {
			break
		}
		list = append(list, result.WithVerdict(result.Result{Check: check, Part: r.called(s.gpu.Address), Measured: s.most, Unit: degrees, Limit: fmt.Sprintf("<= %.0f %s", s.most+s.left-burnin.Spare, degrees), Rule: rule,
			Params: fmt.Sprintf("the nearest to its limit of %d; %s", len(all), figuresOf(s.gpu))}, bad, fmt.Sprintf("%.0f %s were left", max(s.left, 0), degrees)))
	}
	return list
}

func figuresOf(g wire.BurnGPU) string {
	text := fmt.Sprintf("%d looks", g.Core.Count)
	if g.Power.Count > 0 {
		text += fmt.Sprintf(", %.0f W and", g.Power.Mean)
	}
	return text + fmt.Sprintf(" %.0f MHz on average", g.Clock.Mean)
}

func (r Report) temperatures() []result.Result {
	var all []spared
	hottest := spared{}
	for _, g := range r.GPUs {
		if left, ok := r.Left[g.Address]; ok {
			all = append(all, spared{g, g.Core.Most, left})
		}
		if g.Core.Most > hottest.most {
			hottest = spared{gpu: g, most: g.Core.Most}
		}
	}
	if len(all) == 0 && hottest.most > 0 {
		return []result.Result{{Check: burnTemperature, Part: r.called(hottest.gpu.Address), Measured: hottest.most, Unit: degrees, Verdict: result.NotJudged, Why: "the driver states no temperature at which it slows down"}}
	}
	return r.worst(burnTemperature, fmt.Sprintf("%.0f %s below the slowdown that the driver states", burnin.Spare, degrees), all)
}

func (r Report) memories() []result.Result {
	var all []spared
	for _, g := range r.GPUs {
		if g.MemLeft.Count > 0 && g.Memory.Count > 0 {
			all = append(all, spared{g, g.Memory.Most, g.MemLeft.Least})
		}
	}
	return r.worst(burnMemory, fmt.Sprintf("%.0f %s below the limit that the driver states", burnin.Spare, degrees), all)
}

// clockResults are samples at which clocks were held down for a reason that is a fault. AMD's
// drivers are not asked for reasons.
func (r Report) clockResults() []result.Result {
	if r.Vendor != "nvidia" || len(r.GPUs) == 0 {
		return nil
	}
	one := result.Result{Check: burnHeld, Unit: "looks", Limit: "= 0", Rule: "heat, the power brake or the hardware itself", Verdict: result.Pass, Params: fmt.Sprintf("%d looks at %d GPUs", r.Looks, len(r.GPUs))}
	for _, g := range r.GPUs {
		if n := max(g.Held["hw_slowdown"], g.Held["hw_thermal_slowdown"], g.Held["hw_power_brake_slowdown"], g.Held["sw_thermal_slowdown"]); float64(n) > one.Measured {
			one.Measured, one.Part, one.Verdict, one.Why = float64(n), r.called(g.Address), result.Fail, "its clocks were held down"
		}
	}
	return []result.Result{one}
}
