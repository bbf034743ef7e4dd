// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"maps"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
)

// TestApprovalIsTold: who let a run begin, how, and how many erasures of which budget
// stand in its events and in its status; a resumed run has the approvals of both.
func TestApprovalIsTold(t *testing.T) {
	t.Parallel()
	store := state.NewMemory()
	run := func(resume bool, a *state.Approval) ([]event.Event, apply.Status) {
		c := config(t, store, steps("n1/a"), only(func(context.Context, stage.Run, plan.Step) error { return nil }))
		c.Bus, c.Approval, c.Resume = event.NewBus(100), a, resume
		e := must[*apply.Executor](t)(apply.New(t.Context(), c))
		status := e.Status()
		must[apply.Result](t)(e.Run(t.Context()))
		var told []event.Event
		for sub := c.Bus.Subscribe(0); ; {
			v, ok := sub.Ready()
			if !ok {
				return told, status
			}
			if v.Type == event.RunStarted || v.Type == event.Approved {
				told = append(told, v)
			}
		}
	}
	ann := &state.Approval{By: "ann", Host: "head1", How: state.ByTyping, Erase: 4, MaxErase: new(2), Sum: "5f0c"}
	told, status := run(false, ann)
	want := map[string]string{"by": "ann", "host": "head1", "how": "typed", "erase": "4", "max_erase": "2", "sum": "5f0c"}
	if len(told) != 2 || told[1].Type != event.Approved || told[1].Run == "" || told[1].Text != "ann on head1 (typed), erases 4 nodes (max_erase is 2)" || !maps.Equal(told[1].Data, want) {
		t.Errorf("events %+v", told)
	}
	if len(status.Approvals) != 1 || status.Approvals[0] != *ann {
		t.Errorf("status %+v", status.Approvals)
	}
	bob := &state.Approval{By: "bob", Host: "head2", How: state.ByResumed}
	told, status = run(true, bob)
	if len(told) != 2 || told[1].Text != "bob on head2 (resumed), erases no node" || told[1].Data["max_erase"] != "" {
		t.Errorf("resumed: events %+v", told)
	}
	if len(status.Approvals) != 2 || status.Approvals[0].By != "ann" || status.Approvals[1].By != "bob" {
		t.Errorf("resumed: status %+v", status.Approvals)
	}
	if told, _ = run(false, nil); len(told) != 1 {
		t.Errorf("nobody was asked: events %+v", told)
	}
}
