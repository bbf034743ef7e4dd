// SPDX-License-Identifier: Apache-2.0

package collective

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/isolate"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/rounds"
	"github.com/ironrail/ironrail/validate/target"
)

// searchLeaves finds out why a run over several leaves is slow: pairs are run that stay
// on their leaves, then pairs that cross each two of them, all of a round side by
// side, since one pair alone does not fill the links to the spines. A leaf that is bad
// with every other one, and good on itself, is the suspect; a node that is bad
// wherever it is tried is one as before. It reports whether the run is explained.
func (c *collective) searchLeaves(ctx context.Context, b *grouprun.Run) bool {
	islands := c.islands(b.Nodes)
	if b.Err != nil || len(islands) < 2 {
		return false
	}
	c.Rec.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("the all-reduce over %s is slow: looking for the leaf, among %d groups of them", result.NameSome(target.NodeNames(b.Nodes)), len(islands))})
	var onLeaf, cross [][]*inventory.Node
	for _, i := range islands {
		onLeaf = append(onLeaf, i.within(c.Group)...)
	}
	for _, round := range rounds.Tournament(len(islands)) {
		for _, p := range round {
			cross = append(cross, islands[p[0]].between(islands[p[1]])...)
		}
	}
	on := c.runSets(ctx, grouprun.OnLeaf, onLeaf)
	if len(on) > 0 {
		c.evaluate(on)
	}
	over := c.runSets(ctx, grouprun.CrossLeaf, cross)
	c.evaluate(over)
	if ctx.Err() != nil {
		return false
	}
	s := &crossSearch{c: c, b: b, islands: islands, on: on, over: over}
	return s.decide(ctx)
}

// crossSearch is what the pairs on leaves and across them gave.
type crossSearch struct {
	c        *collective
	b        *grouprun.Run // that is slow
	islands  []*island
	on, over []*grouprun.Run
}

// decide decodes the pairs, and blames what they say.
func (s *crossSearch) decide(ctx context.Context) bool {
	v := isolate.FindSuspects(s.measurements())
	var nodes []string
	var bad []*island
	for _, p := range v.Suspects {
		if i := slices.IndexFunc(s.islands, func(i *island) bool { return p.Scope == isolate.Leaf && i.name == p.Node }); i >= 0 {
			bad = append(bad, s.islands[i])
		} else if p.Node != "" {
			nodes = append(nodes, p.Node)
		}
	}
	switch {
	case len(v.Suspects) == 0 || v.Ambiguous && len(nodes) > 0 || len(nodes)+len(bad) == 0:
		return false
	case len(bad) == len(s.islands) && len(bad) > 2:
		s.c.blameSet(s.b, "every pair that crosses leaves is bad: what they share is to be looked at, such as the spines and the settings of all switches")
		return true
	}
	for _, n := range nodes {
		s.c.suspectRails(ctx, s.badOf(n), n, s.good(), "it is bad with partners on other leaves and on its own")
	}
	return len(bad) == 0 || s.reportLeaves(ctx, bad)
}

// measurements is what the decoder reads: all rails at once, an island for its leaves.
func (s *crossSearch) measurements() (ms []isolate.Measurement) {
	of := map[*inventory.Node]string{}
	for _, i := range s.islands {
		for _, n := range i.nodes {
			of[n] = i.name
		}
	}
	for _, b := range slices.Concat(s.on, s.over) {
		ms = append(ms, isolate.Measurement{From: b.Nodes[0].Name, To: b.Nodes[1].Name, Bad: b.Why != "", FromLeaf: of[b.Nodes[0]], ToLeaf: of[b.Nodes[1]]})
	}
	return ms
}

// badOf is a bad pair of a node, and good are the nodes of good pairs.
func (s *crossSearch) badOf(node string) *grouprun.Run {
	all := slices.Concat(s.on, s.over)
	i := slices.IndexFunc(all, func(b *grouprun.Run) bool { return b.Why != "" && slices.Contains(target.NodeNames(b.Nodes), node) })
	return all[max(i, 0)]
}

func (s *crossSearch) good() (list []*inventory.Node) {
	for _, b := range slices.Concat(s.on, s.over) {
		if b.Why == "" {
			list = append(list, b.Nodes...)
		}
	}
	return list
}

// reportLeaves names the leaves of islands, of those rails that are slow, and looks whether
// everything else is good: the run without what is suspected.
func (s *crossSearch) reportLeaves(ctx context.Context, bad []*island) bool {
	partner := s.islands[slices.IndexFunc(s.islands, func(i *island) bool { return i != bad[0] })]
	for _, i := range s.islands {
		if !slices.Contains(bad, i) {
			partner = i
		}
	}
	rails, text := s.rails(ctx, bad[0], partner)
	leaves := leavesOf(bad, rails)
	rest := s.rest(ctx, bad, rails)
	f := stage.Finding{Cause: fmt.Sprintf("what crosses leaf %s is slow: %s", strings.Join(leaves, " or "), s.worst(bad)), Action: rail.DoUplinks(leaves),
		Evidence: []string{s.figures(bad), "over one rail at a time, beyond the leaves: " + text, rest.Outcome(), s.b.Reference(s.c.Rec), s.badOf(bad[0].nodes[0].Name).Reference(s.c.Rec)}}
	if len(leaves) > 1 {
		f.Cause += "; the measurements cannot tell which of them it is"
	}
	for _, l := range leaves {
		f.Suspects = append(f.Suspects, rail.SuspectLeaf(l))
	}
	s.c.findings = append(s.c.findings, f)
	if rest != nil && rest.Why != "" {
		s.c.blameSet(rest, "it is bad without what is suspected as well")
		return true
	}
	for _, b := range append(slices.Clone(s.over), s.b) {
		if b.Why != "" && (b == s.b || slices.ContainsFunc(bad, func(i *island) bool { return i.has(b.Nodes) })) {
			b.Explained = "switch " + strings.Join(leaves, " or ")
		}
	}
	return true
}

// leavesOf are the leaves on which islands end with some of their rails; with all of
// them when none is named.
func leavesOf(islands []*island, rails []int) (leaves []string) {
	for _, i := range islands {
		for _, r := range i.rails {
			if l := i.leaves[r]; (len(rails) == 0 || slices.Contains(rails, r)) && !slices.Contains(leaves, l) {
				leaves = append(leaves, l)
			}
		}
	}
	return leaves
}

// has reports whether one of the nodes is of the island.
func (i *island) has(nodes []*inventory.Node) bool {
	return slices.ContainsFunc(nodes, func(n *inventory.Node) bool { return slices.Contains(i.nodes, n) })
}

// rails are those over which two islands are slow, when the others are not; none
// where no rail stands out, or all end on one leaf. What each carries is said.
func (s *crossSearch) rails(ctx context.Context, a, b *island) (slow []int, text string) {
	var words []string
	medians := map[int]float64{}
	for _, r := range a.rails {
		m := s.overRail(ctx, a.between(b), r)
		medians[r] = m
		words = append(words, fmt.Sprintf("rail %d %s", r, result.FormatRate(m)))
	}
	usual := medianOf(medians)
	for _, r := range a.rails {
		if medians[r] < railShare*usual {
			slow = append(slow, r)
		}
	}
	if 2*len(slow) >= len(a.rails) || len(a.switches()) < 2 {
		slow = nil
	}
	return slow, strings.Join(words, ", ")
}

// overRail is the median bandwidth of pairs over one rail, side by side.
func (s *crossSearch) overRail(ctx context.Context, sets [][]*inventory.Node, rail int) float64 {
	runs := make([]*grouprun.Run, len(sets))
	var g errgroup.Group
	g.SetLimit(grouprun.AtOnce)
	for i, set := range sets {
		runs[i] = &grouprun.Run{Scope: grouprun.CrossLeaf, Nodes: set, Rail: rail + 1}
		g.Go(func() error { s.c.Try(ctx, runs[i]); return nil })
	}
	_ = g.Wait() // what went wrong is in the runs
	got := map[int]float64{}
	for i, b := range runs {
		if b.Err == nil {
			got[i] = b.Got.BusBW
		}
	}
	return medianOf(got)
}

// medianOf returns the upper median; 0 of nothing.
func medianOf[K comparable](of map[K]float64) float64 {
	var list []float64
	for _, v := range of {
		list = append(list, v)
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// rest runs over all nodes without the slow rails, or without the nodes of the leaves
// where no rail is named; nil where too few are left. It is judged by its part.
func (s *crossSearch) rest(ctx context.Context, bad []*island, rails []int) *grouprun.Run {
	b := &grouprun.Run{Scope: s.b.Scope, Nodes: s.b.Nodes, Skip: rails}
	if len(rails) == 0 {
		b.Nodes = slices.DeleteFunc(slices.Clone(s.b.Nodes), func(n *inventory.Node) bool {
			return slices.ContainsFunc(bad, func(i *island) bool { return slices.Contains(i.nodes, n) })
		})
	}
	if len(b.Nodes) < 2 || len(bad[0].rails) <= len(rails) {
		return nil
	}
	s.c.Try(ctx, b)
	s.c.judgeAlone(b)
	s.c.done = append(s.c.done, b)
	return b
}

// worst is the slowest pair that crosses the leaves of islands.
func (s *crossSearch) worst(bad []*island) string {
	var w *grouprun.Run
	for _, b := range s.over {
		if b.Why != "" && bad[0].has(b.Nodes) && (w == nil || b.Got.BusBW < w.Got.BusBW) {
			w = b
		}
	}
	if w == nil {
		return "no pair was measured"
	}
	return fmt.Sprintf("%s with %s: %s", w.Nodes[0].Name, w.Nodes[1].Name, w.Why)
}

// figures are the medians on the leaves and across them.
func (s *crossSearch) figures(bad []*island) string {
	onLeaf, cross, others := map[*grouprun.Run]float64{}, map[*grouprun.Run]float64{}, map[*grouprun.Run]float64{}
	for _, b := range s.on {
		if bad[0].has(b.Nodes) {
			onLeaf[b] = b.Got.BusBW
		}
	}
	for _, b := range s.over {
		if slices.ContainsFunc(bad, func(i *island) bool { return i.has(b.Nodes) }) {
			cross[b] = b.Got.BusBW
		} else {
			others[b] = b.Got.BusBW
		}
	}
	text := fmt.Sprintf("medians of pairs over all rails: on its leaves %s (%d pairs), across them %s (%d pairs)", result.FormatRate(medianOf(onLeaf)), len(onLeaf), result.FormatRate(medianOf(cross)), len(cross))
	if len(others) > 0 {
		text += fmt.Sprintf(", across other leaves %s (%d pairs)", result.FormatRate(medianOf(others)), len(others))
	}
	return text
}
