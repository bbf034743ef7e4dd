// SPDX-License-Identifier: Apache-2.0

package collective

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/validate/grouprun"
)

// largest is the largest scope that the site asks for.
func (c *collective) largest() string {
	asked := c.Group.Validation.AllReduce.Scope
	for _, scope := range []string{"all", "unit", grouprun.Domain, "pair"} {
		if slices.Contains(asked, scope) {
			return scope
		}
	}
	return "node"
}

// operations runs the further collectives that the site asks for, over the largest scope
// and the nodes that nothing speaks against. The all-reduce has searched for what slows
// every collective: one that is bad alone is a finding about its nodes together, or about
// the node that it names.
func (c *collective) operations(ctx context.Context) {
	scope := c.largest()
	for _, b := range slices.Backward(c.Done) {
		if b.Scope == scope {
			if b.Why != "" {
				return // its cause is a finding, and would be one again of each operation
			}
			break
		}
	}
	for _, operation := range c.Group.Validation.AllReduce.Operations {
		list := c.remaining()
		if ctx.Err() != nil || c.Cut != nil || len(list) == 0 {
			return
		}
		runs := c.RunOperation(ctx, operation, scope, c.Group.Sets(scope, list))
		c.Evaluate(runs)
		for _, b := range runs {
			switch {
			case b.Why == "":
			case len(b.Nodes) == 1:
				c.SuspectNode(b, b.Nodes[0].Name, "it alone is bad")
			case b.Named != "":
				c.SuspectNode(b, b.Named, "the run itself names "+b.Named)
			default:
				c.BlameSet(b, "their all-reduce was good, which uses the same links")
			}
		}
	}
}
