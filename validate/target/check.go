// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/result"
)

// Check is one kind of test. Its steps are named TARGET/validate.NAME, and so is the
// fact of its last result.
type Check struct {
	Name  string
	Scope Scope
	// Needs are the checks that its targets go through before it, where these are planned
	// for them; nil: all that stand above it in the list.
	Needs    []string
	For      func(Target) bool // whether a target has it; of a role and of the site each of the nodes is asked for
	Fewest   int               // of the nodes of a role, or of the site
	Plan     func(Request) plan.Step
	Run      func(context.Context, *Job) error
	Asks     Asks
	Duration Duration
	Report   Section
	Docs     Docs
}

// Scope is what one step of a check is about.
type Scope string

// The scopes.
const (
	EachNode  Scope = "node"
	EachRole  Scope = "role"  // the nodes of a role, compared by what was read of them
	EachPair  Scope = "pair"  // the nodes of a validation block, two at a time
	EachGroup Scope = "group" // the nodes of a validation block, together
	WholeSite Scope = "site"  // all nodes, compared as those of a role
)

// Duration is how long a step of a check takes, for a site that has no past of its own.
type Duration struct {
	// Of sites, one in ten is faster than Low, half of them than Mid, and one in ten slower
	// than High.
	Low, Mid, High time.Duration
	Per            Unit   // what that is the time of
	AsPlanned      bool   // the step itself says how long it takes, and all nodes take the same
	Source         string // where the figures are from; "estimate" where nobody published one
	Words          string // what a critical path calls the step; empty: its name
}

// Unit is what a duration is the time of. The zero Unit: the whole step.
type Unit struct {
	Name string
	In   func(members int) float64 // how many of it a step over so many members takes; nil: one
}

// InLab is the source of a duration that was measured.
const InLab = "measured in examples/lab (`make lab`: QEMU without KVM, 2 cores for 2 nodes and the controller)"

// Section is the part of a site's report that shows a check.
type Section struct {
	Title string // empty: the report has none of it
	// Read returns the report of a node, role or group from the fact of its last result.
	Read func(f fact.Fact, of string) (result.Report, error)
	// Untested is said of nodes with GPUs that the check has not looked at; empty: nothing.
	Untested string
}

// AsStored reads facts that are reports themselves.
func AsStored(f fact.Fact, _ string) (result.Report, error) {
	return fact.Name[result.Report](f.Key.Name).Get(f)
}

// Docs is how the documents show a check.
type Docs struct {
	Says string // what it tests, in a few words
	Page string // of docs
}

// Together reports whether a step of the check is about the nodes of a validation block.
func (c *Check) Together() bool { return c.Scope == EachPair || c.Scope == EachGroup }

// Kind names the check's steps without their targets, and its fact.
func (c *Check) Kind() string { return StageName + "." + c.Name }

// Node makes a question to targets of one to their nodes.
func Node(has func(*inventory.Node) bool) func(Target) bool {
	return func(t Target) bool { return has(t.Node) }
}

// Any is the question of a check that every target has.
func Any(Target) bool { return true }
