// Package driver is the stage that installs driver stacks on nodes: one step for
// each repository that a stack needs, and one for each node and stack. What a
// kind of stack does is its own package's business, such as images/driver/inbox.
package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/fact"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/stage"
	"github.com/ironrail/ironrail/provision/subject"
)

// StageName is the name of the stage in plans.
const StageName = "drivers"

// Target is one stack on one node.
type Target struct {
	Node   *inventory.Node
	Driver *inventory.Driver
}

// Kind is one kind of driver stack. All methods but Check reach the world and
// may block; they are safe for concurrent use.
type Kind interface {
	// Check finds what this kind cannot do with a declaration. It is pure.
	Check(*inventory.Driver) hcl.Diagnostics
	// Prepare makes ready, on the controller, what the stack's nodes with that
	// image install from. It does nothing when that is ready.
	Prepare(ctx context.Context, d *inventory.Driver, image string, say func(string)) error
	// Prepared tells whether Prepare has nothing to do.
	Prepared(ctx context.Context, d *inventory.Driver, image string) (stage.Observation, error)
	// Install brings the stack to the node. Doing it twice is harmless. It does
	// what Prepare does when that was lost since, so it may take as long.
	Install(ctx context.Context, run stage.Run, t Target) error
	// Verify looks whether the stack is there, and returns what is installed.
	Verify(ctx context.Context, t Target) (stage.Observation, Installed, error)
}

// Installed is what stands on a node of one stack.
type Installed struct {
	Packages map[string]string `json:"packages"` // name to version
	Modules  []string          `json:"modules,omitempty"`
}

// Packages is the fact of what is installed of the named stack on a node.
func Packages(driver string) fact.Name[Installed] {
	return fact.Name[Installed]("driver.packages." + driver)
}

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
	var diags hcl.Diagnostics
	seen := map[*inventory.Driver]bool{}
	prepared := map[plan.StepID]bool{}
	for _, n := range s.inv.Nodes {
		for _, d := range n.Drivers {
			if !seen[d] {
				seen[d] = true
				diags = append(diags, s.check(d)...)
			}
			if s.kinds[d.Kind] == nil || n.Image == nil {
				continue
			}
			p := prepareStep(d, n.Image)
			if !prepared[p.ID] {
				prepared[p.ID] = true
				prepare = append(prepare, p)
			}
			install = append(install, installStep(n, d))
		}
	}
	return append(prepare, install...), diags
}

func (s *Stage) check(d *inventory.Driver) hcl.Diagnostics {
	if k := s.kinds[d.Kind]; k != nil {
		return k.Check(d)
	}
	way := fmt.Sprintf("Take %q out of the role's drivers to bring the nodes up without it.", d.Name)
	return stage.NoSuchKind("Driver", d.Name, d.Kind, s.kinds, "", way, d.Decl)
}

func prepareStep(d *inventory.Driver, image *inventory.Image) plan.Step {
	return plan.Step{
		ID: PrepareID(d.Name, image.Name), Stage: StageName, Action: plan.Create, Only: plan.WhenNeeded,
		Subject:  subject.ID{Kind: subject.Site, Name: "drivers." + d.Name + "." + image.Name},
		Title:    fmt.Sprintf("make the packages of driver %s ready for image %s", d.Name, image.Name),
		Needs:    []plan.Need{{Step: plan.StepID("site/image." + image.Name), On: plan.Success}},
		Decl:     stage.Source(d.Decl),
		Deadline: plan.Budget{Limit: 30 * time.Minute, Expected: time.Minute},
		Inputs:   append(inputs(d), imageInput(image)),
		Version:  1,
		Params:   map[string]plan.Value{"driver": plan.Literal(d.Name), "image": plan.Literal(image.Name)},
	}
}

func installStep(n *inventory.Node, d *inventory.Driver) plan.Step {
	return plan.Step{
		ID: StepID(n.Name, d.Name), Stage: StageName, Action: plan.Create,
		Subject: subject.OfNode(n.Name),
		Title:   fmt.Sprintf("install driver %s", d.Name),
		Needs: []plan.Need{
			{Step: plan.StepID(n.Name + "/install.boot"), On: plan.Success, Renews: true},
			{Step: PrepareID(d.Name, n.Image.Name), On: plan.Success},
		},
		Yields:   []fact.Key{Packages(d.Name).Of(subject.OfNode(n.Name))},
		May:      plan.Effects(plan.Config),
		Decl:     stage.Source(d.Decl),
		Deadline: plan.Budget{Limit: 30 * time.Minute, Expected: 90 * time.Second},
		Inputs:   inputs(d),
		Version:  1,
		DepthKey: n.Name,
		Params:   map[string]plan.Value{"driver": plan.Literal(d.Name)},
	}
}

// imageInput is what of an image decides which packages its nodes lack.
func imageInput(i *inventory.Image) plan.Input {
	words := append([]string{i.Kind, i.Release, i.Kernel, i.Source, i.Digest}, slices.Sorted(slices.Values(i.Packages))...)
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	return plan.Input{Name: "image", Value: strings.Join(words, " "), Decl: stage.Source(i.Decl)}
}

func inputs(d *inventory.Driver) []plan.Input {
	packages := slices.Sorted(slices.Values(d.Packages))
	in := []plan.Input{
		{Name: "kind", Value: d.Kind, Decl: stage.Source(d.Decl)},
		{Name: "packages", Value: strings.Join(packages, " "), Decl: stage.Source(d.Place("packages"))},
	}
	if d.Version != "" {
		in = append(in, plan.Input{Name: "version", Value: d.Version, Decl: stage.Source(d.Place("version"))})
	}
	return in
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
		return blame(ctx, run, w, err)
	}
	return verify(ctx, run, w)
}

// blame tells a node that could not install from a controller that has nothing to
// install any more: the latter is one cause for all nodes, and no fault of theirs.
func blame(ctx context.Context, run stage.Run, w work, err error) error {
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

func verify(ctx context.Context, run stage.Run, w work) error {
	o, have, err := w.kind.Verify(ctx, w.target)
	if err != nil {
		return err
	}
	if o.State != stage.Conforms {
		return errkind.New(errkind.Mismatch, "driver %s was installed and yet %s", w.target.Driver.Name, o.Evidence).
			Do("Look at the package log of the node (/var/log/apt/term.log), then apply again.")
	}
	f, err := Packages(w.target.Driver.Name).New(subject.OfNode(w.target.Node.Name), have, "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, f)
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
	return work{}, errkind.New(errkind.Mismatch, "step %s is not in this inventory", st.ID).Do("Plan again: the site's files changed after the plan was made.")
}
