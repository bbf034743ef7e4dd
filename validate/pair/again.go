// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"context"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/rounds"
	"github.com/ironrail/ironrail/validate/transfer"
)

// again runs bad transfers once more, with nothing else on their two nodes: pairs of
// different nodes at once, and the transfers of one pair one after another. One is left as
// it is when an end of it was bad with every partner, and with one of them once more: no
// other try would acquit that end. A port that is bad costs one round so, and one that was
// bad by chance as many as it has such partners.
func (p *pairTest) again(ctx context.Context) error {
	left, of := p.badPairs()
	for n := 1; ; n++ {
		ends := judgeEnds(p.done)
		left = slices.DeleteFunc(left, func(pair [2]int) bool {
			of[pair] = slices.DeleteFunc(of[pair], ends.decide)
			return len(of[pair]) == 0
		})
		if len(left) == 0 {
			return nil
		}
		round := rounds.Spread(left)[0]
		p.Rec.Emit(event.Event{Type: event.StepProgress, Text: fmt.Sprintf("once more, alone: round %d, %d pairs, %s first", n, len(round), of[round[0]][0].Name())})
		rounds.SideBySide(round, rounds.CommandsAtOnce/2, func(pair [2]int) {
			for _, t := range of[pair] {
				if ctx.Err() == nil {
					t.Pace = t.Bw
					p.Runner.Run(ctx, t)
				}
			}
		})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, pair := range round {
			delete(of, pair)
		}
	}
}

// badPairs lists the pairs with bad transfers in the order of the rounds, with these
// transfers: a choice in this order needs no more rounds than there were.
func (p *pairTest) badPairs() (pairs [][2]int, of map[[2]int][]*transfer.Transfer) {
	at := map[*inventory.Node]int{}
	for i, n := range p.nodeOf {
		at[n] = i
	}
	of = map[[2]int][]*transfer.Transfer{}
	for _, t := range p.done {
		if t.Bad() && t.Lost == "" {
			a, b := at[t.From.Node], at[t.To.Node]
			pair := [2]int{min(a, b), max(a, b)}
			of[pair] = append(of[pair], t)
		}
	}
	for _, round := range p.rounds {
		for _, pair := range round {
			if of[pair] != nil {
				pairs = append(pairs, pair)
			}
		}
	}
	return pairs, of
}

// portUse is a port in one direction.
type portUse struct {
	end   rail.End
	sends bool
}

// endsOfPairs are the ports that carried something good, and those that were bad once more.
type endsOfPairs struct{ good, again map[portUse]bool }

func judgeEnds(done []*transfer.Transfer) endsOfPairs {
	e := endsOfPairs{map[portUse]bool{}, map[portUse]bool{}}
	for _, t := range done {
		for _, use := range []portUse{{t.From, true}, {t.To, false}} {
			switch {
			case !t.Bad():
				e.good[use] = true
			case t.Tries > 1:
				e.again[use] = true
			}
		}
	}
	return e
}

// decide reports whether what is known of the two ends of a bad transfer needs no other
// try of it.
func (e endsOfPairs) decide(t *transfer.Transfer) bool {
	for _, use := range []portUse{{t.From, true}, {t.To, false}} {
		if e.again[use] && !e.good[use] {
			return true
		}
	}
	return false
}
