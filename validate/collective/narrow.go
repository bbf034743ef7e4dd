// SPDX-License-Identifier: Apache-2.0

package collective

import (
	"context"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// narrow tries both sides of each bad pair with nodes of good pairs. A node that
// is bad with every other one is the suspect; when neither or both are, or nobody
// is left to try them with, the pair stays bad and no node is named.
func (c *collective) narrow(ctx context.Context, runs []*grouprun.Run) {
	var healthy []*inventory.Node
	for _, b := range runs {
		if b.Why == "" {
			healthy = append(healthy, b.Nodes...)
		}
	}
	if len(healthy) == 0 && c.BlameAll(runs) {
		return
	}
	for _, b := range runs {
		switch {
		case b.Why == "":
		case c.SuspectIndirect(b):
			c.restOf(ctx, b, healthy)
		case !c.suspectNamed(b) && len(healthy) > 0:
			c.trySides(ctx, b, healthy)
		}
	}
	for _, b := range runs {
		if b.Why != "" && len(healthy) == 0 && len(c.Among(b)) == 0 {
			c.BlameSet(b, "no pair is good, so nobody is left to try its nodes with")
		}
	}
}

// trySides tries both nodes of a bad pair with good nodes, and blames what that says.
func (c *collective) trySides(ctx context.Context, b *grouprun.Run, healthy []*inventory.Node) {
	var bad []string
	for _, n := range b.Nodes {
		if c.badWith(ctx, n, healthy) {
			bad = append(bad, n.Name)
		}
	}
	switch len(bad) {
	case 1:
		c.SuspectRails(ctx, b, bad[0], healthy, "it is bad with other partners as well, and the other of the pair is good with them")
	case 2:
		for _, n := range bad {
			c.SuspectRails(ctx, b, n, healthy, "it is bad with other partners as well")
		}
	default:
		c.BlameSet(b, "each of the two is good with other partners: what lies between them is bad, or it was so only once")
	}
}

// badWith reports whether a node is bad with every partner that it is tried with.
func (c *collective) badWith(ctx context.Context, n *inventory.Node, healthy []*inventory.Node) bool {
	tried := 0
	for _, h := range healthy {
		if h == n || tried == grouprun.Partners || ctx.Err() != nil {
			continue
		}
		tried++
		again := c.RunSets(ctx, "pair", [][]*inventory.Node{{n, h}})
		again[0].Again = n.Name
		c.Evaluate(again)
		if again[0].Why == "" {
			return false
		}
	}
	return tried > 0
}

// suspectNamed blames the node that the run itself names: the one that Open MPI or
// SSH could not reach.
func (c *collective) suspectNamed(b *grouprun.Run) bool {
	if c.SuspectIndirect(b) {
		return true
	}
	if b.Err == nil {
		if b.Scope != "pair" {
			c.BlameSet(b, "with these members the run cannot be narrowed down; smaller scopes find a bad node")
		}
		return false
	}
	if b.Named != "" && len(b.Nodes) > 1 {
		c.SuspectNode(b, b.Named, "the run itself names "+b.Named)
		return true
	}
	if b.Scope != "pair" {
		c.BlameSet(b, "the output names no node")
	}
	return false
}

// searchPairs finds the nodes that make a run over many slow, by pairs of them side by side,
// and runs the others once more. It reports whether a node was found: where every pair is
// good, the run stays bad and no node is named.
func (c *collective) searchPairs(ctx context.Context, b *grouprun.Run) bool {
	if b.Err != nil || len(b.Nodes) < 4 { // of fewer none is known to be good
		return false
	}
	c.Rec.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("the %s over %s is slow: looking for the node, by pairs", b.Title(), result.NameSome(target.NodeNames(b.Nodes)))})
	pairs := c.RunSets(ctx, "pair", c.Group.Sets("pair", b.Nodes))
	c.Evaluate(pairs)
	isGood := func(r *grouprun.Run) bool { return r.Why == "" }
	if ctx.Err() != nil || c.Cut != nil || !slices.ContainsFunc(pairs, isGood) || !slices.ContainsFunc(pairs, func(r *grouprun.Run) bool { return !isGood(r) }) {
		return false
	}
	c.narrow(ctx, pairs)
	if len(c.Among(b)) == 0 {
		return false
	}
	c.withoutSuspects(ctx, b)
	return true
}

// restOf tries the other node of a pair with good partners, when one was named.
func (c *collective) restOf(ctx context.Context, b *grouprun.Run, healthy []*inventory.Node) {
	for _, n := range b.Nodes {
		if !slices.Contains(c.Suspects, n.Name) && len(healthy) > 0 && c.badWith(ctx, n, healthy) {
			c.SuspectRails(ctx, b, n.Name, healthy, "it is bad with other partners as well")
		}
	}
}

// narrowDomains blames the nodes of bad runs over NVLink domains that do not use the NVLink
// between nodes, and runs the others of their domain once more.
func (c *collective) narrowDomains(ctx context.Context, runs []*grouprun.Run) {
	for _, b := range runs {
		switch {
		case b.Why == "":
		case !c.SuspectOutside(b):
			c.suspectNamed(b)
		default:
			c.withoutSuspects(ctx, b)
		}
	}
}

// withoutSuspects runs over the nodes of a bad run that nothing speaks against, once more.
func (c *collective) withoutSuspects(ctx context.Context, b *grouprun.Run) {
	rest := slices.DeleteFunc(slices.Clone(b.Nodes), func(n *inventory.Node) bool { return slices.Contains(c.Suspects, n.Name) })
	if len(rest) < 2 || ctx.Err() != nil {
		return
	}
	again := c.RunSets(ctx, b.Scope, [][]*inventory.Node{rest})
	c.Evaluate(again)
	if again[0].Why != "" {
		c.BlameSet(again[0], "it is bad without what is suspected as well")
	}
}
