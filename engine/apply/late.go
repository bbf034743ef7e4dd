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

// A test of a group waits for all of its members to settle. When most have come and
// the last few keep them waiting, the test goes on without these: they are late,
// which is no fault, and the next plan tests them with a few of the others.
//
// The others wait for as long as the slowest step that is left to the late ones
// takes in nineteen of twenty cases, from the moment when the last of them came:
// who is merely behind by less than that is waited for. A node whose step waits for
// a resource is not late, since its turn has not come; and nobody is left behind for
// a step that is of no node.
const (
	leastPatience = 5 * time.Minute // however short the step
	mostPatience  = time.Hour       // whatever the step: a room of idle nodes costs more than a second test
	lateLook      = time.Minute     // between two looks for late nodes
)

// leaves reports whether a group step may go on without members that are late: it
// shrinks, and a later plan can test a few members alone.
func (t *task) leaves() bool {
	g := t.step.Group
	return g != nil && g.Partners > 0 && g.OnLoss == plan.Shrink
}

// waives reports whether t goes on without the node of a step that it needs.
func (t *task) waives(on *task) bool {
	_, is := t.absent[on.step.Subject]
	return is
}

// lookForLate has the loop look for late nodes until ctx is done.
func (e *Executor) lookForLate(ctx context.Context) {
	for e.clock.Sleep(ctx, lateLook) == nil {
		e.mu.Lock()
		e.look = true
		e.mu.Unlock()
		e.nudge()
	}
}

// anyLeaves reports whether the plan has a step that need not wait for all.
func (g *graph) anyLeaves() bool {
	for _, t := range g.tasks {
		if t.leaves() {
			return true
		}
	}
	return false
}

// leaveLate lets tests go on without nodes that are late, and returns what to say
// about it. Called with e.mu held, by the loop alone.
func (e *Executor) leaveLate() (said []event.Event) {
	seen := map[*task]bool{}
	for _, t := range e.graph.tasks {
		if e.stopping || seen[t] || !t.leaves() || t.state.settled() {
			continue
		}
		if f := e.familyOf(t, seen); f.isLate(e.clock.Now()) {
			said = append(said, e.goOn(f)...)
		}
	}
	return said
}

// family is tests that wait for one another, such as the comparison of a role, the
// pairs and the all-reduce: a node that one of them leaves behind is not tested by
// those after it.
type family struct {
	tests    []*task
	late     map[subject.ID]*task // members that have not come, by what keeps them
	since    time.Time            // when the last of the others came
	patience time.Duration
	excused  bool // what is waited for is not late nodes alone
}

// familyOf collects the tests that wait for one another with t, and what keeps them
// waiting.
func (e *Executor) familyOf(t *task, seen map[*task]bool) *family {
	f := &family{tests: e.connected(t, seen), late: map[subject.ID]*task{}, since: e.run.Started}
	for _, t := range f.tests {
		f.excused = f.excused || t.state != pending
		for _, n := range t.step.Needs {
			switch on := e.graph.byID[n.Step]; {
			case nodeOf(on.step) == "" || t.waives(on):
			case !on.state.settled():
				f.late[on.step.Subject] = nil
			case on.ended.After(f.since):
				f.since = on.ended
			}
		}
	}
	if !f.excused && len(f.late) > 0 {
		e.lookBehind(f)
	}
	return f
}

// connected returns t and the tests that wait for it or that it waits for, directly or
// by others of them.
func (e *Executor) connected(t *task, seen map[*task]bool) []*task {
	tests := []*task{t}
	seen[t] = true
	join := func(o *task) {
		if o.leaves() && !o.state.settled() && !seen[o] {
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

// lookBehind finds the steps that the tests wait for in the end.
func (e *Executor) lookBehind(f *family) {
	seen := map[*task]bool{}
	work := append([]*task(nil), f.tests...)
	for ; len(work) > 0; work = work[1:] {
		for _, n := range work[0].step.Needs {
			on := e.graph.byID[n.Step]
			if seen[on] || on.state.settled() || work[0].waives(on) {
				continue
			}
			seen[on] = true
			_, late := f.late[on.step.Subject]
			if on.state == pending {
				work = append(work, on)
			} else if late && on.state == running {
				f.late[on.step.Subject] = on
			} else {
				f.excused = true // its turn has not come, or it is of no late node
			}
			if late {
				f.patience = max(f.patience, usual(on.step.Deadline))
			}
		}
	}
	f.patience = min(max(f.patience, leastPatience), mostPatience)
}

// usual is the time in which nineteen of twenty steps end; where that is not known,
// what is expected and a good share more.
func usual(b plan.Budget) time.Duration {
	switch {
	case b.Slow > 0:
		return b.Slow
	case b.Expected > 0:
		return b.Expected + b.Expected/4
	}
	return b.Limit
}

func (f *family) isLate(now time.Time) bool {
	return len(f.late) > 0 && !f.excused && now.Sub(f.since) >= f.patience
}

// goOn lets the tests of a family go on without those that are late, when enough
// others have come to each of them; else they all wait.
func (e *Executor) goOn(f *family) (said []event.Event) {
	now := e.clock.Now()
	before := make([]map[subject.ID]string, len(f.tests))
	enough := true
	for i, t := range f.tests {
		before[i] = t.absent
		t.absent = e.lateFor(t, f, now)
		enough = enough && e.enough(t)
	}
	if !enough {
		for i, t := range f.tests {
			t.absent = before[i]
		}
		return nil
	}
	told := map[subject.ID]bool{}
	for i, t := range f.tests {
		absent := t.absent
		t.absent = before[i]
		for _, m := range e.without(t, absent) {
			if !told[m] {
				told[m] = true
				said = append(said, event.Event{Type: event.Note, Step: string(t.step.ID), Stage: t.step.Stage, Node: m.Name, Text: absent[m]})
			}
		}
	}
	return said
}

// lateFor are the members that have not come to one test, and why it goes on
// without each.
func (e *Executor) lateFor(t *task, f *family, now time.Time) map[subject.ID]string {
	out := maps.Clone(t.absent)
	for _, n := range t.step.Needs {
		on := e.graph.byID[n.Step]
		by, late := f.late[on.step.Subject]
		if !late || on.state.settled() {
			continue
		}
		if out == nil {
			out = map[subject.ID]string{}
		}
		doing := fmt.Sprintf("%s is still to come", on.step.ID)
		if by != nil {
			doing = fmt.Sprintf("%s has run for %s", by.step.ID, now.Sub(by.started).Round(time.Second))
		}
		out[on.step.Subject] = fmt.Sprintf("late: %s goes on without it, since the others have waited for %s (%s); it is tested by the next apply",
			t.step.ID, now.Sub(f.since).Round(time.Second), doing)
	}
	return out
}

// enough reports whether a test can do without those that are absent: the site's
// quorum has come, and more than half of the members.
func (e *Executor) enough(t *task) bool {
	t.members, t.lost = e.survivors(t)
	ok := e.tooFew(t) == "" && 2*len(t.members) > len(t.step.Group.Members)
	t.members, t.lost = nil, nil
	return ok
}

// without lets a test wait no longer for these nodes, and settles what they have to
// do after it. It returns those that it was not without before. Called with e.mu
// held.
func (e *Executor) without(t *task, absent map[subject.ID]string) (news []subject.ID) {
	had := t.absent
	t.absent = absent
	for _, n := range t.step.Needs {
		on := e.graph.byID[n.Step]
		if _, before := had[on.step.Subject]; before || !t.waives(on) {
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
			e.skip(tr.task, state.Cause{Kind: state.ByLate, Step: t.step.ID, Text: why}, nil)
			e.settle(tr.task, skipped)
		}
	}
	return news
}

// lateBefore are the members that a frozen group went on without as late.
func lateBefore(f state.Frozen) map[subject.ID]string {
	var out map[subject.ID]string
	for _, l := range f.Lost {
		if l.Late {
			if out == nil {
				out = map[subject.ID]string{}
			}
			out[l.Member] = l.Why
		}
	}
	return out
}
