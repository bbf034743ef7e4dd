// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// Prior is what the state says was done before: all that Diff compares with.
type Prior struct {
	Lineage string
	Steps   map[StepID]LastSuccess
	Nodes   map[string]NodeState
	Facts   map[fact.Key]fact.Fact
	// Find looks up a fact that is not among Facts; nil: there are no others. A
	// site has many times the facts that a plan reads. Safe for concurrent use.
	Find func(fact.Key) (fact.Fact, bool)
}

// LastSuccess is the last good end of a step.
type LastSuccess struct {
	Version int // of the stage's fingerprint when it was recorded
	Inputs  []Input
	At      time.Time
}

// NodeState is where one node stands.
type NodeState struct {
	Version     uint64 // of the node's object in the store; 0: none
	Accepted    bool
	Adopted     bool   // recorded as found: runs, unverified
	Held        string // why it is on hold; "" when it is not
	Quarantined string // cause; "" when it is not
	Lost        bool   // it was in service once and is not now: a change failed, or a test found something
}

// Known reports whether the state says anything about the node's installation.
func (n NodeState) Known() bool { return n.Accepted || n.Adopted }

// InService reports whether somebody may be using the node.
func (n NodeState) InService() bool { return n.Known() && !n.Lost }

// Presence is what a look at a node that the state does not know has shown.
type Presence struct {
	Running  bool   // powered on, or answering: somebody may be using it
	Evidence string // what was seen
}

// Options are the operator's options and the site's rules for one plan.
type Options struct {
	Site      string
	MaxErase  int
	Replace   map[string]bool     // nodes to reinstall, accepted or not
	Retest    map[string]bool     // nodes in service to drain and test again, as they are
	Targets   map[string]bool     // nodes to plan for; empty: all
	Protected map[string]bool     // nodes that no plan ever erases
	Presence  map[string]Presence // observed nodes that the state does not know
	// Ambiguous says of an erasing step why it is not known what it would erase; the zero
	// Reason: it is known. nil: so it is of all.
	Ambiguous func(*Step) (Reason, error)

	// Rollouts say how changes reach nodes in service, by role, and RoleOf which
	// role a node has. A node without one is changed with everything else.
	Rollouts map[string]Rollout
	RoleOf   map[string]string
	// Observed holds what a look at the world has shown: of steps that were done, and
	// of others what they would meet.
	Observed map[StepID]Observation
	// Retired are nodes that the site does not have any more and that the operator
	// wants decommissioned; Gone are the others that the state still knows.
	Retired  map[string]bool
	Orphaned []string
}

// Reason says why something is refused, and what to do.
type Reason struct{ Cause, Action string }

// Rollout is how a change reaches the nodes of one role that are in service.
type Rollout struct {
	Given     bool // the site says so: only then are nodes erased by an edit
	Canary    int  // nodes of the first wave
	Batch     int  // nodes of each later wave
	StopAfter int  // failures that stop it
	Decl      SourceRange
}

// Observation is what a look at the world has shown of a step, or what an earlier one did.
type Observation struct {
	Differs  bool // else it was found as it should be, or could not be told
	Evidence string
	// Operations are what the step would write there, where the stage can tell;
	// Evidence then says since when that is known.
	Operations []Operation
	// Tells are the names of inputs of which the operations, or that there are none,
	// say more than their values: those are digests. nil: of a stage without operations.
	Tells map[string]bool
}

// Fact implements the View that stages plan with.
func (p Prior) Fact(k fact.Key) (fact.Fact, bool) {
	f, ok := p.Facts[k]
	if !ok && p.Find != nil {
		return p.Find(k)
	}
	return f, ok
}

// InService reports whether somebody may be using a node.
func (p Prior) InService(node string) bool { return p.Nodes[node].InService() }

// eachNode gives f the name of each node that a step works on.
func eachNode(s *Step, f func(string)) {
	if s.Group == nil {
		if s.Subject.Kind == subject.Node {
			f(s.Subject.Name)
		}
		return
	}
	for _, m := range s.Group.Members {
		if m.Kind == subject.Node {
			f(m.Name)
		}
	}
}

// nodeOf returns the node that a step is about; "" when it is about no single one.
func nodeOf(s *Step) string {
	if s.Subject.Kind == subject.Node {
		return s.Subject.Name
	}
	return ""
}
