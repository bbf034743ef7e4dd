// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"math"
	"slices"
	"time"
)

// rounds and levels are as those of the tests of pairs and of collectives.
func rounds(members int) float64 {
	switch {
	case members < 2:
		return 0
	case members > 8:
		return 4 * float64((members/2+63)/64)
	}
	return float64(members + members%2 - 1)
}

func levels(members int) float64 { return 1 + math.Log2(float64(max(members, 1))) }

// withChecks is the table with rows of tests, as a site has it.
var withChecks = slices.Concat(Table, []Row{
	{Kind: "validate.gates", Low: 2 * sec, Mid: 8 * sec, High: 30 * sec, Source: "estimate: nvidia-smi -q of eight GPUs takes seconds"},
	{Kind: "validate.bandwidth", Low: 30 * sec, Mid: 70 * sec, High: 5 * mnt, Source: "estimate: a minute for eight GPUs of NVIDIA; AMD's program is told to measure for two"},
	{Kind: "validate.uniform", Low: 10 * time.Millisecond, Mid: 100 * time.Millisecond, High: sec, Source: "estimate: it compares what the gates have read, and asks no node"},
	{Kind: "validate.heat", Low: 10 * time.Millisecond, Mid: 100 * time.Millisecond, High: sec, Source: "estimate: it compares what the burn-ins have seen, and asks no node"},
	{Kind: "validate.pair", Per: Unit{"round", rounds}, Words: "tests between pairs", Low: 6 * sec, Mid: 12 * sec, High: 20 * sec, Source: "two transfers of 3 s at their floor a round; 6 to 15 s " + fromLab},
	{Kind: "validate.all_reduce", Per: Unit{"level", levels}, Words: "collective test", Low: 2500 * time.Millisecond, Mid: 5 * sec, High: 8 * sec, Source: "estimate; 5 to 15 s on two nodes " + fromLab},
	{Kind: "validate.accept", Low: 20 * time.Millisecond, Mid: 100 * time.Millisecond, High: 500 * time.Millisecond, Source: fromLab},
	{Kind: "validate.burn", Planned: true, Source: "burn_in of the site, and what its program takes to begin and to end"},
})
