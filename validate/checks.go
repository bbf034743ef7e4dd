// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/validate/accept"
	"github.com/ironrail/ironrail/validate/allreduce"
	"github.com/ironrail/ironrail/validate/bandwidth"
	"github.com/ironrail/ironrail/validate/burn"
	"github.com/ironrail/ironrail/validate/checksum"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/pair"
	"github.com/ironrail/ironrail/validate/speed"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/throughput"
	"github.com/ironrail/ironrail/validate/uniform"
)

// Check is one kind of test of the stage.
type Check = target.Check

// Checks are all tests of the stage, in the order in which they are done and shown. The
// stage plans and runs them by this list; how long they take, what a report shows of
// them and the table in docs/tests.md are read from it.
var Checks = []Check{
	gate.Check,        // the parts of a node
	uniform.Check,     // its versions, against those of its role
	bandwidth.Check,   // its GPUs, one by one
	speed.Check,       // its memory, CPUs and disks
	speed.Together,    // how fast they are, against those of its role
	burn.Check,        // its GPUs, for hours
	burn.Heat,         // how warm they got, against those of its role
	checksum.Check,    // what its GPUs compute, while they are warm
	checksum.Together, // whether those of its role compute the same
	throughput.Check,  // its other networks, with two other nodes of its role
	pair.Check,        // its rails, with one other node at a time
	allreduce.Check,   // all nodes of a validation block together
	accept.Check,      // what all of these say of a node
}

// waitNeed returns how a step of a check waits for one of another check that is about some
// target. A node goes on when it passed; a group and a role go on with those nodes
// that are left; a comparison is done when it has named the odd ones.
func waitNeed(c, o *Check, name string) plan.Need {
	n := plan.Need{Step: target.StepID(name, o.Name), On: plan.Settled}
	switch {
	case c.Scope == target.EachNode && !isComparison(o):
		n.On = plan.Success
	case isComparison(c) || o.Together():
		n.Triggers = true
	}
	return n
}

// isComparison reports whether a check holds nodes against one another by what others have
// read of them.
func isComparison(c *Check) bool { return c.Scope == target.EachRole || c.Scope == target.WholeSite }

// needs reports whether a check comes after another one of the list.
func (s *Stage) needs(c, o *Check) bool {
	if c.Needs != nil {
		return slices.Contains(c.Needs, o.Name)
	}
	for i := range s.checks {
		switch &s.checks[i] {
		case c:
			return false
		case o:
			return true
		}
	}
	return false
}

// before are the checks of some kind that one of them needs.
func (s *Stage) before(c *Check, like func(*Check) bool) (list []*Check) {
	for i := range s.checks {
		if o := &s.checks[i]; like(o) && s.needs(c, o) {
			list = append(list, o)
		}
	}
	return list
}
