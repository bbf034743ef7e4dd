// SPDX-License-Identifier: Apache-2.0

package burn

import (
	"cmp"
	"fmt"
	"maps"
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
	burnLinks       = "burn.pcie_errors"        // corrected errors a minute, of the PCIe link that had most
	burnPorts       = "burn.port_errors"        // rails that counted errors
	heatSpread      = "heat.above_median"       // degrees above the median of the slot
	clockSpread     = "burn.clock_of_median"    // least mean clock, in percent of the median of the slot
	rateSpread      = "burn.gflops_of_median"   // least mean GFLOPS, in percent of the median of the slot
	burnRate        = "burn.gflops"             // of the slowest GPU on average
)

const degrees = "°C"

// Report is the burn-in of a node as the tests of groups have theirs: each figure with
// what it was held against. Of GPUs that are good the one nearest to its limit stands
// for all.
func (r Report) Report(node string) result.Report {
	rep := result.Report{At: r.At, Members: []string{node}, NotJudged: slices.Concat(r.Notes, r.gaps()),
		Proves: fmt.Sprintf("All GPUs computed right results under full load for %s, all at once, and stayed cool; their links and memory met no errors meanwhile. It does not prove CPUs, their memory and disks under load.", toDuration(r.Seconds))}
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
	for _, one := range slices.Concat(r.temperatures(), r.memories(), r.clockResults(), r.rates(), r.linkErrors()) {
		one.Transport = over
		add(one)
	}
	if r.Rails > 0 {
		add(result.WithVerdict(result.Result{Check: burnPorts, Measured: float64(len(r.Worn)), Unit: "rails", Limit: "= 0", Rule: "counters rise no faster than a good link's", Transport: over,
			Params: fmt.Sprintf("%d rails", r.Rails)}, len(r.Worn) > 0, strings.Join(r.Worn, "; ")))
	}
	return rep
}

// gaps are sentences: what was not seen of a burn-in.
func (r Report) gaps() (list []string) {
	add := func(missing bool, text string) {
		if missing {
			list = append(list, text)
		}
	}
	add(r.Memories == 0, "errors of the host's memory under load: the kernel has no EDAC driver for its controllers")
	add(r.Vendor == "amd" && r.Throttles < max(len(r.GPUs), 1), fmt.Sprintf("what held the GPUs' clocks down: amd-smi metric told it of %d of %d (MI300 and later, ROCm 6.3 and later)", r.Throttles, len(r.GPUs)))
	asked := r.Model != "" // burn-ins of versions before looked for neither
	add(asked && r.LinksTold == 0, "errors that PCIe links corrected under load: neither the kernel (AER) nor a driver told them")
	add(r.Rails == 0, "errors of rails under load: no port told its counters")
	add(asked && len(r.Rates) == 0, "how fast the GPUs computed: the program did not say it")
	add(len(r.Rates) > 0 && r.Least == 0, fmt.Sprintf("how fast the GPUs computed: no target known of %s: judged against the other GPUs alone", cmp.Or(r.Model, "their model")))
	return list
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

// rates is the result of the GPU that computed least. What the maker asks is held against the
// best half minute, as the maker does.
func (r Report) rates() []result.Result {
	if len(r.Rates) == 0 {
		return nil
	}
	least := slices.MinFunc(slices.Sorted(maps.Keys(r.Rates)), func(a, b string) int { return cmp.Compare(r.Rates[a].Best, r.Rates[b].Best) })
	rate := r.Rates[least]
	one := result.Result{Check: burnRate, Part: r.called(least), Measured: rate.Best, Unit: "GFLOPS", Params: fmt.Sprintf("the slowest of %d; %.0f GFLOPS on average", len(r.Rates), rate.Mean)}
	if r.Least == 0 {
		one.Verdict, one.Why = result.NotJudged, "no target known: judged against the other GPUs alone"
		return []result.Result{one}
	}
	one.Limit, one.Rule = fmt.Sprintf(">= %.0f GFLOPS", r.Least), "AMD's target of "+r.Model+" less its tolerance of 5%: "+r.Source
	return []result.Result{result.WithVerdict(one, rate.Best < r.Least, "it is below AMD's target")}
}

// linkErrors is the result of the PCIe link that corrected most errors for what it carries.
func (r Report) linkErrors() []result.Result {
	if r.LinksTold == 0 {
		return nil
	}
	one := result.Result{Check: burnLinks, Unit: "errors/min", Verdict: result.Pass, Params: fmt.Sprintf("%d PCIe links: AER, and replays of GPUs", r.LinksTold),
		Rule: "bit errors at the rate that PCIe allows, as DCGM has it"}
	for _, at := range slices.Sorted(maps.Keys(r.Links)) {
		if e := r.Links[at]; e.PerMinute > one.Measured {
			one.Measured, one.Part = e.PerMinute, r.called(at)
			one.Limit = fmt.Sprintf("<= %.0f errors/min", e.Limit)
			one = result.WithVerdict(one, e.Limit > 0 && e.PerMinute > e.Limit, "it corrected more than a good link does")
		}
	}
	return []result.Result{one}
}
