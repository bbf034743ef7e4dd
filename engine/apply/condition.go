// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// condition is what stands against a node: while it is on hold or in quarantine, nothing
// is started on it.
type condition struct {
	hold     *state.Hold
	finding  *stage.Finding // by which it is in quarantine
	kind     errkind.Kind   // of that
	doubt    string         // cause of the quarantine that this run lifted
	accepted bool
}

func conditionOf(n state.Node) (c condition) {
	c.hold, c.accepted, c.doubt = n.Hold, n.Accepted, n.Doubt
	if n.Quarantine != nil {
		c.finding, c.kind = &n.Quarantine.Finding, n.Quarantine.Kind
	}
	return c
}

func (c condition) blocked() bool { return c.hold != nil || c.finding != nil }

// hasBadPart reports whether a node is out because something of it is not as it must be,
// so that it can be examined further: it answers, and nobody holds it.
func (c condition) hasBadPart() bool {
	return c.hold == nil && c.finding != nil && c.kind.Base() == errkind.Mismatch
}

// cause is why nothing is started on a node that is blocked.
func (c condition) cause() state.Cause {
	if c.hold == nil {
		return state.Cause{Kind: state.ByFinding, Step: plan.StepID(c.finding.Step), Text: c.finding.Cause}
	}
	text := "on hold (" + c.hold.By
	if c.hold.Reason != "" {
		text += ": " + c.hold.Reason
	}
	return state.Cause{Kind: state.ByHold, Text: text + ")"}
}

// condition returns what stands against a node; nothing for the name "".
func (l *ledger) condition(node string) condition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conditions[node]
}

// conditionsOf returns what stands against each of these nodes.
func (l *ledger) conditionsOf(nodes []string) []condition {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]condition, len(nodes))
	for i, n := range nodes {
		out[i] = l.conditions[n]
	}
	return out
}

// anyQuarantined reports whether any node is in quarantine.
func (l *ledger) anyQuarantined() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conditions {
		if c.finding != nil {
			return true
		}
	}
	return false
}

// setHold holds a node in memory; nil releases it.
func (l *ledger) setHold(node string, h *state.Hold) {
	l.changeCondition(node, func(c *condition) { c.hold = h })
}

// setFinding quarantines a node in memory, ahead of the record that recordSkips writes.
// The first finding stays.
func (l *ledger) setFinding(node string, f *failure) {
	l.changeCondition(node, func(c *condition) {
		if c.finding == nil {
			c.finding, c.kind = &f.finding, f.kind
		}
	})
}

// clearFinding takes a node out of quarantine in memory.
func (l *ledger) clearFinding(node string) {
	l.changeCondition(node, func(c *condition) { c.finding = nil })
}

func (l *ledger) changeCondition(node string, change func(*condition)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conditions[node]
	change(&c)
	l.conditions[node] = c
}

// heldCause names the hold that stopped a step on these nodes.
func (l *ledger) heldCause(nodes []string) state.Cause {
	for _, n := range nodes {
		if c := l.condition(n); c.hold != nil {
			cause := c.cause()
			cause.Text = n + " is " + cause.Text
			return cause
		}
	}
	return state.Cause{Kind: state.ByHold, Text: errHeld.Error()}
}
