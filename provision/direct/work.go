// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/install"
)

// longest bounds the work on one node, beside the wait of the operator: a cycle on a slow BMC.
const longest = 5 * time.Minute

// Do implements control.Director.
func (d *Desk) Do(ctx context.Context, id string, report func(control.DirectResult)) error {
	p, err := d.take(id)
	if err != nil {
		return err
	}
	defer d.wg.Done()
	var wg sync.WaitGroup
	var mu sync.Mutex // one report at a time
	slots := make(chan struct{}, parallel)
	for _, st := range p.Steps { // they claim their circuits in the order of the plan
		c, err := d.claim(st)
		wg.Go(func() {
			x := control.DirectResult{State: control.DirectFailed, Action: errkind.Action(err)}
			if err != nil {
				x.Text = "nothing was done: " + err.Error()
			} else {
				x = d.doNode(ctx, p, st, c, slots)
			}
			x.Node, x.At = st.Node, d.now()
			mu.Lock()
			defer mu.Unlock()
			report(x)
		})
	}
	wg.Wait()
	return nil
}

// claim is the place of a step in the line for its circuits.
type claim struct {
	wait func(context.Context) error
	end  func()
}

// claim takes a place in the line for the circuits of a step; for none, it waits for none.
func (d *Desk) claim(st control.DirectStep) (c claim, err error) {
	c = claim{func(context.Context) error { return nil }, func() {}}
	if len(st.Uses) > 0 && !st.Nothing {
		c.wait, c.end, err = d.cfg.Limits.Borrow(st.Uses)
	}
	return c, err
}

// doNode does one step. Once ctx is done it is not begun; when it has begun, ctx does not end it.
func (d *Desk) doNode(ctx context.Context, p *shown, st control.DirectStep, c claim, slots chan struct{}) control.DirectResult {
	n, ok := d.cfg.Inv.Node(st.Node)
	switch {
	case !ok:
		c.end()
		return control.DirectResult{State: control.DirectSkipped, Text: "it is not in the inventory any more"}
	case st.Nothing:
		return control.DirectResult{State: control.DirectDone, Text: "power was already " + st.Power}
	}
	held, end, err := d.begin(context.WithoutCancel(ctx), n.Name)
	if err != nil {
		c.end()
		return refused(err, n)
	}
	defer end()
	err = waitFor(ctx, held, c, slots)
	if err != nil {
		c.end()
		return skipped(err)
	}
	defer func() { <-slots }()
	held, cancel := d.cfg.Clock.WithTimeout(held, longest+p.request.Wait)
	defer cancel()
	w, err := d.ready(held, p, st, n)
	switch {
	case err == nil && ctx.Err() != nil:
		c.end()
		return skipped(context.Cause(ctx))
	case err != nil:
		c.end()
		return refused(err, n)
	}
	w.rest = func(ctx context.Context, wait time.Duration) error { // others work with their BMCs meanwhile
		<-slots
		defer func() { slots <- struct{}{} }()
		return d.cfg.Clock.Sleep(ctx, wait)
	}
	return d.effect(held, p, n, w, c.end)
}

// waitFor waits for the circuits of a step, and for its turn among those that work. ctx is the
// command's, held ends when the node is put on hold.
func waitFor(ctx, held context.Context, c claim, slots chan struct{}) error {
	waiting, stop := context.WithCancelCause(held)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })()
	if err := c.wait(waiting); err != nil {
		return err
	}
	if waiting.Err() != nil {
		return context.Cause(waiting)
	}
	select {
	case slots <- struct{}{}:
		return nil
	case <-waiting.Done():
		return context.Cause(waiting)
	}
}

// skipped is the result of a step that was stopped before it began.
func skipped(err error) control.DirectResult {
	text := "stopped before it began"
	if errors.Is(err, errHeld) {
		text = "not begun: " + errHeld.Error()
	}
	return control.DirectResult{State: control.DirectSkipped, Text: text}
}

// refused is the result of a step that was not begun.
func refused(err error, n *inventory.Node) control.DirectResult {
	return control.DirectResult{State: control.DirectFailed, Text: "nothing was done: " + trimNode(err.Error(), n.Name), Action: errkind.Action(err)}
}

// ready looks once more whether all is as it was shown, and whether the state is still this process's: a
// shutdown that was waited for may have lasted longer than the lease, or the process was stopped meanwhile.
func (d *Desk) ready(ctx context.Context, p *shown, st control.DirectStep, n *inventory.Node) (w work, err error) {
	v := verbs[p.Verb]
	w.q, w.clock = p.request, d.cfg.Clock
	w.uefi = n.Hardware != nil && n.Hardware.Boot != inventory.BootBIOS
	w.say = func(text string) { d.emit(p, n.Name, text, "") }
	w.recheck = func(ctx context.Context) error { _, err := d.ready(ctx, p, st, n); return err }
	if err := state.CheckLease(d.cfg.Store.Lease(d.cfg.Fence)); err != nil {
		return w, err
	}
	if err := d.mayWork(ctx, v, p.request, n); err != nil {
		return w, err
	}
	if v.mains {
		w.mains, w.now, _, err = d.reachOutlets(ctx, n)
	} else {
		w.bmc, w.now, err = d.reach(ctx, n)
	}
	if err != nil {
		return w, err
	}
	if v.disturbs && st.Power == string(bmc.PowerOff) && w.now != bmc.PowerOff {
		return w, errkind.New(errkind.Refused, "it read %s when this was shown, and reads %s now: more would end than was shown", st.Power, w.now).
			Do("Run the command again and read what it shows.")
	}
	if err := d.checkDoubt(ctx, v, p.request, n, w.now); err != nil {
		return w, err
	}
	if v.disturbs && w.now != bmc.PowerOff {
		err = checkJobs(ctx, p.request, p.jobs, n.Name, &control.DirectStep{})
	}
	return w, err
}

// effect journals the intent, does it, and journals the outcome.
func (d *Desk) effect(ctx context.Context, p *shown, n *inventory.Node, w work, back func()) control.DirectResult {
	q := p.request
	does, _ := verbs[p.Verb].describe(q, w.now)
	x := state.Direct{Node: n.Name, Verb: string(p.Verb), Does: does, By: q.By, Host: q.Host, Reason: q.Reason, At: d.now(), State: state.EffectIntended}
	record := context.WithoutCancel(ctx) // what happened is recorded
	last, _, err := state.ReadDirect(record, d.cfg.Store, n.Name, x.Verb)
	if err != nil {
		back()
		return refused(err, n)
	}
	if doubt, is := last.Doubtful(); is && !verbs[control.DirectVerb(doubt.Verb)].repeats {
		x.Doubt = &doubt // of a cycle, say, which work that does nothing leaves in doubt
	}
	if err := state.RecordDirect(record, d.cfg.Store, d.cfg.Fence, x); err != nil {
		back()
		return refused(err, n)
	}
	if err := state.CheckLease(d.cfg.Store.Lease(d.cfg.Fence)); err != nil { // its intent stands
		back()
		return refused(err, n)
	}
	d.emit(p, n.Name, x.Verb+" by "+x.By+reasonOf(q), string(x.State))
	out, err := verbs[p.Verb].do(ctx, w)
	d.settle(n, out, back)
	r := resultOf(ctx, out, err, n)
	x.Ended, x.Detail, x.State = d.now(), r.Text, recorded[r.State]
	d.emit(p, n.Name, x.Verb+": "+r.Text, string(x.State))
	if err := state.RecordDirect(record, d.cfg.Store, d.cfg.Fence, x); err != nil {
		r.State, r.Text = control.DirectUnknown, r.Text+"; the outcome is not on record: "+err.Error()
	}
	return r
}

// reasonOf is the operator's reason, for a line.
func reasonOf(q control.DirectRequest) string {
	if q.Reason == "" {
		return ""
	}
	return " (" + q.Reason + ")"
}

// settle gives the circuits back once the supplies have settled; at once when nothing was sent.
func (d *Desk) settle(n *inventory.Node, out bmc.Outcome, back func()) {
	if out.Sent == 0 {
		back()
		return
	}
	wait := settleOf(install.InrushOf(n, d.inrush))
	go func() { // ends by itself; the run, or this process, may be over before
		_ = d.cfg.Clock.Sleep(context.Background(), wait)
		back()
	}()
}

// settleOf is how long the longest of the uses lasts after the deed.
func settleOf(uses []plan.Use) (longest time.Duration) {
	for _, u := range uses {
		longest = max(longest, u.Settles)
	}
	return longest
}

// recorded is how a result stands in the state.
var recorded = map[control.DirectState]state.EffectState{
	control.DirectDone: state.EffectIsDone, control.DirectFailed: state.EffectNotDone, control.DirectUnknown: state.EffectInDoubt,
}

// resultOf judges what became of it.
func resultOf(ctx context.Context, out bmc.Outcome, err error, n *inventory.Node) control.DirectResult {
	r := control.DirectResult{State: control.DirectDone, Text: out.Evidence, Action: errkind.Action(err)}
	if err != nil {
		r.Text = trimNode(err.Error(), n.Name)
		if out.Evidence != "" {
			r.Text = out.Evidence + ": " + r.Text
		}
	}
	kind := errkind.Of(err).Base()
	switch {
	case err == nil && out.Verdict == bmc.Contradicted:
		r.State = control.DirectFailed
	case err == nil:
	case out.Sent == 0, ctx.Err() == nil && kind == errkind.Refused, kind == errkind.Unsupported, kind == errkind.Auth:
		r.State = control.DirectFailed
	default:
		r.State = control.DirectUnknown
		if r.Action == "" {
			r.Action = "Ask again: `ironrail power status " + n.Name + "`."
		}
	}
	return r
}

// emit shows what happens; state is empty for what is only said.
func (d *Desk) emit(p *shown, node, text, state string) {
	e := event.Event{Type: event.Direct, Node: node, Text: text, Data: map[string]string{"verb": string(p.Verb), "by": p.request.By}}
	if state != "" {
		e.Data["state"] = state
	}
	d.cfg.Bus.Emit(e)
}
