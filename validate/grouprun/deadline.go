// SPDX-License-Identifier: Apache-2.0

package grouprun

import (
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/validate/rounds"
	"github.com/ironrail/ironrail/validate/target"
)

// Partners is how many good nodes each side of a bad pair is tried with.
const Partners = 2

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
			rounds, of = 1+(n-1)/AtOnce, 1
		case "pair":
			rounds, of = 2+n/2/AtOnce+2*Partners, 2
		}
		b.Expected += time.Duration(rounds) * sizes * 30 * time.Second
		b.Limit += time.Duration(rounds) * sizes * (GPULimit(of, gpus) + time.Minute)
	}
	operations := time.Duration(len(g.Validation.AllReduce.Operations)) // over the largest scope, of which most are one round
	b.Expected += operations * sizes * 30 * time.Second
	b.Limit += operations * sizes * time.Duration(2+n/AtOnce) * (GPULimit(n, gpus) + time.Minute)
	if ExaminesRails(g) { // a pair, then each rail of it
		b.Limit += time.Duration((1+n/AtOnce)*(1+gpus)) * sizes * (GPULimit(2, gpus) + time.Minute)
	}
	if slices.Contains(g.Validation.AllReduce.Scope, "all") {
		b.Limit += leafSearchLimit(n, gpus)
		b.Expected += time.Duration(trunkRounds(g)*(1+(n/2-1)/AtOnce)) * sizes * 30 * time.Second
	}
	return b
}

// ExaminesRails reports whether the all-reduce tests the rails of nodes that are out: it is
// asked over rails, and there is no pair test, which does so in less time.
func ExaminesRails(g target.Group) bool {
	return g.Validation.Pair == nil && slices.ContainsFunc(g.Validation.AllReduce.Scope, func(s string) bool { return s != "node" && s != Domain })
}

// MostRounds is how many rounds of pairs across leaves load the cables between switches.
// Of a fabric that routes by the destination (InfiniBand) each gives a leaf's cables up as
// many destinations as the leaf has nodes.
const MostRounds = rounds.SampledRounds

// trunkRounds is how many of them a good run over all nodes is followed by: none where
// the pair test does so, or all nodes are in one scalable unit.
func trunkRounds(g target.Group) int {
	units := map[int]bool{}
	for _, n := range g.Nodes {
		units[g.Units[n]] = true
	}
	if g.Validation.Pair != nil {
		return 0
	}
	return min(rounds.CountRounds(len(units)), MostRounds)
}

// oneByOne is how many pairs are run with nothing beside them: those that are bad beside
// others, and those whose ways are learned.
const oneByOne = 40

// leafSearchLimit bounds the search among leaves: the pairs on them, the rounds across
// them, each rail, pairs one by one, and the run without what is suspected.
func leafSearchLimit(nodes, gpus int) time.Duration {
	turns := time.Duration(1 + nodes/2/AtOnce)
	rounds := time.Duration(2 + rounds.AllPairsUpTo + MostRounds + gpus + oneByOne)
	return rounds*turns*(GPULimit(2, gpus)+time.Minute) + GPULimit(nodes, gpus)
}
