// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// A test of a group waits for all of its members to settle. When a quorum has come and
// the last few keep it waiting, the test goes on without these stragglers. To straggle is
// no fault: the next plan tests them with a few of the others.
//
// The others wait for the P95 of the slowest step that a straggler has left before the
// test, counted from the moment when the last of the others came. A node whose step waits
// for a resource is no straggler, since its turn has not come, and no node is left behind
// for a step that is of no node.
const (
	minPatience       = 5 * time.Minute // however short the step
	maxPatience       = time.Hour       // whatever the step: a room of idle nodes costs more than a second test
	stragglerInterval = time.Minute     // between two searches for stragglers
)

// mayLeaveStragglers reports whether a group step may go on without stragglers: it shrinks
// when members are lost, and a later plan can test a few members alone.
func (t *task) mayLeaveStragglers() bool {
	g := t.step.Group
	return g != nil && g.Partners > 0 && g.OnLoss == plan.Shrink
}

// goesOnWithout reports whether t goes on without the node of a step that it needs.
func (t *task) goesOnWithout(on *task) bool {
	_, is := t.stragglers[on.step.Subject]
	return is
}

// watchStragglers has the loop search for stragglers at intervals, until ctx is done.
func (e *Executor) watchStragglers(ctx context.Context) {
	for e.clock.Sleep(ctx, stragglerInterval) == nil {
		e.mu.Lock()
		e.lookForStragglers = true
		e.mu.Unlock()
		e.wakeLoop()
	}
}

// anyMayLeaveStragglers reports whether the plan has a step that need not wait for all.
func (g *graph) anyMayLeaveStragglers() bool {
	for _, t := range g.tasks {
		if t.mayLeaveStragglers() {
			return true
		}
	}
	return false
}

// leaveStragglers lets tests go on without stragglers, and returns what to say about it.
// Called with e.mu held, by the loop alone.
func (e *Executor) leaveStragglers() (notes []event.Event) {
	seen := map[*task]bool{}
	for _, t := range e.graph.tasks {
		if e.stopping || seen[t] || !t.mayLeaveStragglers() || t.state.settled() {
			continue
		}
		if f := e.collectFamily(t, seen); f.isStraggling(e.clock.Now()) {
			notes = append(notes, e.goOnWithout(f)...)
		}
	}
	return notes
}

// testFamily is the tests that wait for one another, such as the comparison of a role, the
// pairs and the all-reduce: a node that one of them leaves behind is left behind by all.
type testFamily struct {
	tests      []*task
	stragglers map[subject.ID]*task // members that have not come, with the step that they are in
	since      time.Time            // when the last of the others came
	patience   time.Duration
	excused    bool // something else than stragglers is waited for
}

// collectFamily collects the tests that wait for one another with t, and what keeps them
// waiting.
func (e *Executor) collectFamily(t *task, seen map[*task]bool) *testFamily {
	f := &testFamily{tests: e.connectedTests(t, seen), stragglers: map[subject.ID]*task{}, since: e.run.Started}
	for _, t := range f.tests {
		f.excused = f.excused || t.state != pending
		for _, n := range t.step.Needs {
			switch on := e.graph.byID[n.Step]; {
			case nodeOf(on.step) == "" || t.goesOnWithout(on):
			case !on.state.settled():
				f.stragglers[on.step.Subject] = nil
			case on.ended.After(f.since):
				f.since = on.ended
			}
		}
	}
	if !f.excused && len(f.stragglers) > 0 {
		e.findHoldUps(f)
	}
	return f
}

// connectedTests returns t and the tests that wait for it or that it waits for, directly or
// by others of them.
func (e *Executor) connectedTests(t *task, seen map[*task]bool) []*task {
	tests := []*task{t}
	seen[t] = true
	join := func(o *task) {
		if o.mayLeaveStragglers() && !o.state.settled() && !seen[o] {
			seen[o] = true
			tests = append(tests, o)
		}
	}
	for i := 0; i < len(tests); i++ {
		for _, n := range tests[i].step.Needs {
			join(e.graph.byID[n.Step])
		}
		for _, tr := range tests[i].triggers {
			join(tr.task)
		}
	}
	return tests
}

// findHoldUps finds the steps that the tests wait for in the end, and how long to wait for
// them.
func (e *Executor) findHoldUps(f *testFamily) {
	seen := map[*task]bool{}
	work := append([]*task(nil), f.tests...)
	for ; len(work) > 0; work = work[1:] {
		for _, n := range work[0].step.Needs {
			on := e.graph.byID[n.Step]
			if seen[on] || on.state.settled() || work[0].goesOnWithout(on) {
				continue
			}
			seen[on] = true
			_, late := f.stragglers[on.step.Subject]
			if on.state == pending {
				work = append(work, on)
			} else if late && on.state == running {
				f.stragglers[on.step.Subject] = on
			} else {
				f.excused = true // its turn has not come, or it is of no straggler
			}
			if late {
				f.patience = max(f.patience, p95Of(on.step.Deadline))
			}
		}
	}
	f.patience = min(max(f.patience, minPatience), maxPatience)
}

// p95Of is the P95 of a step's duration; where that is not known, a quarter more than the
// expected duration.
func p95Of(b plan.Budget) time.Duration {
	switch {
	case b.Slow > 0:
		return b.Slow
	case b.Expected > 0:
		return b.Expected + b.Expected/4
	}
	return b.Limit
}

func (f *testFamily) isStraggling(now time.Time) bool {
	return len(f.stragglers) > 0 && !f.excused && now.Sub(f.since) >= f.patience
}

// goOnWithout lets the tests of a family go on without its stragglers when each of them
// has a quorum of the others; else all of them wait.
func (e *Executor) goOnWithout(f *testFamily) (notes []event.Event) {
	now := e.clock.Now()
	before := make([]map[subject.ID]string, len(f.tests))
	enough := true
	for i, t := range f.tests {
		before[i] = t.stragglers
		t.stragglers = e.stragglersOf(t, f, now)
		enough = enough && e.hasQuorum(t)
	}
	if !enough {
		for i, t := range f.tests {
			t.stragglers = before[i]
		}
		return nil
	}
	reported := map[subject.ID]bool{}
	for i, t := range f.tests {
		absent := t.stragglers
		t.stragglers = before[i]
		for _, m := range e.leaveBehind(t, absent) {
			if !reported[m] {
				reported[m] = true
				notes = append(notes, event.Event{Type: event.Note, Step: string(t.step.ID), Stage: t.step.Stage, Node: m.Name, Text: absent[m]})
			}
		}
	}
	return notes
}

// stragglersOf returns the members that have not come to one test, and why it goes on
// without each of them.
func (e *Executor) stragglersOf(t *task, f *testFamily, now time.Time) map[subject.ID]string {
	out := maps.Clone(t.stragglers)
	for _, n := range t.step.Needs {
		on := e.graph.byID[n.Step]
		by, late := f.stragglers[on.step.Subject]
		if !late || on.state.settled() {
			continue
		}
		if out == nil {
			out = map[subject.ID]string{}
		}
		doing := fmt.Sprintf("%s has not started", on.step.ID)
		if by != nil {
			doing = fmt.Sprintf("%s has run for %s", by.step.ID, now.Sub(by.started).Round(time.Second))
		}
		out[on.step.Subject] = fmt.Sprintf("straggler: %s goes on without it, after the others waited for %s (%s); the next apply tests it",
			t.step.ID, now.Sub(f.since).Round(time.Second), doing)
	}
	return out
}

// hasQuorum reports whether a test can go on without its stragglers: the site's quorum has
// come, and more than half of the members.
func (e *Executor) hasQuorum(t *task) bool {
	t.members, t.lost = e.survivingMembers(t)
	ok := e.explainNoQuorum(t) == "" && 2*len(t.members) > len(t.step.Group.Members)
	t.members, t.lost = nil, nil
	return ok
}

// leaveBehind makes a test wait for these nodes no longer, and skips their steps that need
// the test. It returns the nodes that were not left behind before. Called with e.mu held.
func (e *Executor) leaveBehind(t *task, absent map[subject.ID]string) (news []subject.ID) {
	had := t.stragglers
	t.stragglers = absent
	for _, n := range t.step.Needs {
		on := e.graph.byID[n.Step]
		if _, before := had[on.step.Subject]; before || !t.goesOnWithout(on) {
			continue
		}
		if len(news) == 0 || news[len(news)-1] != on.step.Subject {
			news = append(news, on.step.Subject)
		}
		if t.state == pending && !on.state.settled() {
			if t.unmet--; t.unmet == 0 {
				e.graph.makeReady(t)
			}
		}
	}
	for _, tr := range t.triggers {
		if why, is := absent[tr.task.step.Subject]; is && !tr.task.state.settled() {
			e.skip(tr.task, state.Cause{Kind: state.ByStraggler, Step: t.step.ID, Text: why}, nil)
			e.settle(tr.task, skipped)
		}
	}
	return news
}

// frozenStragglers returns the stragglers that a group was frozen without.
func frozenStragglers(f state.Frozen) map[subject.ID]string {
	var out map[subject.ID]string
	for _, l := range f.Lost {
		if l.Straggler {
			if out == nil {
				out = map[subject.ID]string{}
			}
			out[l.Member] = l.Why
		}
	}
	return out
}
