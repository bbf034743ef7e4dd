// SPDX-License-Identifier: Apache-2.0

package collective

import (
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/rounds"
	"github.com/ironrail/ironrail/validate/target"
)

// DeadlineOf bounds an all-reduce of GPUs: the rounds of each scope, and of the
// search among bad pairs a few more.
func DeadlineOf(g target.Group) plan.Budget {
	n, gpus := len(g.Nodes), g.Nodes[0].Hardware.GPUCount()
	sizes := time.Duration(max(1, len(g.Validation.AllReduce.Sizes)))
	b := plan.Budget{Limit: 20 * time.Minute}
	for _, scope := range g.Validation.AllReduce.Scope {
		rounds, of := 1, n
		switch scope {
		case "node":
			rounds, of = 1+(n-1)/grouprun.AtOnce, 1
		case "pair":
			rounds, of = 2+n/2/grouprun.AtOnce+2*partners, 2
		}
		b.Expected += time.Duration(rounds) * sizes * 30 * time.Second
		b.Limit += time.Duration(rounds) * sizes * (grouprun.GPULimit(of, gpus) + time.Minute)
	}
	if slices.Contains(g.Validation.AllReduce.Scope, "all") {
		b.Limit += leafSearchLimit(n, gpus)
	}
	return b
}

// leafSearchLimit bounds the search among leaves: the pairs on them, the rounds across
// them, each rail, and the run without what is suspected.
func leafSearchLimit(nodes, gpus int) time.Duration {
	turns := time.Duration(1 + nodes/2/grouprun.AtOnce)
	rounds := time.Duration(1 + rounds.AllPairsUpTo + gpus)
	return rounds*turns*(grouprun.GPULimit(2, gpus)+time.Minute) + grouprun.GPULimit(nodes, gpus)
}
