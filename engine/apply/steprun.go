// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/evidence"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// stepRun is the stage.Run of one running step. It is safe for concurrent use.
type stepRun struct {
	exec     *Executor
	task     *task
	members  []subject.ID
	examined []subject.ID
	earlier  []stage.Finding // made by the step in a process that died

	mu       sync.Mutex // guards what follows
	closed   bool       // the step has ended, or was given up
	blamed   []stage.Finding
	last     event.Event // last progress: what it waits for
	tries    int         // that failed and were not the last
	released bool        // a resource, before its end
	stuck    bool        // an effect is in doubt that can neither be probed nor repeated
	slow     bool        // it runs for longer than its P95
}

var _ stage.Run = (*stepRun)(nil)

// errEnded is returned to a stage that goes on after its step has ended.
var errEnded = errkind.New(errkind.Interrupted, "the step has ended")

func newStepRun(e *Executor, t *task) *stepRun {
	return &stepRun{exec: e, task: t, members: t.members, examined: e.listOut(t.members), earlier: t.blamed}
}

func (r *stepRun) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

func (r *stepRun) checkOpen() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errEnded
	}
	return r.exec.ledger.failure()
}

// Members returns the frozen members of a group step, else the one subject.
func (r *stepRun) Members() []subject.ID { return slices.Clone(r.members) }

// Examined returns the members that were out when the step began.
func (r *stepRun) Examined() []subject.ID { return slices.Clone(r.examined) }

// Fact returns a fact that was learned in this run or before.
func (r *stepRun) Fact(k fact.Key) (fact.Fact, bool) { return r.exec.ledger.fact(k) }

// Learn makes facts durable. It does so also when ctx is done: what was seen was
// seen.
func (r *stepRun) Learn(_ context.Context, fs ...fact.Fact) error {
	if err := r.checkOpen(); err != nil {
		return err
	}
	news, err := r.exec.ledger.recordFacts(string(r.task.step.ID), fs)
	for _, f := range news {
		r.Emit(event.Event{Type: event.FactLearned, Text: f.Key.String(), Data: factEventData(f)})
	}
	return err
}

// maxShown is how long a value may be, in bytes, to be part of its event. A
// report on thousands of nodes is not: it stands in the state.
const maxShown = 64 << 10

// factEventData is what an event says about a fact.
func factEventData(f fact.Fact) map[string]string {
	if len(f.Value) > maxShown {
		return map[string]string{"bytes": strconv.Itoa(len(f.Value))}
	}
	return map[string]string{"value": string(f.Value)}
}

// Blame makes a finding durable and quarantines the nodes that it suspects.
func (r *stepRun) Blame(_ context.Context, f stage.Finding) error {
	if err := r.checkOpen(); err != nil {
		return err
	}
	if len(f.Suspects) == 0 {
		f.Suspects = []stage.Suspect{{Subject: r.task.step.Subject}}
	}
	f.Step = string(r.task.step.ID)
	if err := r.exec.ledger.recordFinding(f); err != nil {
		return err
	}
	r.mu.Lock()
	r.blamed = append(r.blamed, f)
	r.mu.Unlock()
	v := event.Event{Type: event.FindingMade, Text: f.Cause, Data: map[string]string{"action": f.Action}}
	if s := f.Suspects[0].Subject; s.Kind == subject.Node {
		v.Node = s.Name
	}
	r.Emit(v)
	return nil
}

// Release gives back a resource before the step ends. One that it does not hold
// is passed over.
func (r *stepRun) Release(resource string) {
	if r.checkOpen() != nil || resource == stepSlots || resource == "" {
		return
	}
	r.exec.mu.Lock()
	r.exec.graph.resources.release(r.task, resource)
	r.exec.mu.Unlock()
	r.mu.Lock()
	r.released = true
	r.mu.Unlock()
	r.exec.wakeLoop()
}

// Emit shows an event of this step.
func (r *stepRun) Emit(v event.Event) {
	if v.Stage == "" {
		v.Stage = r.task.step.Stage
	}
	if v.Step == "" {
		v.Step = string(r.task.step.ID)
	}
	if v.Node == "" {
		v.Node = nodeOf(r.task.step)
	}
	if v.Time.IsZero() {
		v.Time = r.exec.clock.Now().UTC()
	}
	if v.Type == event.StepProgress {
		r.mu.Lock()
		r.last = v
		r.mu.Unlock()
	}
	r.exec.emit(v)
}

// Clock returns the clock of the run.
func (r *stepRun) Clock() clock.Clock { return r.exec.clock }

// progress returns the last progress of the step.
func (r *stepRun) progress() event.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func (r *stepRun) markStuck() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stuck = true
}

// isFinal reports whether the step is not to be tried again, whatever its error: it made a
// finding, left an effect in doubt that cannot be settled, or released a resource that
// another try would need.
func (r *stepRun) isFinal() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stuck || r.released || len(r.earlier)+len(r.blamed) > 0
}

// slowAndTries returns whether the step is slow, and how many of its tries failed.
func (r *stepRun) slowAndTries() (slow bool, tries int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slow, r.tries
}

func (r *stepRun) findings() []stage.Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.earlier, r.blamed)
}

// markSlow shows that the step takes longer than its P95.
func (r *stepRun) markSlow() {
	r.mu.Lock()
	r.slow = true
	r.mu.Unlock()
	b := r.task.step.Deadline
	of := "the P90 of the table of durations"
	if b.Samples > 0 {
		of = fmt.Sprintf("the P95 of %d earlier runs on this site", b.Samples)
	}
	text := fmt.Sprintf("slower than %s: %s", of, b.Slow.Round(time.Second))
	if p := r.progress(); p.Text != "" {
		text += "; now: " + p.Text
	}
	r.Emit(event.Event{Type: event.StepSlow, Text: text, Until: r.task.started.Add(b.Limit)})
}

// timeoutError is the error of a step that its deadline ended, with its last progress.
func (r *stepRun) timeoutError(err error) error {
	what := "no progress reported"
	if p := r.progress(); p.Text != "" {
		what = "last progress: " + p.Text
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		what += ": " + errkind.Line(err)
	}
	out := errkind.New(errkind.Timeout, "not finished within %s; %s", r.task.step.Deadline.Limit, what)
	return out.Do(errkind.Action(err))
}

// Attach stores raw output by its content and enters it into the chain, durably, and
// returns its reference. It works also while the step is ending.
func (r *stepRun) Attach(name string, content []byte) (string, error) {
	if r.exec.raw == nil {
		return "", fmt.Errorf("evidence %s: no folder is set", name)
	}
	ref, err := r.exec.raw.Add(evidence.Entry{At: r.exec.clock.Now().UTC(), Run: r.exec.run.ID, Step: string(r.task.step.ID)}, name, content)
	if err != nil {
		err = fmt.Errorf("evidence %s: %w", name, state.FullDisk(err))
		if errkind.Of(err) == errkind.Interrupted {
			_ = r.exec.ledger.setFailure(err) // of the whole run: no node is to blame for a full disk
		}
		return "", err
	}
	return ref, nil
}

// panicError turns a panic of a stage into an error, and keeps the stack as evidence.
func (r *stepRun) panicError(v any, stack []byte) error {
	err := errkind.New(errkind.Internal, "stage %s panicked: %v", r.task.step.Stage, v)
	ref, attachErr := r.Attach("stack.txt", fmt.Appendf(nil, "%v\n\n%s", v, stack))
	if attachErr == nil {
		r.mu.Lock()
		r.blamed = append(r.blamed, stage.Finding{Suspects: []stage.Suspect{{Subject: r.task.step.Subject}}, Cause: errkind.Line(err),
			Evidence: []string{ref}, Action: defaultActions[errkind.Internal], Step: string(r.task.step.ID)})
		r.mu.Unlock()
	}
	return err
}

// rootFinding is the root cause of a failed step: its first finding, else one made from
// its error.
func (r *stepRun) rootFinding(err error) stage.Finding {
	if fs := r.findings()[len(r.earlier):]; len(fs) > 0 {
		return fs[0]
	}
	action := errkind.Action(err)
	if action == "" {
		action = defaultActions[errkind.Of(err).Base()]
	}
	return stage.Finding{Suspects: []stage.Suspect{{Subject: r.task.step.Subject}}, Cause: errkind.Line(err),
		Evidence: r.failureEvidence(err), Action: action, Step: string(r.task.step.ID)}
}

// failureEvidence is the evidence of a failure without a finding of its stage: when it
// came, and the last progress of the step.
func (r *stepRun) failureEvidence(err error) []string {
	t := r.task
	now := r.exec.clock.Now()
	kind := ""
	if k := errkind.Of(err); k != errkind.Internal { // "internal" says nothing to an operator
		kind = fmt.Sprintf(" (%s)", k)
	}
	lines := []string{fmt.Sprintf("%s %s failed after %s%s", now.UTC().Format(time.TimeOnly), t.step.ID, now.Sub(t.started).Round(time.Millisecond), kind)}
	if p := r.progress(); p.Text != "" {
		lines = append(lines, p.Time.UTC().Format(time.TimeOnly)+" last progress: "+p.Text)
	}
	return lines
}

// defaultActions is what to do next about an error that brought no advice of its own.
var defaultActions = map[errkind.Kind]string{
	errkind.Internal:    "Read the evidence, apply again, and report it when it comes back.",
	errkind.Unreachable: "Check its power and its cable, then apply again.",
	errkind.Auth:        "Check the credentials that the site refers to, then apply again.",
	errkind.Timeout:     "Look at its console to see where it stands, then apply again.",
	errkind.Refused:     "Remove what it objects to, then apply again.",
	errkind.Unsupported: "Choose another way in the site, then plan and apply again.",
	errkind.Mismatch:    "Compare what is there with the site, and correct the one that is wrong.",
	errkind.Interrupted: "Apply again to go on.",
}
