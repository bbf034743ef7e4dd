package validate

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/accept"
	"github.com/ironrail/ironrail/validate/allreduce"
	"github.com/ironrail/ironrail/validate/bandwidth"
	"github.com/ironrail/ironrail/validate/burn"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/pair"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/uniform"
)

// Scope is what one step of a check is about.
type Scope string

// The scopes.
const (
	Node  Scope = "node"
	Role  Scope = "role"  // the nodes of a role, compared by what was read of them
	Pair  Scope = "pair"  // the nodes of a validation block, two at a time
	Group Scope = "group" // the nodes of a validation block, together
	Site  Scope = "site"  // all nodes
)

// Check is one kind of test of the stage. Its steps are named TARGET/validate.NAME, and
// so is the fact of its last result.
type Check struct {
	Name   string
	Scope  Scope
	Needs  []string                 // checks before it; of those that are planned for its nodes
	For    func(target.Target) bool // whether a target has it; of a role and of the site each of the nodes is asked for
	Fewest int                      // of the nodes of a role
	Plan   func(target.Request) plan.Step
	Run    func(context.Context, *target.Job) error
}

// Checks are all tests of the stage, in the order in which they are done.
var Checks = []Check{
	{Name: "gates", Scope: Node, For: ofNode(target.Gated), Plan: gate.Plan, Run: gate.Run},
	{Name: "uniform", Scope: Role, Needs: []string{"gates"}, For: ofNode(target.Gated), Fewest: uniform.Fewest, Plan: uniform.Plan, Run: uniform.Run},
	{Name: "bandwidth", Scope: Node, Needs: []string{"gates"}, For: ofNode(target.Gated), Plan: bandwidth.Plan, Run: bandwidth.Run},
	{Name: "burn", Scope: Node, Needs: []string{"gates", "bandwidth"}, For: ofNode(burn.Asked), Plan: burn.Plan, Run: burn.Run},
	{Name: "heat", Scope: Role, Needs: []string{"burn"}, For: ofNode(burn.Asked), Fewest: burnin.Fewest, Plan: burn.PlanHeat, Run: burn.RunHeat},
	{Name: "pair", Scope: Pair, Needs: []string{"gates", "uniform", "bandwidth", "burn", "heat"}, For: pair.Asked, Plan: pair.Plan, Run: pair.Run},
	{Name: "all_reduce", Scope: Group, Needs: []string{"gates", "uniform", "bandwidth", "burn", "heat", "pair"}, For: allreduce.Asked, Plan: allreduce.Plan, Run: allreduce.Run},
	{Name: "accept", Scope: Node, Needs: []string{"gates", "uniform", "bandwidth", "burn", "heat", "pair", "all_reduce"}, For: func(target.Target) bool { return true }, Plan: accept.Plan, Run: accept.Run},
}

// together reports whether a step of the check is about the nodes of a validation block.
func (c *Check) together() bool { return c.Scope == Pair || c.Scope == Group }

// wait is how a step of a check waits for one of another check that is about some
// target. A node goes on when it passed; a group and a role go on with those nodes
// that are left; a comparison is done when it has named the odd ones.
func (c *Check) wait(o *Check, name string) plan.Need {
	n := plan.Need{Step: target.StepID(name, o.Name), On: plan.Settled}
	switch {
	case c.Scope == Node && o.Scope != Role:
		n.On = plan.Success
	case c.Scope == Role || o.together():
		n.Renews = true
	}
	return n
}

// before are the checks of a list that one of them needs.
func before(all []Check, c *Check, of func(*Check) bool) (list []*Check) {
	for i := range all {
		if o := &all[i]; of(o) && slices.Contains(c.Needs, o.Name) {
			list = append(list, o)
		}
	}
	return list
}

// ofNode asks a target's node.
func ofNode(has func(*inventory.Node) bool) func(target.Target) bool {
	return func(t target.Target) bool { return has(t.Node) }
}
