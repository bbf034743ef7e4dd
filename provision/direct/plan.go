// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/selection"
)

// How many BMCs are worked with at once, and how long one has to say who it is and whether its node
// is on.
const (
	parallel = 64
	askTime  = 30 * time.Second
)

// Plan implements control.Director.
func (d *Desk) Plan(ctx context.Context, q control.DirectRequest) (p control.DirectPlan, err error) {
	v, err := findVerb(q)
	if err != nil {
		return p, err
	}
	want, err := selection.CheckNames(d.cfg.Inv, q.Nodes)
	if err != nil {
		return p, err
	}
	p = control.DirectPlan{Verb: q.Verb, At: d.now(), Steps: []control.DirectStep{}, Refused: []control.DirectRefusal{}}
	var nodes []*inventory.Node
	for _, n := range d.cfg.Inv.Nodes {
		if want[n.Name] {
			nodes = append(nodes, n)
		}
	}
	jobs := d.newJobReader(q.Nodes)
	steps, errs := make([]control.DirectStep, len(nodes)), make([]error, len(nodes))
	each(len(nodes), func(i int) { steps[i], errs[i] = d.planNode(ctx, v, q, jobs, nodes[i]) })
	if ctx.Err() != nil {
		return p, context.Cause(ctx)
	}
	b := batches{limit: apply.NewLimits(d.cfg.Capacity).Units}
	for i, n := range nodes {
		if errs[i] != nil {
			p.Refused = append(p.Refused, control.DirectRefusal{Node: n.Name, Cause: trimNode(errs[i].Error(), n.Name), Action: errkind.Action(errs[i])})
			continue
		}
		if st := &steps[i]; v.starts && !st.Nothing {
			st.Uses = install.InrushOf(n, d.inrush)
			st.Batch = b.place(st.Uses)
		}
		p.Steps = append(p.Steps, steps[i])
	}
	if len(b.used) > 1 {
		p.Notes = append(p.Notes, fmt.Sprintf("by what their circuits bear the nodes are switched on in %d batches, each once the one before has settled", len(b.used)))
	}
	return d.keep(p, q, jobs), nil
}

// each calls f for 0 to n-1, some at a time.
func each(n int, f func(int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wg.Wait()
}

// trimNode takes the name of the node from the front of an error that stands beside it.
func trimNode(text, node string) string { return strings.TrimPrefix(text, "node "+node+": ") }

// planNode says what is done to one node. The error says why nothing is.
func (d *Desk) planNode(ctx context.Context, v verb, q control.DirectRequest, jobs *jobReader, n *inventory.Node) (st control.DirectStep, err error) {
	st.Node = n.Name
	if err := d.mayWork(ctx, v, q, n); err != nil {
		return st, err
	}
	if v.mains {
		return d.planOutlets(ctx, v, q, jobs, n)
	}
	_, now, err := d.reach(ctx, n)
	if k := errkind.Of(err); err != nil && q.Verb == control.DirectCycle && (k == errkind.Unreachable || k == errkind.Timeout) {
		action := strings.TrimSpace(errkind.Action(err) + " Where the BMC itself is dead: `ironrail power cycle --outlets " + n.Name + "`.")
		err = errkind.New(k, "%w", err).Do(action)
	}
	if err != nil {
		return st, err
	}
	st.Power = string(now)
	st.Does, st.Nothing = v.describe(q, now)
	if st.Nothing {
		return st, nil
	}
	if err := d.checkDoubt(ctx, v, q, n, now); err != nil {
		return st, err
	}
	if v.disturbs && now != bmc.PowerOff {
		err = checkJobs(ctx, q, jobs, n.Name, &st)
	}
	return st, err
}

// mayWork refuses a node that stands under a rule.
func (d *Desk) mayWork(ctx context.Context, v verb, q control.DirectRequest, n *inventory.Node) error {
	if v.harmless {
		return nil
	}
	now, _, err := state.Get[state.Node](ctx, d.cfg.Store, state.NodeKey(n.Name))
	switch {
	case err != nil:
		return err
	case now.Hold != nil:
		return errHeldBy(n.Name, now.Hold)
	case n.Protect && (v.disturbs || v.changes):
		return errkind.New(errkind.Refused, "it is protected: what runs on it is neither ended nor changed").
			Do("Remove `protect` from it, or from its role, if it is meant.")
	}
	if d.cfg.NextStep != nil {
		if step := d.cfg.NextStep(n.Name); step != "" {
			return errkind.New(errkind.Refused, "the running apply has work for it: %s", step).
				Do("Wait until apply is done with it, or stop apply: Ctrl-C in its terminal lets its running steps end.")
		}
	}
	return nil
}

// errHeldBy refuses to work on a node on hold.
func errHeldBy(node string, h *state.Hold) error {
	by := h.By
	if h.Reason != "" {
		by += ": " + h.Reason
	}
	return errkind.New(errkind.Refused, "it is on hold since %s (%s)", h.At.Local().Format(time.DateTime), by).
		Do("Speak with who holds it; `ironrail release " + node + "` lets it go.")
}

// reach opens the node's BMC, and compares who it says that it is with the inventory.
func (d *Desk) reach(ctx context.Context, n *inventory.Node) (BMC, bmc.PowerState, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	b, err := d.cfg.BMC(n.Name)
	if err != nil {
		return nil, "", err
	}
	id, err := b.Identity(ctx)
	if err != nil {
		return nil, "", describe(err)
	}
	if wrong := oob.FindMismatches(d.cfg.Inv, n, id); len(wrong) > 0 {
		return nil, "", errkind.New(errkind.Mismatch, "this is the BMC of another node: %s", strings.Join(wrong, "; ")).
			Do(fmt.Sprintf("Compare the label of the chassis in rack %s unit %d with the row of %s in the list that the site is made from. Nothing was done.", n.Rack.Name, n.Unit, n.Name))
	}
	now, err := b.PowerState(ctx)
	if err != nil {
		return nil, "", describe(err)
	}
	return b, now, nil
}

// describe adds what to do about a BMC that does not work, where the error does not say.
func describe(err error) error {
	cause, action := oob.DescribeProblem(err)
	if cause == "" {
		return err
	}
	return errkind.New(errkind.Of(err), "%s: %w", cause, err).Do(strings.ReplaceAll(action, "`ironrail apply`", "this command"))
}

// checkDoubt refuses to repeat what may have been done: the process that did it ended before it knew,
// or no answer came. A node that reads off was left so by a cycle, and switching it on completes it.
func (d *Desk) checkDoubt(ctx context.Context, v verb, q control.DirectRequest, n *inventory.Node, now bmc.PowerState) error {
	last, ok, err := state.ReadDirect(ctx, d.cfg.Store, n.Name, string(q.Verb))
	if err != nil || !ok || v.repeats || q.Again || now == bmc.PowerOff {
		return err
	}
	if last, ok = last.Doubtful(); !ok {
		return nil
	}
	return errkind.New(errkind.Refused, "nobody knows whether the last %s, by %s at %s, was done: the node reads %s, as before and after it", last.Verb, last.By, last.At.Local().Format(time.DateTime), now).
		Do("Look at its console or its system's uptime. --again does it once more.")
}
