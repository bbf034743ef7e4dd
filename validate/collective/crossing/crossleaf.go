// SPDX-License-Identifier: Apache-2.0

// Package crossing tests what lies between leaves by all-reduces of pairs of nodes that
// are on different ones, and finds the leaf, the cable or the spine that is at fault.
package crossing

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/collective/verdict"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/isolate"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/trunk"
)

// Fabric is the fabric that the GPUs of a test speak over, while the test runs.
type Fabric struct {
	*verdict.Test
	inv     *inventory.Inventory
	count   target.CounterReader // of switches; nil: they are not asked
	leaves  rail.Leaves
	watches trunk.Watches
	loads   trunk.Loads    // by the whole test
	blamed  []isolate.Part // trunks and spines
}

// New returns the fabric of a job's test.
func New(t *verdict.Test, j *target.Job) *Fabric {
	return &Fabric{Test: t, inv: j.Inv, count: j.Counters, leaves: rail.LeavesOf(j.Inv)}
}

// Begin begins to watch the cables between the switches that GPUs speak over.
func (c *Fabric) Begin(ctx context.Context) {
	c.blamed, c.watches = nil, trunk.BeginAll(ctx, c.inv, c.Members, c.count, c.Rec.Clock().Now())
	maps.DeleteFunc(c.watches, func(name string, _ *trunk.Watch) bool {
		return !slices.ContainsFunc(c.Members, func(n *inventory.Node) bool {
			return slices.ContainsFunc(rail.GPUFabrics(n), func(f *inventory.Fabric) bool { return f.Name == name })
		})
	})
}

// End ends the watch.
func (c *Fabric) End(ctx context.Context) { c.loads = c.watches.End(ctx, c.Rec.Clock().Now()) }

// NotTested says in sentences what of the cables between switches the test does not speak
// of. Of a site that asks for the pair test as well its report says so.
func (c *Fabric) NotTested() []string {
	if c.Group.Validation.Pair != nil {
		return nil
	}
	return c.loads.NotTested()
}

// WornFindings blame cables between switches for errors that no slow pair has led to.
func (c *Fabric) WornFindings() (list []stage.Finding) {
	for _, name := range slices.Sorted(maps.Keys(c.loads)) {
		list = append(list, trunk.WornFindings(c.loads[name].Worn, c.blamed)...)
	}
	return list
}

// SearchLeaves finds out why a run over several leaves is slow: pairs are run that stay
// on their leaves, then pairs that cross each two of them, all of a round side by
// side, since one pair alone does not fill the links to the spines. A leaf that is bad
// with every other one, and good on itself, is the suspect; a node that is bad
// wherever it is tried is one as before. It reports whether the run is explained.
func (c *Fabric) SearchLeaves(ctx context.Context, b *grouprun.Run) bool {
	islands := c.Islands(c.leaves, b.Nodes)
	if b.Err != nil || len(islands) < 2 {
		return false
	}
	c.Rec.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("the all-reduce over %s is slow: looking for the leaf, among %d groups of them", result.NameSome(target.NodeNames(b.Nodes)), len(islands))})
	s := &crossSearch{c: c, b: b, islands: islands}
	s.runOnLeaves(ctx)
	s.over = c.RunSets(ctx, grouprun.CrossLeaf, slices.Concat(crossings(islands)...))
	c.Evaluate(s.over)
	if !slices.ContainsFunc(s.over, isBad) { // the ways of flows differ: those of the run itself are tried too
		s.over = append(s.over, c.RunSets(ctx, grouprun.CrossLeaf, grouprun.Neighbours(islands, b.Nodes))...)
		c.Evaluate(s.over)
	}
	if ctx.Err() != nil {
		return false
	}
	return s.decide(ctx)
}

// crossSearch is what the pairs on leaves and across them gave.
type crossSearch struct {
	c        *Fabric
	b        *grouprun.Run // that is slow
	islands  []*grouprun.Island
	on, over []*grouprun.Run
	slow     []*grouprun.Run // pairs over one rail that are bad
}

// runOnLeaves runs pairs that stay on their leaves.
func (s *crossSearch) runOnLeaves(ctx context.Context) {
	var sets [][]*inventory.Node
	for _, i := range s.islands {
		sets = append(sets, i.Within(s.c.Group)...)
	}
	if s.on = s.c.RunSets(ctx, grouprun.OnLeaf, sets); len(s.on) > 0 {
		s.c.Evaluate(s.on)
	}
}

// decide decodes the pairs, and blames what they say. A node is blamed first; what is
// bad without the nodes that are blamed is that of a cable or a spine, or of a leaf.
func (s *crossSearch) decide(ctx context.Context) bool {
	v := isolate.FindSuspects(s.measurements())
	var nodes []string
	var bad []*grouprun.Island
	for _, p := range v.Suspects {
		if i := slices.IndexFunc(s.islands, func(i *grouprun.Island) bool { return p.Scope == isolate.Leaf && i.Name == p.Node }); i >= 0 {
			bad = append(bad, s.islands[i])
		} else if p.Node != "" {
			nodes = append(nodes, p.Node)
		}
	}
	if v.Ambiguous && len(nodes) > 0 {
		return false
	}
	for _, n := range nodes {
		s.c.SuspectRails(ctx, s.badOf(n), n, s.good(), "it is bad with partners on other leaves and on its own")
	}
	all := s.over
	s.over = slices.DeleteFunc(slices.Clone(all), func(b *grouprun.Run) bool { return len(s.c.Among(b)) > 0 })
	switch {
	case slices.ContainsFunc(s.over, isBad) && s.searchTrunks(ctx, bad):
		return true
	case len(bad) == len(s.islands) && len(bad) > 2:
		s.reportAll()
		return true
	case len(bad) == 0:
		return len(nodes) > 0
	}
	s.over = all
	return s.reportLeaves(ctx, bad)
}

// reportAll blames what all leaves share, when every pair that crosses two is bad and what
// stays on them is good.
func (s *crossSearch) reportAll() {
	name, bad, first := floor.MainFabric(s.b.Nodes[0].Hardware).Name, 0, s.over[0]
	for _, b := range append(slices.Clone(s.over), s.b) {
		if isBad(b) {
			b.Explained = "what all leaves of fabric " + name + " share"
			bad++
		}
	}
	f := trunk.CrossingsFinding(name, bad, fmt.Sprintf("%s with %s: %s", first.Nodes[0].Name, first.Nodes[1].Name, first.Why))
	f.Evidence = append(f.Evidence, s.figures(s.islands), first.Reference(s.c.Rec))
	s.c.Findings = append(s.c.Findings, f)
}

// measurements is what the decoder reads: all rails at once, an island for its leaves.
func (s *crossSearch) measurements() (ms []isolate.Measurement) {
	of := map[*inventory.Node]string{}
	for _, i := range s.islands {
		for _, n := range i.Nodes {
			of[n] = i.Name
		}
	}
	for _, b := range slices.Concat(s.on, s.over) {
		for i, n := range b.Nodes { // each of the two sends and receives
			to := b.Nodes[1-i]
			ms = append(ms, isolate.Measurement{From: n.Name, To: to.Name, Bad: isBad(b), FromLeaf: of[n], ToLeaf: of[to]})
		}
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
func (s *crossSearch) reportLeaves(ctx context.Context, bad []*grouprun.Island) bool {
	partner := s.islands[slices.IndexFunc(s.islands, func(i *grouprun.Island) bool { return i != bad[0] })]
	for _, i := range s.islands {
		if !slices.Contains(bad, i) {
			partner = i
		}
	}
	rails, text := s.rails(ctx, bad[0], partner)
	leaves := leavesOf(bad, rails)
	rest := s.rest(ctx, bad, rails)
	f := stage.Finding{Cause: fmt.Sprintf("what crosses leaf %s is slow: %s", strings.Join(leaves, " or "), s.worst(bad)), Action: rail.DoUplinks(leaves),
		Evidence: []string{s.figures(bad), "over one rail at a time, beyond the leaves: " + text, rest.Outcome(), s.b.Reference(s.c.Rec), s.badOf(bad[0].Nodes[0].Name).Reference(s.c.Rec)}}
	if len(leaves) > 1 {
		f.Cause += "; the measurements cannot tell which of them it is"
	}
	for _, l := range leaves {
		f.Suspects = append(f.Suspects, rail.SuspectLeaf(l))
	}
	s.c.Findings = append(s.c.Findings, f)
	if rest != nil && rest.Why != "" {
		s.c.BlameSet(rest, "it is bad without what is suspected as well")
		return true
	}
	for _, b := range append(slices.Clone(s.over), s.b) {
		if b.Why != "" && (b == s.b || slices.ContainsFunc(bad, func(i *grouprun.Island) bool { return i.Has(b.Nodes) })) {
			b.Explained = "switch " + strings.Join(leaves, " or ")
		}
	}
	return true
}

// leavesOf are the leaves on which islands end with some of their rails; with all of
// them when none is named.
func leavesOf(islands []*grouprun.Island, rails []int) (leaves []string) {
	for _, i := range islands {
		for _, r := range i.Rails {
			if l := i.Leaves[r]; (len(rails) == 0 || slices.Contains(rails, r)) && !slices.Contains(leaves, l) {
				leaves = append(leaves, l)
			}
		}
	}
	return leaves
}

// rails are those over which two islands are slow, when the others are not; none
// where no rail stands out, or all end on one leaf. What each carries is said.
func (s *crossSearch) rails(ctx context.Context, a, b *grouprun.Island) (slow []int, text string) {
	var words []string
	medians := map[int]float64{}
	for _, r := range a.Rails {
		m := s.overRail(ctx, a.Between(b), r)
		medians[r] = m
		words = append(words, fmt.Sprintf("rail %d %s", r, result.FormatRate(m)))
	}
	usual := medianOf(medians)
	for _, r := range a.Rails {
		if medians[r] < verdict.CohortShare*usual {
			slow = append(slow, r)
		}
	}
	if 2*len(slow) >= len(a.Rails) || len(a.Switches()) < 2 {
		slow = nil
	}
	return slow, strings.Join(words, ", ")
}

// overRail is the median bandwidth of pairs over one rail, side by side.
func (s *crossSearch) overRail(ctx context.Context, sets [][]*inventory.Node, rail int) float64 {
	runs := make([]*grouprun.Run, len(sets))
	for i, set := range sets {
		runs[i] = &grouprun.Run{Scope: grouprun.CrossLeaf, Nodes: set, Rail: rail + 1}
	}
	s.c.RunAll(ctx, runs)
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
func (s *crossSearch) rest(ctx context.Context, bad []*grouprun.Island, rails []int) *grouprun.Run {
	b := &grouprun.Run{Scope: s.b.Scope, Nodes: s.b.Nodes, Skip: rails}
	if len(rails) == 0 {
		b.Nodes = slices.DeleteFunc(slices.Clone(s.b.Nodes), func(n *inventory.Node) bool {
			return slices.ContainsFunc(bad, func(i *grouprun.Island) bool { return slices.Contains(i.Nodes, n) })
		})
	}
	if len(b.Nodes) < 2 || len(bad[0].Rails) <= len(rails) {
		return nil
	}
	s.c.Try(ctx, b)
	s.c.JudgeAlone(b)
	s.c.Done = append(s.c.Done, b)
	return b
}

// worst is the slowest pair that crosses the leaves of islands.
func (s *crossSearch) worst(bad []*grouprun.Island) string {
	var w *grouprun.Run
	for _, b := range s.over {
		if b.Why != "" && bad[0].Has(b.Nodes) && (w == nil || b.Got.BusBW < w.Got.BusBW) {
			w = b
		}
	}
	if w == nil {
		return "no pair was measured"
	}
	return fmt.Sprintf("%s with %s: %s", w.Nodes[0].Name, w.Nodes[1].Name, w.Why)
}

// figures are the medians on the leaves and across them.
func (s *crossSearch) figures(bad []*grouprun.Island) string {
	onLeaf, cross, others := map[*grouprun.Run]float64{}, map[*grouprun.Run]float64{}, map[*grouprun.Run]float64{}
	for _, b := range s.on {
		if bad[0].Has(b.Nodes) {
			onLeaf[b] = b.Got.BusBW
		}
	}
	for _, b := range s.over {
		if slices.ContainsFunc(bad, func(i *grouprun.Island) bool { return i.Has(b.Nodes) }) {
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
