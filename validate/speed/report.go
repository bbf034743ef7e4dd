// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/result"
)

// notHeld is why a figure has no verdict of its own.
const notHeld = "no limit is given, and none is known of the model: it is compared with the role's other nodes"

// Report is the measurement of a node as the tests of groups have theirs.
func (r Report) Report(node string) result.Report {
	rep := result.Report{At: r.At, Members: []string{node}, NotJudged: r.Notes,
		Proves: "The host's memory, all of its cores at once and its disks are as fast as shown, for some seconds. It does not prove them for hours, nor writes, nor vector units."}
	add := func(one result.Result) {
		one.Nodes, one.Evidence = []string{node}, r.Evidence
		rep.Results = append(rep.Results, one)
	}
	for _, f := range r.Faults {
		add(result.Result{Check: "host.faults", Part: f.Part, Measured: 1, Unit: "faults", Limit: "= 0", Verdict: result.Fail, Why: f.Cause, Transport: "host"})
	}
	if len(r.Memory) > 0 {
		one := result.Result{Check: floor.HostMemory, Part: memoryPart, Measured: r.total(), Unit: "B/s", Transport: "memory of the host", Verdict: result.NotJudged, Why: notHeld,
			Params: fmt.Sprintf("a triad on all cores, %d NUMA nodes; %s", len(r.Memory), r.Modules)}
		if r.Least > 0 {
			one.Limit, one.Rule, one.Why = ">= "+result.FormatRate(r.Least), r.Rule, ""
			one = result.WithVerdict(one, r.total() < r.Least, "below "+r.Rule)
		}
		add(one)
	}
	if len(r.CPUs) > 0 {
		of := slices.MinFunc(r.CPUs, func(a, b CPUs) int { return compare(a.Slowest, b.Slowest) })
		bad := slices.ContainsFunc(r.CPUs, func(c CPUs) bool { return c.isCompared() && c.Slowest < c.Least })
		one := result.Result{Check: floor.HostCPU, Part: fmt.Sprintf("CPU core %d", of.Core), Measured: workTime(of.Slowest), Unit: "s", Transport: "cores, all at once", Verdict: result.NotJudged, Why: notHeld,
			Params: fmt.Sprintf("a billion dependent integer operations; the slowest of %d cores of its NUMA node", of.Cores)}
		if of.isCompared() {
			one.Limit, one.Rule, one.Why = fmt.Sprintf("<= %.2f s", workTime(of.Least)), fmt.Sprintf("%.0f%% of the median rate of its NUMA node's cores", 100*of.Least/of.Rate), ""
			one = result.WithVerdict(one, bad, "a core is slow: the finding names it")
		}
		add(one)
	}
	for _, d := range r.slowest() {
		add(result.Result{Check: floor.DiskRead, Part: d.Part, Measured: d.Rate, Unit: "B/s", Transport: "disk, past the page cache", Verdict: result.NotJudged, Why: notHeld,
			Params: "from its start; the slowest of its model, " + d.Model})
	}
	return rep
}

// slowest is the slowest disk of each model.
func (r Report) slowest() (list []Disk) {
	for _, d := range r.Disks {
		i := slices.IndexFunc(list, func(o Disk) bool { return o.Model == d.Model })
		switch {
		case d.Rate == 0:
		case i < 0:
			list = append(list, d)
		case d.Rate < list[i].Rate:
			list[i] = d
		}
	}
	return list
}

func compare(a, b float64) int {
	if a < b {
		return -1
	}
	return 1
}

// Report is the comparison as the tests of groups have theirs.
func (r RoleReport) Report() result.Report {
	rep := result.Report{At: r.At, Members: r.Members, NotJudged: r.Notes}
	if len(r.Rows) == 0 {
		return rep
	}
	rep.Proves = "No host's memory, CPUs or disks are slower by more than shown than those that are like them. It does not prove that what is alike is as fast as it was bought."
	for _, row := range r.Rows {
		if row.Median <= 0 {
			continue
		}
		one := result.Result{Check: row.Check + "_of_median", Part: row.Of, Measured: 100 * row.Least / row.Median, Unit: "%", Rule: fmt.Sprintf("of the median of %d, %s", row.Count, format(row.Check, row.Median)), Transport: "host"}
		switch {
		case row.Groups != nil:
			one = result.WithVerdict(one, true, "its nodes are in two groups: the finding about the role names both")
		case row.Floor > 0:
			one.Limit = fmt.Sprintf(">= %.0f%%", 100*row.Floor/row.Median)
			one = result.WithVerdict(one, row.Least < row.Floor, "one is slow: the finding names it")
		default:
			one.Verdict, one.Why = result.NotJudged, "they scatter too much to be compared"
		}
		rep.Results = append(rep.Results, one)
	}
	return rep
}
