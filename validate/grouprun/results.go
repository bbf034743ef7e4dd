// SPDX-License-Identifier: Apache-2.0

package grouprun

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/nccl"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// Results are the bandwidth and the count of wrong elements of one run. A second
// run of a bad pair speaks for the partner that it was run with only when good.
func (b *Run) Results(engine nccl.Engine, ref string) []result.Result {
	base := result.Result{Nodes: target.NodeNames(b.Nodes), Part: b.Scope, Transport: engine.Transport(len(b.Nodes), b.Scope == Domain), Evidence: []string{ref}}
	if b.Again != "" {
		base.Part += ", again for " + b.Again
	}
	if b.Rail > 0 {
		base.Part += fmt.Sprintf(", over rail %d", b.Rail-1)
	}
	if len(b.Skip) > 0 {
		base.Part += ", without rail " + strings.Trim(fmt.Sprint(b.Skip), "[]")
	}
	bw, wrong := base, base
	bw.Check, bw.Unit, bw.Limit, bw.Verdict, bw.Measured = result.BandwidthOf(b.Operation()), "B/s", b.Limit, result.Pass, b.Got.BusBW
	wrong.Check, wrong.Unit, wrong.Limit, wrong.Verdict, wrong.Measured = result.WrongOf(b.Operation()), "elements", "= 0", result.Pass, float64(b.Got.Wrong)
	bw.Params = fmt.Sprintf("%s, %s, %d ranks, %d iterations, slower placement", b.Got.Library, unit.Bytes(b.Size), len(b.Nodes)*b.Nodes[0].Hardware.GPUCount(), nccl.Iterations)
	if b.Got.Algorithm != "" {
		bw.Params += ", " + b.Got.Algorithm
	}
	switch {
	case b.Err != nil:
		bw.Verdict, bw.Why, wrong.Verdict, wrong.Why, bw.Params = result.Fail, b.Why, result.NotJudged, "there is no result", ""
	case b.Got.Wrong > 0:
		wrong.Verdict, wrong.Why = result.Fail, b.Why
	case b.Why != "":
		bw.Verdict, bw.Why = result.Fail, b.Why
		bw.Explain(b.Explained)
	case b.Does != "" && b.Limit == "":
		bw.Why = "shown alone: no limit is given, and none is known of this operation"
	case b.Alone:
		bw.Why = "passed when it was measured once more, alone"
	case b.Crowded:
		bw.Why = "slow beside others; those like it passed alone"
	}
	return []result.Result{bw, wrong}
}
