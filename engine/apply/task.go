// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// taskState is where a step stands in this run:
//
//	pending -> ready -> running -> done, failed, interrupted, examined
//	   |         |
//	   +---------+----> skipped; failed, for what an earlier process found
//
// A release takes what was skipped or interrupted by a hold back to pending.
type taskState uint8

const (
	pending taskState = iota // waits for its needs
	ready                    // waits for a resource, or for its turn
	running
	done
	failed
	skipped     // will not be started: see the cause
	interrupted // was started and stopped
	examined    // ended for a node that is out: see plan.Step.Examines
)

var stateNames = [...]string{"pending", "waiting", "running", "done", "failed", "skipped", "interrupted", "examined"}

func (s taskState) String() string { return stateNames[s] }

func (s taskState) settled() bool { return s >= done }

// task is a step in the graph and how it fares. Guarded by Executor.mu, but for what is
// fixed once the graph is made.
type task struct {
	step     *plan.Step // of the plan; fixed
	rank     rank       // fixed
	triggers []trigger  // steps that need this one; fixed
	node     int        // place of its node in graph.nodes; -1: its subject is none; fixed

	uses       []use // what it takes of each resource, and whether it holds it
	state      taskState
	unmet      int                   // needs that are not met yet
	lacks      string                // resource that a ready task is parked on
	moves      int                   // how often it was parked elsewhere than before
	out        bool                  // its node is out, and examined: set when it is admitted
	cause      state.Cause           // why it was skipped or interrupted, or its node is out
	root       *failure              // the failure that a failed or skipped task goes back to
	members    []subject.ID          // that the step works on; set when it is admitted
	lost       []state.Loss          // of a group: the other members, and why
	stragglers map[subject.ID]string // members that it goes on without, and why
	cancel     func(error)           // stops the running step
	run        *stepRun              // of the running step

	started, ended time.Time
	observed       bool
	err            error
	kind           errkind.Kind    // of err
	blamed         []stage.Finding // made by the step
}

// failure is the root cause of failed and skipped steps.
type failure struct {
	task    *task
	finding stage.Finding
	kind    errkind.Kind
}

// isMetBy reports whether a step that t needs has ended as well as t needs it: what
// examines a node goes on after what has examined it.
func (t *task) isMetBy(on *task) bool {
	return on.state == done || on.state == examined && on.err == nil && t.step.Examines
}

// quarantinesDependents reports whether the nodes that depend on what failed are out of
// service by it: it is neither a step of another node, which is out itself, nor a gate.
func (f *failure) quarantinesDependents() bool {
	return f != nil && nodeOf(f.task.step) == "" && f.task.step.Gate == nil
}

// setRoot makes t the root cause of what depends on it.
func (t *task) setRoot(f stage.Finding, kind errkind.Kind) {
	t.root = &failure{task: t, finding: f, kind: kind}
	t.cause = state.Cause{Kind: state.ByFailure, Step: t.step.ID, Text: f.Cause}
	if t.step.Gate != nil {
		t.cause.Kind = state.ByRollout
	}
}

// trigger is a need, seen from the step that is needed.
type trigger struct {
	task *task
	on   plan.NeedKind
}

// rank orders tasks that could start now: lower first.
type rank struct{ depth, index int }

func (r rank) less(o rank) bool {
	if r.depth != o.depth {
		return r.depth < o.depth
	}
	return r.index < o.index
}

// nodeOf returns the node of a step, "" when its subject is none.
func nodeOf(s *plan.Step) string { return nodeNameOf(s.Subject) }

// nodesOf returns all nodes that a step works on or could.
func nodesOf(s *plan.Step) []string {
	var ns []string
	if n := nodeOf(s); n != "" {
		ns = append(ns, n)
	}
	if s.Group != nil {
		for _, m := range s.Group.Members {
			if m.Kind == subject.Node {
				ns = append(ns, m.Name)
			}
		}
	}
	return ns
}

// nodeNameOf returns the name of a subject that is a node, else "".
func nodeNameOf(s subject.ID) string {
	if s.Kind == subject.Node {
		return s.Name
	}
	return ""
}
