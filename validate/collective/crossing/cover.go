// SPDX-License-Identifier: Apache-2.0

package crossing

import (
	"context"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/rounds"
	"github.com/ironrail/ironrail/validate/trunk"
)

// mostConfirmed is how many bad pairs are run once more, one by one.
const mostConfirmed = 16

// LoadTrunks runs pairs of nodes on different leaves after a run over all of them that was
// good: a ring over all nodes crosses each leaf once, which loads few of the cables
// between switches, and its limit is loose. Rounds go on as long as a cable carried
// nothing that its counters show. Sites that ask for the pair test have this from there.
func (c *Fabric) LoadTrunks(ctx context.Context, b *grouprun.Run) {
	f := floor.MainFabric(b.Nodes[0].Hardware)
	islands := c.Islands(c.leaves, b.Nodes)
	if c.Group.Validation.Pair != nil || len(islands) < 2 || f == nil || c.watches[f.Name] == nil {
		return
	}
	watch := trunk.BeginAll(ctx, c.inv, b.Nodes[:1], c.count, c.Rec.Clock().Now())[f.Name]
	s := &crossSearch{c: c, b: b, islands: islands}
	all := crossings(islands)
	for i, sets := range all[:min(len(all), grouprun.MostRounds)] {
		c.Rec.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("loading the cables between leaves of fabric %s: round %d, %d pairs", f.Name, i+1, len(sets))})
		s.over = append(s.over, c.RunSets(ctx, grouprun.CrossLeaf, sets)...)
		if ctx.Err() != nil || c.Cut != nil || watch.Now(ctx, c.Rec.Clock().Now()).Loaded() {
			break
		}
	}
	c.Evaluate(s.over)
	if ctx.Err() != nil || c.Cut != nil || !c.confirm(ctx, s.over) {
		return
	}
	s.runOnLeaves(ctx)
	if !s.decide(ctx) {
		for _, bad := range s.over {
			if isBad(bad) {
				c.BlameSet(bad, "no node of the pair is bad with others on its leaf: what lies between the two is bad")
			}
		}
	}
}

// crossings are rounds of pairs of nodes on different leaves.
func crossings(islands []*grouprun.Island) (all [][][]*inventory.Node) {
	for _, round := range rounds.Tournament(len(islands)) {
		var sets [][]*inventory.Node
		for _, p := range round {
			sets = append(sets, islands[p[0]].Between(islands[p[1]])...)
		}
		all = append(all, sets)
	}
	return all
}

// confirm runs bad pairs once more with nothing beside them, and reports whether one is
// bad still: flows of pairs that run side by side may share a cable between switches, and
// each then has its part of it. Of many bad ones some are run again: when all of these are
// good alone, the others are taken to be so too.
func (c *Fabric) confirm(ctx context.Context, runs []*grouprun.Run) bool {
	var again, others []*grouprun.Run
	for _, b := range runs {
		switch {
		case isBad(b) && len(again) < mostConfirmed:
			again = append(again, b)
		case isBad(b):
			others = append(others, b)
		}
	}
	for _, b := range again {
		c.Try(ctx, b)
		b.Alone, b.Why, b.Limit = true, "", ""
		c.JudgeAlone(b)
		c.JudgeCohort(b)
	}
	if slices.ContainsFunc(again, isBad) {
		return true
	}
	for _, b := range others {
		b.Why, b.Limit, b.Crowded = "", "", true
	}
	return false
}
