// SPDX-License-Identifier: Apache-2.0

// Package driver is the stage that installs driver stacks on nodes: one step for
// each repository that a stack needs, and one for each node and stack. What a
// kind of stack does is its own package's business, such as images/driver/inbox.
package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// StageName is the name of the stage in plans.
const StageName = "drivers"

// Stage plans and applies the driver stacks of a site.
type Stage struct {
	inv   *inventory.Inventory
	kinds map[string]Kind
}

// New returns the stage. kinds are the kinds that can be applied, by name.
func New(inv *inventory.Inventory, kinds map[string]Kind) *Stage {
	return &Stage{inv: inv, kinds: kinds}
}

// Name implements stage.Stage.
func (s *Stage) Name() string { return StageName }

// Version implements stage.Stage.
func (s *Stage) Version() int { return 1 }

// StepID returns the step that installs a stack on a node.
func StepID(node, driver string) plan.StepID {
	return plan.StepID(node + "/drivers." + driver)
}

// PrepareID returns the step that makes a stack ready for nodes with an image.
func PrepareID(driver, image string) plan.StepID {
	return plan.StepID("site/drivers." + driver + "." + image)
}

// Plan implements stage.Stage.
func (s *Stage) Plan(stage.View) ([]plan.Step, hcl.Diagnostics) {
	var prepare, install []plan.Step
	type made struct {
		d *inventory.Driver
		i *inventory.Image
	}
	prepared, signs := map[made]*alike{}, map[plan.StepID]bool{}
	all := 0
	for _, n := range s.inv.Nodes {
		all += len(n.Drivers)
	}
	install = make([]plan.Step, 0, all)
	for _, n := range s.inv.Nodes {
		var before *inventory.Driver
		for _, d := range n.Drivers {
			if s.kinds[d.Kind] == nil || n.Image == nil {
				continue
			}
			m := made{d, n.Image}
			if prepared[m] == nil {
				prepared[m] = newAlike(d, n.Image)
				_, starts := s.kinds[d.Kind].(Starter)
				prepared[m].starts(starts)
				prepare = append(prepare, prepareStep(d, n.Image))
			}
			if k, can := s.kinds[d.Kind].(Signing); can && k.Signs(Target{n, d}) {
				signs[PrepareID(d.Name, n.Image.Name)] = true
			}
			install = append(install, prepared[m].step)
			prepared[m].fill(&install[len(install)-1], n, d, before)
			before = d
		}
	}
	for i := range prepare {
		if signs[prepare[i].ID] {
			signed(&prepare[i])
		}
	}
	return append(prepare, install...), s.Check()
}

// signed makes a step that prepares a stack one that has its kernel modules built and signed.
func signed(st *plan.Step) {
	st.Title += ", with kernel modules that are built and signed here"
	st.Deadline = plan.Budget{Limit: 3 * time.Hour, Expected: 6 * time.Minute}
}

// Check implements stage.Checker.
func (s *Stage) Check() (diags hcl.Diagnostics) {
	seen, fits := map[*inventory.Driver]bool{}, map[fitting]bool{}
	for _, n := range s.inv.Nodes {
		for _, d := range n.Drivers {
			if !seen[d] {
				seen[d] = true
				diags = append(diags, s.check(d)...)
			}
			f := fitting{d, n.Image, n.Hardware}
			if s.kinds[d.Kind] == nil || n.Image == nil || fits[f] {
				continue
			}
			fits[f] = true
			diags = append(diags, Fit(s.kinds[d.Kind], Target{n, d})...)
		}
	}
	return diags
}

// fitting is what decides whether a stack goes with its system.
type fitting struct {
	d *inventory.Driver
	i *inventory.Image
	h *inventory.Hardware
}

// Fit asks a kind whether a stack goes with the system of a node.
func Fit(k Kind, t Target) hcl.Diagnostics {
	if f, ok := k.(Fitter); ok {
		return f.Fits(t)
	}
	return nil
}

func (s *Stage) check(d *inventory.Driver) hcl.Diagnostics {
	if k := s.kinds[d.Kind]; k != nil {
		return k.Check(d)
	}
	way := fmt.Sprintf("Take %q out of the role's drivers to bring the nodes up without it.", d.Name)
	return stage.DiagnoseUnsupportedKind("Driver", d.Name, d.Kind, s.kinds, "", way, d.Decl)
}

func prepareStep(d *inventory.Driver, image *inventory.Image) plan.Step {
	return plan.Step{
		ID: PrepareID(d.Name, image.Name), Stage: StageName, Action: plan.Create, Only: plan.WhenNeeded,
		Subject:  subject.ID{Kind: subject.Site, Name: "drivers." + d.Name + "." + image.Name},
		Title:    fmt.Sprintf("make the packages of driver %s ready for image %s", d.Name, image.Name),
		Needs:    []plan.Need{{Step: plan.StepID("site/image." + image.Name), On: plan.Success}},
		Decl:     stage.Source(d.Decl),
		Deadline: plan.Budget{Limit: 30 * time.Minute, Expected: time.Minute},
		Inputs:   append(driverInputs(d), imageInput(image)),
		Version:  1,
		Params:   map[string]plan.Value{"driver": plan.Literal(d.Name), "image": plan.Literal(image.Name)},
	}
}

// alike is what the installations of one stack on nodes of one image have in
// common: the step but for its node, and the fact that it yields.
type alike struct {
	step     plan.Step
	prepare  plan.StepID
	packages fact.Name[Installed]
}

func newAlike(d *inventory.Driver, image *inventory.Image) *alike {
	return &alike{prepare: PrepareID(d.Name, image.Name), packages: Packages(d.Name), step: plan.Step{
		Stage: StageName, Action: plan.Create,
		Title:    "install driver " + d.Name,
		May:      plan.Effects(plan.Config),
		Decl:     stage.Source(d.Decl),
		Deadline: plan.Budget{Limit: 30 * time.Minute, Expected: 90 * time.Second},
		Inputs:   driverInputs(d),
		Version:  1,
		Params:   map[string]plan.Value{"driver": plan.Literal(d.Name)},
	}}
}

// starts tells that the stack may restart its node.
func (a *alike) starts(yes bool) {
	if yes {
		a.step.May = plan.Effects(plan.Config, plan.Power)
		a.step.Deadline = plan.Budget{Limit: 2 * time.Hour, Expected: 8 * time.Minute}
	}
}

// fill makes the common step that of one node. It comes after the stack before it
// in the node's list; a module that was built beside the one of DOCA is built anew
// when that changed.
func (a *alike) fill(st *plan.Step, n *inventory.Node, d, before *inventory.Driver) {
	st.ID, st.Subject, st.DepthKey = StepID(n.Name, d.Name), subject.OfNode(n.Name), n.Name
	st.Needs = []plan.Need{
		{Step: plan.StepID(n.Name + "/install.boot"), On: plan.Success, Triggers: true},
		{Step: a.prepare, On: plan.Success},
	}
	if before != nil {
		st.Needs = append(st.Needs, plan.Need{Step: StepID(n.Name, before.Name), On: plan.Success, Triggers: before.Kind == "doca"})
	}
	st.Yields = []fact.Key{a.packages.Of(st.Subject)}
}

// Observe implements stage.Stage.
func (s *Stage) Observe(ctx context.Context, _ stage.Run, st plan.Step) (stage.Observation, error) {
	w, err := s.find(st)
	if err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	if w.target.Node == nil {
		return w.kind.Prepared(ctx, w.target.Driver, w.image)
	}
	o, _, err := w.kind.Verify(ctx, w.target)
	return o, err
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	w, err := s.find(st)
	if err != nil {
		return err
	}
	if w.target.Node == nil {
		return w.kind.Prepare(ctx, w.target.Driver, w.image, func(text string) {
			run.Emit(event.Event{Type: event.StepProgress, Text: text})
		})
	}
	err = run.Effect(ctx, stage.Effect{
		// Idempotent, so that each attempt is an effect of its own.
		Key:  fmt.Sprintf("%s/install-%d", st.ID, run.Clock().Now().UnixNano()),
		Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("install the packages of driver %s on %s", w.target.Driver.Name, w.target.Node.Name),
		Do:   func(ctx context.Context) error { return w.kind.Install(ctx, run, w.target) },
	})
	if err != nil {
		return blameDriver(ctx, run, w, err)
	}
	if starter, ok := w.kind.(Starter); ok {
		if err := starter.Start(ctx, run, w.target); err != nil {
			return err
		}
	}
	return verifyWork(ctx, run, w)
}

// blameDriver tells a node that could not install from a controller that has nothing to
// install any more: the latter is one cause for all nodes, and no fault of theirs.
func blameDriver(ctx context.Context, run stage.Run, w work, err error) error {
	d, image := w.target.Driver, w.target.Node.Image.Name
	o, perr := w.kind.Prepared(ctx, d, image)
	if perr != nil || o.State != stage.Differs {
		return err
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: prepareStep(d, w.target.Node.Image).Subject, Part: "repository"}},
		Cause:    fmt.Sprintf("the packages of driver %s for image %s are not whole on the controller any more", d.Name, image),
		Evidence: []string{o.Evidence, err.Error()},
		Action:   "Look at the controller's disk, make them again with `ironrail image build`, then run `ironrail apply`: the nodes go on from there."}
	return errors.Join(run.Blame(ctx, f), err)
}

func verifyWork(ctx context.Context, run stage.Run, w work) error {
	o, have, err := w.kind.Verify(ctx, w.target)
	if err != nil {
		return err
	}
	if o.State != stage.Conforms {
		family, _ := distribution.FamilyOf(w.target.Node.Image)
		return Blame(ctx, run, w.target, fmt.Sprintf("driver %s was installed and yet %s", w.target.Driver.Name, o.Evidence), []string{o.Evidence},
			fmt.Sprintf("Look at the package log of the node (%s), then apply again.", family.Manager.Log()))
	}
	f, err := Packages(w.target.Driver.Name).New(subject.OfNode(w.target.Node.Name), have, "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, f)
}

// Blame records that a stack is not as it has to be on one node, and returns that
// as an error.
func Blame(ctx context.Context, run stage.Run, t Target, cause string, evidence []string, action string) error {
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(t.Node.Name), Part: "driver " + t.Driver.Name}}, Cause: cause, Evidence: evidence, Action: action}
	return errors.Join(run.Blame(ctx, f), errkind.New(errkind.Mismatch, "%s", cause).Do(action))
}

// work is what a step of this stage is about. Node is nil for a preparation.
type work struct {
	kind   Kind
	target Target
	image  string
}

// find looks up what the step is about by its subject and its parameters.
func (s *Stage) find(st plan.Step) (work, error) {
	nodes := s.inv.Nodes // of a preparation: the first node that it is for
	if st.Subject.Kind == subject.Node {
		n, ok := s.inv.Node(st.Subject.Name)
		nodes = nil
		if ok {
			nodes = []*inventory.Node{n}
		}
	}
	for _, n := range nodes {
		for _, d := range n.Drivers {
			k := s.kinds[d.Kind]
			if k == nil || n.Image == nil {
				continue
			}
			switch st.ID {
			case StepID(n.Name, d.Name):
				return work{kind: k, target: Target{Node: n, Driver: d}}, nil
			case PrepareID(d.Name, n.Image.Name):
				return work{kind: k, target: Target{Driver: d}, image: n.Image.Name}, nil
			}
		}
	}
	return work{}, errkind.New(errkind.NotFound, "step %s is not in this inventory", st.ID).Do("Plan again: the site's files changed after the plan was made.")
}
