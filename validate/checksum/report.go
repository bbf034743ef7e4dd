// SPDX-License-Identifier: Apache-2.0

package checksum

import (
	"fmt"

	"github.com/ironrail/ironrail/validate/result"
)

// Report is the checksums of a node as the tests of groups have theirs.
func (r Report) Report(node string) result.Report {
	rep := result.Report{At: r.At, Members: []string{node},
		Proves: "Each GPU computed the same from the same numbers, round after round. It does not prove units that the program does not use, such as those for FP8."}
	for _, name := range append(unitNames[:len(unitNames):len(unitNames)], "matrix") {
		rounds, others, gpus := 0, 0, 0
		for _, g := range r.GPUs {
			for _, u := range g.Units {
				if u.Name == name {
					rounds, others, gpus = rounds+u.Rounds, others+u.Others, gpus+1
				}
			}
		}
		if gpus == 0 {
			rep.NotJudged = append(rep.NotJudged, "checksums of "+name+": no GPU has such units, or all failed")
			continue
		}
		rep.Results = append(rep.Results, result.WithVerdict(result.Result{Check: "gpu.checksum." + name, Measured: float64(others), Unit: "rounds", Limit: "= 0", Rule: "each round gives the checksum of the one before", Transport: "all GPUs at once",
			Params: fmt.Sprintf("%d rounds on %d GPUs", rounds, gpus), Nodes: []string{node}, Evidence: r.Evidence}, others > 0, "a GPU computed something else: the finding names it"))
	}
	return rep
}

// Report is the comparison as the tests of groups have theirs.
func (r RoleReport) Report() result.Report {
	rep := result.Report{At: r.At, Members: r.Members, NotJudged: r.Notes}
	for _, row := range r.Rows {
		if row.Checksum == "" {
			continue
		}
		rep.Proves = "GPUs that are alike compute the same, bit by bit. It does not prove that most of them are right, nor units that the program does not use."
		rep.Results = append(rep.Results, result.WithVerdict(result.Result{Check: "gpu.checksums." + row.Unit, Part: row.Of, Measured: float64(row.Others), Unit: "GPUs", Limit: "= 0", Rule: fmt.Sprintf("%s, as %d of %d", row.Checksum, row.GPUs-row.Others, row.GPUs)},
			row.Others > 0, "one computes something else: the finding names it"))
	}
	return rep
}
