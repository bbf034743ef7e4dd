// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// A fault may wait for a step. It happens when the first step begins that has the
// name and is of the fault's node: the node's own, or one of a group with it.

// actionOf is what a step is called without its subject and its wave: install.write.
func actionOf(id string) string {
	base := string(plan.StepID(id).Base())
	return base[strings.LastIndexByte(base, '/')+1:]
}

// stepMatches reports whether a step id is of the kind that a fault names:
// n1/install.write by install.write or by install.
func stepMatches(id, at string) bool {
	action := actionOf(id)
	return at != "" && (action == at || strings.HasPrefix(action, at+"."))
}

// isOf reports whether a step is a node's own, or of a group with it.
func (t *Rehearsal) isOf(id, node string) bool {
	st := t.steps[id]
	return st != nil && works(st, node)
}

func works(st *plan.Step, node string) bool {
	me := subject.OfNode(node)
	return st.Subject == me || st.Group != nil && slices.Contains(st.Group.Members, me)
}

// happensAt reports whether a fault that waits for a step happens when this one
// begins. A step of the site is meant by its whole name only: what is made ready for
// all nodes before they come is no step of theirs, and a test of all with the
// switches between them is not either.
func happensAt(f fault.Fault, st *plan.Step) bool {
	id := string(st.ID)
	switch {
	case !stepMatches(id, f.At):
		return false
	case st.Subject.Kind != subject.Node && st.Group == nil:
		return actionOf(id) == f.At
	}
	return f.Node == "" || works(st, f.Node)
}

// plantAt plants the faults that wait for the step that begins.
func (t *Rehearsal) plantAt(e event.Event) {
	st := t.steps[e.Step]
	if st == nil {
		return
	}
	t.mu.Lock()
	var now, later []fault.Fault
	for _, f := range t.waiting {
		if happensAt(f, st) && t.feeds(f, st) {
			now = append(now, f)
		} else {
			later = append(later, f)
		}
	}
	t.waiting = later
	t.mu.Unlock()
	for _, f := range now {
		if err := t.begin(f); err != nil {
			t.note(fmt.Sprintf("fault %s cannot be planted: %v", f.Kind, err))
		}
	}
}

// feeds reports whether a step is about what a PDU feeds, for a fault of one. One that
// feeds no node may fail at the step of any.
func (t *Rehearsal) feeds(f fault.Fault, st *plan.Step) bool {
	if f.PDU == "" || st.Subject.Kind != subject.Node {
		return true
	}
	n, ok := t.inv.Node(st.Subject.Name)
	return !ok || hangsOn(n, f.PDU) || !slices.ContainsFunc(t.inv.Nodes, func(n *inventory.Node) bool { return hangsOn(n, f.PDU) })
}

// hangsOn reports whether a PDU feeds a node.
func hangsOn(n *inventory.Node, pdu string) bool {
	return slices.ContainsFunc(n.Feeds, func(feed inventory.Feed) bool { return feed.PDU != nil && feed.PDU.Name == pdu })
}

// timely refuses faults that wait for a step which the plan does not have: they
// would never happen. The step that a kind of fault waits for by itself may be of a
// part of the site that is left out, and is let pass.
func timely(p *plan.Plan, faults []fault.Fault) error {
	var wrong error
	for _, f := range faults {
		row, _ := fault.FindRow(f.Kind)
		if f.At == "" || f.At == row.At || f.At == fault.Accepted {
			continue
		}
		if err := inTime(p, f); err != nil {
			wrong = errors.Join(wrong, err)
		}
	}
	return wrong
}

// inTime looks for the step that one fault waits for.
func inTime(p *plan.Plan, f fault.Fault) error {
	var have []string // names of the steps at which it could happen, in the order of the plan
	named := false
	for i := range p.Steps {
		st := &p.Steps[i]
		action := actionOf(string(st.ID))
		any := f
		any.At = action
		switch {
		case happensAt(f, st):
			return nil
		case stepMatches(string(st.ID), f.At):
			named = true
		}
		if happensAt(any, st) && !slices.Contains(have, action) {
			have = append(have, action)
		}
	}
	where, of := "", "of this plan"
	if f.AtDecl.Filename != "" {
		where = fmt.Sprintf("%s:%d,%d: ", f.AtDecl.Filename, f.AtDecl.Start.Line, f.AtDecl.Start.Column)
	}
	if named && f.Node != "" {
		of = "of " + f.Node + " or of a group with it"
	}
	guess := ""
	if near := diag.Nearest(f.At, have); near != "" {
		guess = fmt.Sprintf(" Did you mean %q?", near)
	}
	return errkind.New(errkind.NotFound, "%sfault %s is to happen at %q, which is no step %s: it would never happen.%s The steps are %s.",
		where, f.Kind, f.At, of, guess, strings.Join(have, ", "))
}
