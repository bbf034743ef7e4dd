// SPDX-License-Identifier: Apache-2.0

package crossing

import (
	"context"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/collective/verdict"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/isolate"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/trunk"
)

// mostPairs is how many bad pairs across leaves are run over each rail by itself: what is
// at fault for more of them is at fault for these as well, or is named next time.
const mostPairs = 12

func isBad(b *grouprun.Run) bool { return b.Why != "" }

// searchTrunks looks for the cable between switches, or the spine, that is at fault for
// pairs on different leaves. Over all rails at once the slowest flow decides, so they are
// run over each rail by itself, and the ways of those flows are learned from the counters
// of the switches. It reports whether a cable or a spine was found: a leaf that is at
// fault for all that crosses it is the business of reportLeaves.
func (s *crossSearch) searchTrunks(ctx context.Context, leaves []*grouprun.Island) bool {
	f := floor.MainFabric(s.b.Nodes[0].Hardware)
	if f == nil || s.c.watches[f.Name] == nil {
		return false
	}
	bad, good := s.flows(ctx)
	if len(bad) == 0 || len(good) == 0 && len(s.islands) > 2 { // of three leaves or more: what all share
		return false
	}
	s.c.Rec.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("%d flows between leaves of fabric %s are bad over one rail: looking for the cable or the spine", len(bad), f.Name)})
	load := s.c.watches[f.Name].Now(ctx, s.c.Rec.Clock().Now())
	search := trunk.Search{Watch: s.c.watches[f.Name], Worn: load.Worn, Leaves: true, Run: s.runFlow}
	found := search.Find(ctx, bad, good)
	isLeaf := func(p isolate.Part) bool { return p.Scope == isolate.Leaf }
	if len(found.Suspects) == 0 || len(leaves) > 0 && slices.ContainsFunc(found.Suspects, isLeaf) {
		return false
	}
	return s.reportTrunks(ctx, found, load.Worn)
}

// flows are what pairs across leaves send over each rail, bad and good ones. A pair that
// is good over all rails is good over each.
func (s *crossSearch) flows(ctx context.Context) (bad, good []isolate.Measurement) {
	var runs []*grouprun.Run
	pairs := 0
	for _, b := range s.over {
		switch from := s.islandOf(b.Nodes[0]); {
		case !isBad(b):
			for _, r := range from.Rails {
				good = s.appendFlow(good, b, r)
			}
		case pairs < mostPairs:
			pairs++
			for _, r := range from.Rails {
				runs = append(runs, &grouprun.Run{Scope: grouprun.CrossLeaf, Nodes: b.Nodes, Rail: r + 1})
			}
		}
	}
	s.c.RunAll(ctx, runs)
	for _, b := range runs {
		if s.judgeFlow(b); isBad(b) {
			bad = s.appendFlow(bad, b, b.Rail-1)
		} else {
			good = s.appendFlow(good, b, b.Rail-1)
		}
	}
	return bad, good
}

// appendFlow appends what a pair sends over one rail, where that goes over two leaves.
func (s *crossSearch) appendFlow(list []isolate.Measurement, b *grouprun.Run, rail int) []isolate.Measurement {
	from, to := s.islandOf(b.Nodes[0]), s.islandOf(b.Nodes[1])
	m := isolate.Measurement{Rail: rail, From: b.Nodes[0].Name, To: b.Nodes[1].Name, FromLeaf: from.Leaves[rail], ToLeaf: to.Leaves[rail], Bad: isBad(b)}
	if m.Crosses() {
		list = append(list, m)
	}
	return list
}

func (s *crossSearch) islandOf(n *inventory.Node) *grouprun.Island {
	return s.islands[slices.IndexFunc(s.islands, func(i *grouprun.Island) bool { return slices.Contains(i.Nodes, n) })]
}

// judgeFlow judges a pair over one rail: by its part of what all rails are held against,
// and of what pairs across leaves carry usually.
func (s *crossSearch) judgeFlow(b *grouprun.Run) {
	s.c.JudgeAlone(b)
	rails := len(s.islandOf(b.Nodes[0]).Rails)
	if usual := s.c.Usual[b.Scope] / float64(rails); !isBad(b) && b.Got.BusBW < verdict.CohortShare*usual {
		b.Why = fmt.Sprintf("bus bandwidth %s, and one of %d rails carries %s elsewhere", result.FormatRate(b.Got.BusBW), rails, result.FormatRate(usual))
	}
}

// runFlow runs one pair over one rail with nothing beside it.
func (s *crossSearch) runFlow(ctx context.Context, m isolate.Measurement) (bad bool, packets uint64, text string) {
	b := &grouprun.Run{Scope: grouprun.CrossLeaf, Rail: m.Rail + 1}
	for _, n := range s.b.Nodes {
		if n.Name == m.From || n.Name == m.To {
			b.Nodes = append(b.Nodes, n)
		}
	}
	s.c.Try(ctx, b)
	s.judgeFlow(b)
	if isBad(b) {
		s.slow = append(s.slow, b)
	}
	return isBad(b), uint64(b.Size) / trunk.PacketSize, fmt.Sprintf("%s with %s over rail %d: %s", m.From, m.To, m.Rail, result.FormatRate(b.Got.BusBW))
}

// reportTrunks blames what was found. Where the run over all nodes is bad too, it looks
// whether it is good without the rails that go over it.
func (s *crossSearch) reportTrunks(ctx context.Context, found trunk.Found, worn []trunk.Worn) bool {
	var rails []int
	for _, b := range s.slow {
		if r := b.Rail - 1; !slices.Contains(rails, r) {
			rails = append(rails, r)
		}
	}
	slices.Sort(rails)
	what := "pairs of nodes on different leaves are slow"
	if len(s.slow) > 0 {
		w := s.slow[0]
		what = fmt.Sprintf("%s with %s over rail %d: %s", w.Nodes[0].Name, w.Nodes[1].Name, w.Rail-1, w.Why)
		found.Notes = append(found.Notes, w.Reference(s.c.Rec))
	}
	f := found.Finding(what, worn)
	f.Evidence = append(f.Evidence, found.Notes...)
	var rest *grouprun.Run
	if isBad(s.b) {
		rest = s.rest(ctx, s.islands[:1], rails)
		f.Evidence = append(f.Evidence, rest.Outcome())
	}
	f.Evidence = append(f.Evidence, s.b.Reference(s.c.Rec))
	s.c.Findings, s.c.blamed = append(s.c.Findings, f), append(s.c.blamed, found.Suspects...)
	if rest != nil && isBad(rest) {
		s.c.BlameSet(rest, "it is bad without the rails that go over what is suspected as well")
		return true
	}
	if isBad(s.b) {
		s.b.Explained = found.Names()
	}
	s.explain(found)
	return true
}

// explain notes at bad pairs across leaves that what was found is at fault for them, and
// blames those that it does not explain.
func (s *crossSearch) explain(found trunk.Found) {
	for _, b := range s.over {
		if !isBad(b) {
			continue
		}
		var flows []isolate.Measurement
		for _, r := range s.islandOf(b.Nodes[0]).Rails {
			flows = s.appendFlow(flows, b, r)
		}
		if slices.ContainsFunc(flows, found.Explains) {
			b.Explained = found.Names()
			continue
		}
		s.c.BlameSet(b, "what is suspected does not lie between "+result.NameSome(target.NodeNames(b.Nodes)))
	}
}
