package rehearsal

import (
	"cmp"
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/overrides"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// Later is what happens on the virtual rack after the first run: the same state,
// the same hardware, and whatever the operator does next. It is used on virtual
// time, from Options.Then only.
type Later struct {
	t     *theatre
	plans *provision.Site // of a rebuild or rollback that is prepared and not recorded; nil: none
}

// Site is the site as it was opened last.
func (l *Later) Site() *provision.Site { return l.t.site }

// Desired is the site with what the state overrides of its files now.
func (l *Later) Desired(ctx context.Context) (*provision.Site, error) {
	return l.t.site.Desired(ctx, l.t.store, nil)
}

// World is the virtual rack.
func (l *Later) World() *virtual.World { return l.t.world }

// Store is the state. A run claims it anew.
func (l *Later) Store() state.Store { return l.t.store }

// KillAt has the controller die at the first record of a step of a node, such as
// install.write. Apply then ends with an error; the next one goes on.
func (l *Later) KillAt(step, node string) {
	l.t.store.when = append(l.t.store.when, l.t.atStep(fault.Fault{At: step, Node: node}))
}

// Plant breaks something, now.
func (l *Later) Plant(f fault.Fault) error { return l.t.plantOne(f) }

// Edit opens the site with other files: what the operator has changed. The
// hardware stays as it is. Stand-ins of images whose recipe changed are made.
func (l *Later) Edit(ctx context.Context, inv *inventory.Inventory) error {
	l.t.planned, _ = provision.Plannable(inv)
	return l.t.openSite(ctx)
}

// Spoil makes the stand-ins of an image that are made from now on lack their boot
// partition, or have it again: an image of such a recipe is written, configured,
// and does not boot. Images that are made already stay as they are.
func (l *Later) Spoil(image string, spoilt bool) {
	l.t.spoilt = slices.DeleteFunc(l.t.spoilt, func(i string) bool { return i == image })
	if spoilt {
		l.t.spoilt = append(l.t.spoilt, image)
	}
}

// Plan plans what is left to do. Refusals are in the plan.
func (l *Later) Plan(ctx context.Context, o provision.PlanOptions) (*plan.Plan, error) {
	o.Now = l.t.clk.Now()
	p, diags, err := cmp.Or(l.plans, l.t.site).Plan(ctx, l.t.store, o)
	if err == nil && diags.HasErrors() {
		err = Unplannable{diags}
	}
	return p, err
}

// Apply runs a plan to its end. Erasures are approved.
func (l *Later) Apply(ctx context.Context, p *plan.Plan) (apply.Result, error) {
	return l.t.run(ctx, p)
}

// Rebuild rebuilds nodes as the command does, with everything approved; the plan
// is nil when it was refused before there was one.
func (l *Later) Rebuild(ctx context.Context, o *provision.Rebuild) (*plan.Plan, apply.Result, error) {
	o.At = l.t.clk.Now()
	var err error
	if l.plans, err = l.t.site.PrepareRebuild(ctx, l.t.store, o); err != nil {
		return nil, apply.Result{}, err
	}
	p, err := l.Plan(ctx, o.Options())
	l.plans = nil
	if err != nil {
		return p, apply.Result{}, err
	}
	if len(p.Refusals) > 0 {
		return p, apply.Result{}, refused(p)
	}
	fence, err := l.t.store.Claim(ctx, "rebuild")
	if err != nil {
		return p, apply.Result{}, err
	}
	if err := provision.RecordRebuild(ctx, l.t.store, fence, o, p); err != nil {
		return p, apply.Result{}, err
	}
	res, err := l.Apply(ctx, p)
	return p, res, err
}

// Prepare prepares a rollback: plans are made for it until it is recorded.
func (l *Later) Prepare(ctx context.Context, o *provision.Rollback) (err error) {
	l.plans, err = l.t.site.PrepareRollback(ctx, l.t.store, o)
	return err
}

// Record makes an approved rollback durable, as the command does.
func (l *Later) Record(ctx context.Context, o *provision.Rollback) error {
	fence, err := l.t.store.Claim(ctx, "rollback")
	if err != nil {
		return err
	}
	l.plans = nil
	return overrides.RecordPins(ctx, l.t.store, fence, o.Pins)
}

// Forget takes nodes out of the state that the site does not have any more.
func (l *Later) Forget(ctx context.Context, nodes ...string) error {
	fence, err := l.claim(ctx)
	if err != nil {
		return err
	}
	return overrides.Forget(ctx, l.t.store, fence, l.t.site.Inv, nodes, overrides.Forgetting{Reason: "chassis returned", By: "operator"}, l.t.clk.Now())
}

// ReleasePins lets nodes follow the site again.
func (l *Later) ReleasePins(ctx context.Context, nodes ...string) error {
	fence, err := l.t.store.Claim(ctx, "rollback --release")
	if err != nil {
		return err
	}
	return overrides.ReleasePins(ctx, l.t.store, fence, nodes, "operator", l.t.clk.Now())
}
