// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Result is how a run ended, of every step and every node of its plan.
type Result struct {
	Run     string         `json:"run"`
	Plan    string         `json:"plan"`
	Started time.Time      `json:"started"`
	Ended   time.Time      `json:"ended"`
	Outcome string         `json:"outcome"` // state.RunDone, RunSomeFailed, RunInterrupted or RunDrained
	Nodes   []NodeResult   `json:"nodes"`   // in the order of the plan
	Steps   []StepResult   `json:"steps"`   // in the order of the plan
	Counts  map[string]int `json:"counts"`  // steps by state

	// Findings are what was reported of no step, all that the steps made, and the causes of those that failed
	// without one, in the order of the plan.
	Findings []stage.Finding `json:"findings,omitempty"`

	// Unmanaged are the nodes that the plan left unmanaged: nothing was done to them.
	Unmanaged []plan.Unmanaged `json:"unmanaged,omitempty"`
}

// NodeOutcome is how a node stands at the end of a run.
type NodeOutcome string

// The outcomes of a node.
const (
	NodeDone        NodeOutcome = "done"        // all its steps ended well
	NodeQuarantined NodeOutcome = "quarantined" // see Finding
	NodeHeld        NodeOutcome = "held"
	NodeWaiting     NodeOutcome = "waiting"     // its rollout was stopped before it; it stands as before
	NodeStraggler   NodeOutcome = "late"        // a test of its group went on without it; the next apply tests it
	NodeSkipped     NodeOutcome = "skipped"     // some steps were not started, by no fault of it: see Cause
	NodeInterrupted NodeOutcome = "interrupted" // the run stopped before its last step
	NodeActive      NodeOutcome = "active"      // the run goes on; in Status only
)

// NodeResult is one node of a result.
type NodeResult struct {
	Name     string         `json:"name"`
	Outcome  NodeOutcome    `json:"outcome"`
	Accepted bool           `json:"accepted"`
	Finding  *stage.Finding `json:"finding,omitempty"`
	Cause    *state.Cause   `json:"cause,omitempty"`
}

// StepResult is one step of a result.
type StepResult struct {
	ID       plan.StepID  `json:"id"`
	State    string       `json:"state"` // done, failed, skipped, interrupted; else it was never settled
	Started  time.Time    `json:"started,omitzero"`
	Ended    time.Time    `json:"ended,omitzero"`
	Observed bool         `json:"observed,omitempty"` // it was so already
	Kind     errkind.Kind `json:"kind,omitempty"`     // of the error
	Error    string       `json:"error,omitempty"`
	Cause    *state.Cause `json:"cause,omitempty"`
}

// endRun journals the outcome and returns the result.
func (e *Executor) endRun() (Result, error) {
	e.reporting.Lock()
	e.over = true
	e.reporting.Unlock()
	e.mu.Lock()
	r := e.result()
	e.mu.Unlock()
	if err := e.ledger.failure(); err != nil {
		r.Outcome = state.RunInterrupted
		return r, fmt.Errorf("run %s stopped: its records cannot be written: %w", e.run.ID, err)
	}
	e.run.Ended, e.run.Outcome = e.clock.Now().UTC(), r.Outcome
	r.Ended = e.run.Ended
	if err := e.ledger.recordRunEnd(e.run); err != nil {
		return r, fmt.Errorf("run %s: %w", e.run.ID, err)
	}
	e.emit(event.Event{Type: event.RunEnded, Text: r.Outcome})
	return r, nil
}

// result makes the result as of now. Called with e.mu held.
func (e *Executor) result() Result {
	r := Result{Run: e.run.ID, Plan: e.run.Plan, Started: e.run.Started, Counts: map[string]int{},
		Findings: slices.Clone(e.found), Unmanaged: e.cfg.Plan.Unmanaged}
	all := true
	for _, t := range e.graph.tasks {
		r.Steps = append(r.Steps, t.result())
		r.Counts[t.state.String()]++
		r.Findings = append(r.Findings, t.blamed...)
		if t.state == failed && len(t.blamed) == 0 {
			r.Findings = append(r.Findings, t.root.finding)
		}
		all = all && t.state.settled() && t.cause.Kind != state.ByInterrupt
	}
	r.Nodes = e.nodeResults()
	switch {
	case !all && e.drained:
		r.Outcome = state.RunDrained
	case !all:
		r.Outcome = state.RunInterrupted
	case len(r.Findings) > 0, r.Counts[done.String()] < len(r.Steps), slices.ContainsFunc(r.Nodes, func(n NodeResult) bool { return n.Outcome != NodeDone }):
		r.Outcome = state.RunSomeFailed
	default:
		r.Outcome = state.RunDone
	}
	return r
}

func (t *task) result() StepResult {
	s := StepResult{ID: t.step.ID, State: t.state.String(), Started: t.started, Ended: t.ended, Observed: t.observed}
	if t.err != nil {
		s.Kind, s.Error = t.kind, errkind.Line(t.err)
	}
	if t.cause != (state.Cause{}) {
		c := t.cause
		s.Cause = &c
	}
	return s
}

// nodeResults judges each node by its own steps. Called with e.mu held.
func (e *Executor) nodeResults() []NodeResult {
	g := e.graph
	out := make([]NodeResult, len(g.nodes))
	for i, n := range g.nodes {
		out[i] = NodeResult{Name: n, Outcome: NodeDone}
	}
	for _, t := range g.tasks {
		if t.node >= 0 {
			out[t.node].worsen(t)
		}
	}
	for i, m := range e.ledger.conditionsOf(g.nodes) {
		out[i].Accepted = m.accepted
		switch {
		case m.finding != nil:
			out[i].Outcome, out[i].Finding = NodeQuarantined, m.finding
		case m.hold != nil:
			c := m.cause()
			out[i].Outcome, out[i].Cause = NodeHeld, &c
		}
	}
	return out
}

// worsen worsens a node's outcome by one of its steps.
func (n *NodeResult) worsen(t *task) {
	switch {
	case !t.state.settled() || t.cause.Kind == state.ByInterrupt:
		n.Outcome = NodeInterrupted
	case t.state != done && n.Outcome == NodeDone:
		c := t.cause
		n.Outcome, n.Cause = NodeSkipped, &c
		switch c.Kind {
		case state.ByRollout:
			n.Outcome = NodeWaiting
		case state.ByStraggler:
			n.Outcome = NodeStraggler
		}
	}
}

func (l *ledger) accepted(node string) bool { return l.condition(node).accepted }

// Status is a run as it stands now.
type Status struct {
	Run      string         `json:"run"`
	Plan     string         `json:"plan"`
	Started  time.Time      `json:"started"`
	Draining bool           `json:"draining,omitempty"`
	Counts   map[string]int `json:"counts"`
	Nodes    []NodeStatus   `json:"nodes"`
	Active   []StepStatus   `json:"active"` // running, or waiting for a resource
	// Approvals say who let the plan be applied; see state.Run.
	Approvals []state.Approval `json:"approvals,omitempty"`
	// Findings are what was reported of no step until now: about the site, and no node.
	Findings []stage.Finding `json:"findings,omitempty"`
}

// NodeStatus is one node of a status.
type NodeStatus struct {
	NodeResult
	Done  int `json:"done"` // steps of its own that are settled
	Total int `json:"total"`
}

// StepStatus is a step that is under way.
type StepStatus struct {
	ID      plan.StepID `json:"id"`
	Stage   string      `json:"stage"`
	Node    string      `json:"node,omitempty"`
	Members []string    `json:"members,omitempty"` // of a group
	State   string      `json:"state"`             // running or waiting
	Text    string      `json:"text"`              // what it does or waits for
	Since   time.Time   `json:"since,omitzero"`
	Until   time.Time   `json:"until,omitzero"` // its deadline, or that of the wait
	Limit   time.Time   `json:"limit,omitzero"` // its own deadline; it fails then at the latest
	Next    time.Time   `json:"next,omitzero"`  // when it is tried again; Until is the same then
	Done    int64       `json:"done,omitempty"`
	Total   int64       `json:"total,omitempty"`
	Slow    bool        `json:"slow,omitempty"`  // it runs for longer than its P95
	Tries   int         `json:"tries,omitempty"` // that failed before this one
}

// Status returns the run as it stands now.
func (e *Executor) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Status{Run: e.run.ID, Plan: e.run.Plan, Started: e.run.Started, Draining: e.drained, Counts: map[string]int{},
		Approvals: slices.Clone(e.run.Approvals), Findings: slices.Clone(e.found)}
	g := e.graph
	settled, total := make([]int, len(g.nodes)), make([]int, len(g.nodes))
	var counts [len(stateNames)]int
	for _, t := range g.tasks {
		counts[t.state]++
		if t.node >= 0 {
			total[t.node]++
			if t.state.settled() {
				settled[t.node]++
			}
		}
		if t.state == running || t.state == ready && t.lacks != "" {
			s.Active = append(s.Active, e.stepStatus(t))
		}
	}
	for i, n := range counts {
		if n > 0 {
			s.Counts[stateNames[i]] = n
		}
	}
	s.Nodes = make([]NodeStatus, len(g.nodes))
	for i, n := range e.nodeResults() {
		if n.Outcome == NodeInterrupted && !e.stopping {
			n.Outcome = NodeActive
		}
		s.Nodes[i] = NodeStatus{NodeResult: n, Done: settled[i], Total: total[i]}
	}
	return s
}

func (e *Executor) stepStatus(t *task) StepStatus {
	s := StepStatus{ID: t.step.ID, Stage: t.step.Stage, Node: nodeOf(t.step), State: t.state.String(), Text: t.step.Title}
	if t.state == ready {
		s.Text = e.graph.resources.describeWait(t.lacks)
		return s
	}
	s.Since, s.Limit = t.started, t.started.Add(t.step.Deadline.Limit)
	s.Until = s.Limit
	if t.step.Group != nil {
		for _, m := range t.members {
			s.Members = append(s.Members, m.Name)
		}
	}
	s.Slow, s.Tries = t.run.slowAndTries()
	if p := t.run.progress(); p.Type == event.StepProgress {
		s.Text, s.Done, s.Total = p.Text, p.Done, p.Total
		if !p.Until.IsZero() {
			s.Until = p.Until
		}
		if p.Data[nextTryKey] != "" {
			s.Next = p.Until
		}
	}
	return s
}
