// SPDX-License-Identifier: Apache-2.0

// Package collective tests all-reduces of GPUs over nodes, pairs, scalable units and all
// of them, and finds the node, the rail or the leaf that makes them slow.
package collective

import (
	"context"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/collective/crossing"
	"github.com/ironrail/ironrail/validate/collective/verdict"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// scopes are the sets of nodes that a collective of GPUs runs over, the smallest
// first: what is wrong with one node is found before it can spoil a larger run.
var scopes = []string{"node", "pair", grouprun.Domain, "unit", "all"}

// collective is one all-reduce test of GPUs, over every scope that the site asks
// for.
type collective struct {
	*verdict.Test
	st     plan.Step
	fabric *crossing.Fabric
	merged bool              // the run over all nodes is that over their one unit as well
	alone  []*inventory.Node // members that are bad by themselves, and take part in nothing further
}

func newCollective(j *target.Job) *collective {
	t := verdict.New(j)
	return &collective{Test: t, st: j.Step, fabric: crossing.New(t, j)}
}

// Run runs the test of a group.
func Run(ctx context.Context, j *target.Job) error { return newCollective(j).run(ctx) }

func (c *collective) run(ctx context.Context) error {
	err := c.Rec.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s/run-%d", c.st.ID, c.Rec.Clock().Now().UnixNano()),
		Kind: plan.Load, Repeatable: true,
		Does: fmt.Sprintf("load the GPUs and rails of %d nodes with all-reduces", len(c.Members)),
		Do: func(ctx context.Context) error {
			c.Forget()
			c.merged, c.alone = false, nil
			c.fabric.Begin(ctx)
			c.loaded(ctx, func(ctx context.Context) { c.scopes(ctx); c.operations(ctx); c.examine(ctx) })
			if c.Cut != nil {
				return c.notJudged(c.Cut)
			}
			return context.Cause(ctx)
		},
	})
	if err != nil {
		return err
	}
	c.fabric.End(ctx)
	return c.record(ctx)
}

// notJudged is a run whose output could not be read whole. It speaks against no
// node: the test has no result.
func (c *collective) notJudged(b *grouprun.Run) error {
	return fmt.Errorf("the %s over %s: %w (%s)", b.Title(), result.NameSome(target.NodeNames(b.Nodes)), b.Err, b.Reference(c.Rec))
}

// scopes runs every scope that the site asks for.
func (c *collective) scopes(ctx context.Context) {
	for _, scope := range scopes {
		switch {
		case !slices.Contains(c.Group.Validation.AllReduce.Scope, scope) || ctx.Err() != nil || c.Cut != nil:
		case scope == "unit" && c.oneUnit():
			c.merged = true
			c.Rec.Emit(event.Event{Type: event.Note, Text: "all nodes are in one scalable unit: the all-reduce over all of them is that of scope \"unit\" too, and runs once"})
		default:
			c.test(ctx, scope)
		}
	}
}

// oneUnit reports whether the runs of the scopes "unit" and "all" would be the same.
func (c *collective) oneUnit() bool {
	list := c.remaining()
	units := c.Group.Sets("unit", list)
	return slices.Contains(c.Group.Validation.AllReduce.Scope, "all") && len(units) == 1 && len(units[0]) == len(list)
}

// remaining are the members that nothing speaks against yet.
func (c *collective) remaining() []*inventory.Node {
	return slices.DeleteFunc(slices.Clone(c.Members), func(n *inventory.Node) bool { return slices.Contains(c.Suspects, n.Name) })
}

// test runs one scope, judges it, and looks for the node that spoils a pair.
func (c *collective) test(ctx context.Context, scope string) {
	list := c.remaining()
	runs := c.RunSets(ctx, scope, c.Group.Sets(scope, list))
	c.Evaluate(runs)
	if c.Cut != nil {
		return
	}
	switch scope {
	case "node":
		for _, b := range runs {
			if b.Why != "" {
				c.SuspectNode(b, b.Nodes[0].Name, "it alone is bad")
				c.alone = append(c.alone, b.Nodes[0])
			}
		}
	case "pair":
		c.narrow(ctx, runs)
	case grouprun.Domain:
		c.narrowDomains(ctx, runs)
	default:
		for _, b := range runs {
			switch {
			case b.Why == "" && scope == "all":
				c.fabric.LoadTrunks(ctx, b)
			case b.Why != "" && !c.fabric.SearchLeaves(ctx, b) && !c.searchPairs(ctx, b):
				c.suspectNamed(b)
			}
		}
	}
}
