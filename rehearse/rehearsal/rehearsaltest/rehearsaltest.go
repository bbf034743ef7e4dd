// SPDX-License-Identifier: Apache-2.0

// Package rehearsaltest is what tests do on the virtual rack once a rehearsal has
// brought it up: the same state, the same hardware, and whatever an operator does next.
package rehearsaltest

import (
	"cmp"
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/acceptance"
	"github.com/ironrail/ironrail/provision/overrides"
	"github.com/ironrail/ironrail/provision/rebuild"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// Later is a rehearsal after its first run. It is used on virtual time, in Then of
// the rehearsal's options only.
type Later struct {
	*rehearsal.Rehearsal
	plans *provision.Site // of a rebuild or rollback that is prepared and not recorded; nil: none
}

// Desired is the site with what the state overrides of its files now.
func (l *Later) Desired(ctx context.Context) (*provision.Site, error) {
	return l.Site.Desired(ctx, l.Store, nil)
}

// Of is what comes after the first run of a rehearsal.
func Of(r *rehearsal.Rehearsal) *Later { return &Later{Rehearsal: r} }

// KillAt has the controller die at the first record of a step of a node, such as
// install.write. Apply then ends with an error; the next one goes on.
func (l *Later) KillAt(step, node string) {
	l.Store.KillWhen(l.AtStep(fault.Fault{At: step, Node: node}))
}

// Edit opens the site with other files: what the operator has changed. The
// hardware stays as it is. Images whose recipe changed are simulated anew.
func (l *Later) Edit(ctx context.Context, inv *inventory.Inventory) error {
	l.Planned = rehearsal.Lift(inv)
	return l.Open(ctx)
}

// SetUnbootable makes the simulated disks of an image that are made from now on lack their
// boot partition, or have it again: an image of such a recipe is written, configured,
// and does not boot. Images that are made already stay as they are.
func (l *Later) SetUnbootable(image string, spoilt bool) {
	l.Unbootable = slices.DeleteFunc(l.Unbootable, func(i string) bool { return i == image })
	if spoilt {
		l.Unbootable = append(l.Unbootable, image)
	}
}

// Plan plans what is left to do. Refusals are in the plan.
func (l *Later) Plan(ctx context.Context, o provision.PlanOptions) (*plan.Plan, error) {
	o.Now = l.Clock.Now()
	p, diags, err := cmp.Or(l.plans, l.Site).Plan(ctx, l.Store, o)
	if err == nil && diags.HasErrors() {
		err = rehearsal.Unplannable{Diags: diags}
	}
	return p, err
}

// Rebuild rebuilds nodes as the command does, with everything approved; the plan
// is nil when it was refused before there was one.
func (l *Later) Rebuild(ctx context.Context, o *rebuild.Request) (*plan.Plan, apply.Result, error) {
	o.At = l.Clock.Now()
	var err error
	if l.plans, err = l.Site.PrepareRebuild(ctx, l.Store, o); err != nil {
		return nil, apply.Result{}, err
	}
	p, err := l.Plan(ctx, provision.PlanOptions{Replace: o.Nodes, Targets: o.Nodes, Disks: o.Disks()})
	l.plans = nil
	if err != nil {
		return p, apply.Result{}, err
	}
	if len(p.Refusals) > 0 {
		return p, apply.Result{}, rehearsal.Refused(p)
	}
	fence, err := l.Store.Claim(ctx, "rebuild")
	if err != nil {
		return p, apply.Result{}, err
	}
	if err := rebuild.Record(ctx, l.Store, fence, o, p); err != nil {
		return p, apply.Result{}, err
	}
	res, err := l.Apply(ctx, p)
	return p, res, err
}

// Restart starts nodes again whose system was in memory, as serve does once they have booted.
func (l *Later) Restart(ctx context.Context, nodes ...string) (provision.Restart, apply.Result, error) {
	x, err := l.Site.PlanRestart(ctx, l.Store, nodes, l.Clock.Now())
	if err != nil || x.Plan == nil {
		return x, apply.Result{}, err
	}
	fence, err := l.Claim(ctx)
	if err == nil {
		_, err = x.Approve(ctx, l.Store, fence, l.Site.Inv.Site.MaxErase)
	}
	if err != nil {
		return x, apply.Result{}, err
	}
	res, err := l.Apply(ctx, x.Plan)
	return x, res, err
}

// Retest tests nodes in service again as the command does, with everything approved. The error is that of a
// refusal.
func (l *Later) Retest(ctx context.Context, nodes ...string) (*plan.Plan, apply.Result, error) {
	if err := l.Site.CheckRetest(ctx, l.Store, nodes); err != nil {
		return nil, apply.Result{}, err
	}
	p, err := l.Plan(ctx, provision.PlanOptions{Retest: nodes, Targets: nodes})
	if err == nil {
		err = provision.RefuseBeside(p, false)
	}
	if err != nil {
		return p, apply.Result{}, err
	}
	if _, err := l.Claim(ctx); err != nil {
		return p, apply.Result{}, err
	}
	res, err := l.Apply(ctx, p)
	return p, res, err
}

// Prepare prepares a rollback: plans are made for it until it is recorded.
func (l *Later) Prepare(ctx context.Context, o *acceptance.Rollback) (err error) {
	l.plans, err = l.Site.PrepareRollback(ctx, l.Store, o)
	return err
}

// Record makes an approved rollback durable, as the command does.
func (l *Later) Record(ctx context.Context, o *acceptance.Rollback) error {
	fence, err := l.Store.Claim(ctx, "rollback")
	if err != nil {
		return err
	}
	l.plans = nil
	return overrides.RecordPins(ctx, l.Store, fence, o.Pins)
}

// Forget takes nodes out of the state that the site does not have any more.
func (l *Later) Forget(ctx context.Context, nodes ...string) error {
	fence, err := l.Claim(ctx)
	if err != nil {
		return err
	}
	return overrides.Forget(ctx, l.Store, fence, l.Site.Inv, nodes, overrides.ForgetReason{Reason: "chassis returned", By: "operator"}, l.Clock.Now())
}

// ReleasePins lets nodes follow the site again.
func (l *Later) ReleasePins(ctx context.Context, nodes ...string) error {
	fence, err := l.Store.Claim(ctx, "rollback --release")
	if err != nil {
		return err
	}
	return overrides.ReleasePins(ctx, l.Store, fence, nodes, "operator", l.Clock.Now())
}
