// SPDX-License-Identifier: Apache-2.0

// Package mounts is the stage of the shared file systems that the nodes of a role mount: NFS,
// Lustre and others. Each is a unit of systemd, started and looked at once the drivers and
// fabrics of the node are up, since it may be reached over them.
package mounts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// The stage's name and the version of its fingerprints.
const (
	Name    = "mounts"
	Version = 1
)

// limit is the hang deadline of a step; each mount has 90 s of its own (hostfile.MountUnit).
const limit = 20 * time.Minute

// Mount is one file system as a node has it.
type Mount struct {
	Path    string   `json:"path"`
	Type    string   `json:"type"`
	Source  string   `json:"source"`
	Options []string `json:"options,omitempty"`
}

// mountsFact is what a node mounts: what is no longer in the files is taken back by it.
const mountsFact = fact.Name[[]Mount]("mounts.shared")

// StepID returns the step of a node.
func StepID(node string) plan.StepID { return plan.StepID(node + "/" + Name + ".shared") }

// Gives reports whether a node has a step of this stage by its files.
func Gives(n *inventory.Node) bool { return mounts(n) && len(n.Role.Mounts) > 0 }

// mounts reports whether a node may have a step of this stage.
func mounts(n *inventory.Node) bool { return n.Role != nil && n.Image != nil && !n.Retired }

// wanted are the file systems of a node by the files.
func wanted(n *inventory.Node) (list []Mount) {
	if n.Role == nil {
		return nil
	}
	for _, m := range n.Role.Mounts {
		list = append(list, Mount{m.Path, m.Type, m.Source, m.Options})
	}
	return list
}

// Stage is the stage. It is safe for concurrent use.
type Stage struct {
	inv   *inventory.Inventory
	nodes onnode.Nodes
	ready func(*inventory.Node) []plan.Need
}

// New returns the stage; ready are the steps after which a node has its drivers and fabrics.
// nodes may be nil when only Plan is called.
func New(inv *inventory.Inventory, nodes onnode.Nodes, ready func(*inventory.Node) []plan.Need) *Stage {
	return &Stage{inv, nodes, ready}
}

// Name implements stage.Stage.
func (s *Stage) Name() string { return Name }

// Version implements stage.Stage.
func (s *Stage) Version() int { return Version }

// Plan implements stage.Stage: a step for each node whose role mounts something, or that has
// something mounted which its role no longer mounts.
func (s *Stage) Plan(view stage.View) (steps []plan.Step, diags hcl.Diagnostics) {
	for _, n := range s.inv.Nodes {
		last, known := recorded(view, n.Name)
		if !mounts(n) || len(n.Role.Mounts) == 0 && len(last) == 0 {
			continue
		}
		st := stepOf(n)
		st.Needs, st.Inherited = s.ready(n), !known
		steps = append(steps, st)
	}
	return steps, s.Check()
}

// recorded is what a node has by the state; what cannot be read counts as nothing.
func recorded(view stage.View, node string) (last []Mount, known bool) {
	f, known := view.Fact(mountsFact.Of(subject.OfNode(node)))
	if known {
		last, _ = mountsFact.Get(f)
	}
	return last, known
}

// stepOf is the step of a node but for what it needs. Its inputs are what the site says.
func stepOf(n *inventory.Node) plan.Step {
	me := subject.OfNode(n.Name)
	st := plan.Step{ID: StepID(n.Name), Stage: Name, Subject: me, Title: "mount " + list(wanted(n)), May: plan.Effects(plan.Config), Decl: stage.Source(n.Role.Decl),
		Deadline: plan.Budget{Limit: limit, Expected: 5 * time.Second}, Version: Version, DepthKey: n.Name, Yields: []fact.Key{mountsFact.Of(me)}, Reads: []fact.Key{mountsFact.Of(me)}}
	for _, m := range n.Role.Mounts {
		st.Inputs = append(st.Inputs, plan.Input{Name: "mount " + m.Path, Value: strings.Join(append([]string{m.Type, m.Source}, m.Options...), " "), Decl: stage.Source(m.Decl)})
	}
	return st
}

// list names file systems by their places.
func list(all []Mount) string {
	if len(all) == 0 {
		return "nothing any more"
	}
	var words []string
	for _, m := range all {
		words = append(words, m.Path+" ("+m.Type+")")
	}
	return strings.Join(words, ", ")
}

// Observe implements stage.Stage.
func (s *Stage) Observe(ctx context.Context, run stage.Run, st plan.Step) (stage.Observation, error) {
	n, err := s.inv.Planned(st.Subject.Name)
	if err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	want := wanted(n)
	last, _ := recorded(run, n.Name)
	wrong, err := work{s.nodes, n.Name}.compare(ctx, want, last)
	switch {
	case err != nil:
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	case len(wrong) > 0:
		return stage.Observation{State: stage.Differs, Evidence: strings.Join(texts(wrong), "; ")}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: list(want)}, record(ctx, run, n, want)
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	n, err := s.inv.Planned(st.Subject.Name)
	if err != nil {
		return err
	}
	want, w := wanted(n), work{s.nodes, n.Name}
	last, _ := recorded(run, n.Name)
	if hidden, err := w.hidden(ctx, want); err != nil {
		return err
	} else if len(hidden) > 0 {
		return s.blame(ctx, run, n, hidden, "Move away what is there, or mount it elsewhere: correct the mount block of the role. Then run `ironrail apply`.", nil)
	}
	// Before the first unit is written, so that nothing is left behind that nobody knows of.
	if err := record(ctx, run, n, union(want, last)); err != nil {
		return err
	}
	err = run.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s-%d", st.ID, run.Clock().Now().UnixNano()), // idempotent: each attempt is one of its own
		Kind: plan.Config, Repeatable: true, Does: "mount " + list(want) + " on " + n.Name,
		Do: func(ctx context.Context) error {
			return w.apply(ctx, want, last, func(text string) { run.Emit(event.Event{Type: event.StepProgress, Node: n.Name, Text: text}) })
		}})
	if err != nil {
		return err
	}
	wrong, err := w.compare(ctx, want, last)
	switch {
	case err != nil:
		return errkind.Begun(err)
	case len(wrong) > 0:
		said, err := w.explain(ctx, wrong)
		if err != nil {
			return errkind.Begun(err)
		}
		return errkind.Begun(s.blame(ctx, run, n, wrong, "Look at the server of the file system: whether it runs, exports it to this node, and is reached from it. Where the node has no program for it, add the package to the image or to a driver. Then run `ironrail apply`.", said))
	}
	return record(ctx, run, n, want)
}

// blame is the finding about file systems that are not as they are to be.
func (s *Stage) blame(ctx context.Context, run stage.Run, n *inventory.Node, wrong []problem, action string, said []byte) error {
	f := stage.Finding{Action: action, Cause: wrong[0].text, Evidence: texts(wrong)}
	for _, p := range wrong {
		x := stage.Suspect{Subject: subject.OfNode(n.Name), Part: "mount " + p.path}
		if !slices.Contains(f.Suspects, x) {
			f.Suspects = append(f.Suspects, x)
		}
	}
	if len(said) > 0 {
		ref, err := run.Attach("mounts.log", said)
		if err != nil {
			return err
		}
		f.Evidence = append(f.Evidence, ref)
	}
	return errors.Join(run.Blame(ctx, f), errkind.New(errkind.Mismatch, "%s", f.Cause).Do(action))
}

// union is want, and what of last is at other places.
func union(want, last []Mount) []Mount {
	all := slices.Clone(want)
	for _, m := range last {
		if !slices.ContainsFunc(want, func(w Mount) bool { return w.Path == m.Path }) {
			all = append(all, m)
		}
	}
	return all
}

func record(ctx context.Context, run stage.Run, n *inventory.Node, has []Mount) error {
	if has == nil {
		has = []Mount{}
	}
	f, err := mountsFact.New(subject.OfNode(n.Name), has, "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, f)
}

// Weave has the tests that accept a node wait for its file systems.
func Weave(inv *inventory.Inventory, steps []plan.Step, accept func(node string) plan.StepID) []plan.Step {
	last := map[plan.StepID][]plan.Need{}
	for _, n := range inv.Nodes {
		if Gives(n) {
			last[accept(n.Name)] = []plan.Need{{Step: StepID(n.Name), On: plan.Success, Triggers: true}}
		}
	}
	plan.AddNeeds(steps, last)
	return steps
}
