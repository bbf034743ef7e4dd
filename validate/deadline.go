package validate

import (
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
)

// gpuDeadline bounds an all-reduce of GPUs: the rounds of each scope, and of the
// search among bad pairs a few more.
func (g group) gpuDeadline() plan.Budget {
	n, gpus := len(g.nodes), g.nodes[0].Hardware.GPUCount()
	sizes := time.Duration(max(1, len(g.v.AllReduce.Sizes)))
	b := plan.Budget{Limit: 20 * time.Minute}
	for _, scope := range g.v.AllReduce.Scope {
		rounds, of := 1, n
		switch scope {
		case "node":
			rounds, of = 1+(n-1)/boutsAtOnce, 1
		case "pair":
			rounds, of = 2+n/2/boutsAtOnce+2*partners, 2
		}
		b.Expected += time.Duration(rounds) * sizes * 30 * time.Second
		b.Limit += time.Duration(rounds) * sizes * (gpuLimit(of, gpus) + time.Minute)
	}
	if slices.Contains(g.v.AllReduce.Scope, "all") {
		b.Limit += crossingLimit(n, gpus)
	}
	return b
}

// crossingLimit bounds the search among leaves: the pairs on them, the rounds across
// them, each rail, and the run without what is suspected.
func crossingLimit(nodes, gpus int) time.Duration {
	turns := time.Duration(1 + nodes/2/boutsAtOnce)
	rounds := time.Duration(1 + allPairsUpTo + gpus)
	return rounds*turns*(gpuLimit(2, gpus)+time.Minute) + gpuLimit(nodes, gpus)
}
