package plan

import (
	"time"

	"github.com/ironrail/ironrail/provision/fact"
	"github.com/ironrail/ironrail/provision/subject"
)

// Prior is what the state says was done before: all that Diff compares with.
type Prior struct {
	Lineage string
	Steps   map[StepID]Done
	Nodes   map[string]NodeState
	Facts   map[fact.Key]fact.Fact
}

// Done is the last good end of a step.
type Done struct {
	Version int // of the stage's fingerprint when it was recorded
	Inputs  []Input
	At      time.Time
}

// NodeState is where one node stands.
type NodeState struct {
	Version     uint64 // of the node's object in the store; 0: none
	Accepted    bool
	Adopted     bool   // recorded as found: runs, unverified
	Held        string // why it is held; "" when it is not
	Quarantined string // cause; "" when it is not
}

// Known reports whether the state says anything about the node's installation.
func (n NodeState) Known() bool { return n.Accepted || n.Adopted }

// Presence is what a look at a node that the state does not know has shown.
type Presence struct {
	Running  bool   // powered on, or answering: somebody may be using it
	Evidence string // what was seen
}

// Options are the operator's wishes and the site's rules for one plan.
type Options struct {
	Site      string
	MaxErase  int
	Replace   map[string]bool     // nodes to reinstall, accepted or not
	Targets   map[string]bool     // nodes to plan for; empty: all
	Protected map[string]bool     // nodes that no plan ever erases
	Presence  map[string]Presence // observed nodes that the state does not know
}

// Fact implements the View that stages plan with.
func (p Prior) Fact(k fact.Key) (fact.Fact, bool) { f, ok := p.Facts[k]; return f, ok }

// nodesOf lists the nodes that a step works on.
func nodesOf(s Step) []string {
	if s.Group == nil {
		if s.Subject.Kind == subject.Node {
			return []string{s.Subject.Name}
		}
		return nil
	}
	var ns []string
	for _, m := range s.Group.Members {
		if m.Kind == subject.Node {
			ns = append(ns, m.Name)
		}
	}
	return ns
}
