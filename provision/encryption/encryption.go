// SPDX-License-Identifier: Apache-2.0

// Package encryption is the stage of the data file systems of disk layouts that are encrypted:
// LUKS2 volumes, each with a recovery key that the controller keeps, and a token by which the
// TPM 2.0 of the node unlocks it while PCR 7 is as it was. They are made by the installed
// system, once it was started from its disk: PCR 7 is then that of every later start.
package encryption

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
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/keys"
)

// The stage's name and the version of its fingerprints.
const (
	Name    = "encryption"
	Version = 1
)

// limit is the hang deadline of a step, usual how long it takes: a TPM needs a second or two for
// each key, mkfs of a large disk some seconds.
const (
	limit = 30 * time.Minute
	usual = 15 * time.Second
)

// Record is what is known of an encrypted volume. Nothing of it is secret.
type Record struct {
	Volume string `json:"volume"` // label
	UUID   string `json:"uuid"`   // of the LUKS2 volume
	PCR7   string `json:"pcr7"`   // SHA-256 bank, when the TPM was enrolled
}

// volumesFact are the encrypted volumes of a node.
const volumesFact = fact.Name[[]Record]("encryption.volumes")

// StepID returns the step of a node that makes its volumes.
func StepID(node string) plan.StepID { return plan.StepID(node + "/" + Name + ".volumes") }

// checkID returns the step of a node that looks at its volumes after all that restarts it.
func checkID(node string) plan.StepID { return plan.StepID(node + "/" + Name + ".unlocked") }

// Gives reports whether a node has a step of this stage.
func Gives(n *inventory.Node) bool {
	return n.Image != nil && !n.Retired && n.Disks != nil && len(n.Disks.Encrypted()) > 0
}

// Stage is the stage. It is safe for concurrent use.
type Stage struct {
	inv      *inventory.Inventory
	nodes    onnode.Nodes
	recovery keys.Recovery
	ready    func(*inventory.Node) []plan.Need
}

// New returns the stage; ready are the steps after which nothing restarts a node before it is
// tested. nodes may be nil when only Plan is called.
func New(inv *inventory.Inventory, nodes onnode.Nodes, recovery keys.Recovery, ready func(*inventory.Node) []plan.Need) *Stage {
	return &Stage{inv, nodes, recovery, ready}
}

// Name implements stage.Stage.
func (s *Stage) Name() string { return Name }

// Version implements stage.Stage.
func (s *Stage) Version() int { return Version }

// Plan implements stage.Stage: two steps for each node whose disk layout has encrypted data.
func (s *Stage) Plan(view stage.View) (steps []plan.Step, _ hcl.Diagnostics) {
	for _, n := range s.inv.Nodes {
		if !Gives(n) {
			continue
		}
		st := stepOf(n)
		_, known := view.Fact(volumesFact.Of(st.Subject))
		st.Inherited = !known
		steps = append(steps, st, s.checkStep(n))
	}
	return steps, nil
}

// checkStep is the step of a node that looks whether its volumes got through the restarts that
// its drivers and NICs asked for.
func (s *Stage) checkStep(n *inventory.Node) plan.Step {
	me := subject.OfNode(n.Name)
	return plan.Step{ID: checkID(n.Name), Stage: Name, Action: plan.Read, Subject: me, Title: "look whether the encrypted volumes are unlocked and mounted, after what restarts the node", Decl: stage.Source(n.Disks.Decl),
		Deadline: plan.Budget{Limit: limit, Expected: time.Second}, Version: Version, DepthKey: n.Name, Reads: []fact.Key{install.WriteFact.Of(me), volumesFact.Of(me)},
		Needs: append(slices.Clone(s.ready(n)), plan.Need{Step: StepID(n.Name), On: plan.Success, Triggers: true})}
}

// stepOf is the step of a node. Its inputs are what the site says.
func stepOf(n *inventory.Node) plan.Step {
	me, boot := subject.OfNode(n.Name), install.StepOf(n.Name, install.Boot)
	var names []string
	st := plan.Step{ID: StepID(n.Name), Stage: Name, Subject: me, May: plan.Effects(plan.Config), Decl: stage.Source(n.Disks.Decl),
		Deadline: plan.Budget{Limit: limit, Expected: usual}, Version: Version, DepthKey: n.Name,
		Reads: []fact.Key{install.WriteFact.Of(me), volumesFact.Of(me)}, Yields: []fact.Key{volumesFact.Of(me)}, Needs: []plan.Need{{Step: boot, On: plan.Success, Triggers: true}}}
	for _, f := range n.Disks.Encrypted() {
		names = append(names, f.Name)
		st.Inputs = append(st.Inputs, plan.Input{Name: "data " + f.Name + " encryption", Value: f.Encryption, Decl: stage.Source(f.Decl)})
	}
	st.Title = "encrypt " + strings.Join(names, ", ") + " (LUKS2) where blank, enroll the TPM (PCR 7) where it does not unlock, and mount"
	return st
}

// Observe implements stage.Stage. What a check would see is what the step that makes the volumes
// observes, and is said once.
func (s *Stage) Observe(ctx context.Context, run stage.Run, st plan.Step) (stage.Observation, error) {
	if st.ID == checkID(st.Subject.Name) {
		return stage.Observation{State: stage.Conforms, Evidence: "observed by " + string(StepID(st.Subject.Name))}, nil
	}
	w, err := s.work(run, st)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	wrong, err := w.compare(ctx)
	switch {
	case err != nil:
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	case len(wrong) > 0:
		return stage.Observation{State: stage.Differs, Evidence: strings.Join(joined(texts(wrong)), "; ")}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: w.names() + ": unlocked by the TPM and mounted"}, nil
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	w, err := s.work(run, st)
	if err != nil {
		return err
	}
	if st.ID == checkID(w.node) {
		return s.check(ctx, run, w)
	}
	wrong, err := w.obstacles(ctx)
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return s.blame(ctx, run, w, wrong)
	}
	err = run.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s-%d", st.ID, run.Clock().Now().UnixNano()), // each attempt is one of its own: what is there already stays
		Kind: plan.Config, Repeatable: true, Does: "encrypt, enroll and mount " + w.names() + " on " + w.node,
		Do: func(ctx context.Context) error { return w.apply(ctx) }})
	if err != nil {
		return err
	}
	if err := s.check(ctx, run, w); err != nil {
		return errkind.Begun(err)
	}
	f, err := volumesFact.New(st.Subject, w.records(), "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, f)
}

// check fails, with a finding, unless the volumes are as they are to be.
func (s *Stage) check(ctx context.Context, run stage.Run, w *work) error {
	wrong, err := w.compare(ctx)
	if err != nil || len(wrong) == 0 {
		return err
	}
	if err := w.explain(ctx, wrong); err != nil {
		return err
	}
	return s.blame(ctx, run, w, wrong)
}

// work is what a step has to do, by the layout that the node was installed with.
func (s *Stage) work(run stage.Run, st plan.Step) (*work, error) {
	n, err := s.inv.Planned(st.Subject.Name)
	if err != nil {
		return nil, err
	}
	w := &work{nodes: s.nodes, node: n.Name, recovery: s.recovery, say: func(text string) { run.Emit(event.Event{Type: event.StepProgress, Node: n.Name, Text: text}) }}
	f, ok := run.Fact(install.WriteFact.Of(st.Subject))
	if !ok {
		return nil, errkind.New(errkind.Refused, "it is not recorded how the disks of %s were laid out: it was not installed by this controller", n.Name).Do("`ironrail rebuild` installs it anew.")
	}
	written, err := install.WriteFact.Get(f)
	if err != nil {
		return nil, err
	}
	if f, ok := run.Fact(volumesFact.Of(st.Subject)); ok {
		if w.known, err = volumesFact.Get(f); err != nil {
			return nil, err
		}
	}
	for _, f := range n.Disks.Encrypted() {
		v, err := volumeOf(written.Result.Layout, f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		w.volumes = append(w.volumes, v)
	}
	slices.SortFunc(w.volumes, func(a, b volume) int { return strings.Compare(a.mount, b.mount) }) // what lies in another comes after it
	return w, nil
}

// blame is the finding about volumes that are not as they are to be.
func (s *Stage) blame(ctx context.Context, run stage.Run, w *work, wrong []problem) error {
	f := stage.Finding{Action: wrong[0].action, Cause: wrong[0].text, Evidence: texts(wrong)}
	for _, p := range wrong {
		if x := (stage.Suspect{Subject: subject.OfNode(w.node), Part: p.part}); !slices.Contains(f.Suspects, x) {
			f.Suspects = append(f.Suspects, x)
		}
	}
	return errors.Join(run.Blame(ctx, f), errkind.New(errkind.Mismatch, "%s", f.Cause).Do(f.Action))
}

// Weave has what follows the boot of a node follow its encrypted volumes, but for settings of
// its host, which come first, and has its acceptance wait for them.
func Weave(inv *inventory.Inventory, steps []plan.Step, before string, accept func(node string) plan.StepID) []plan.Step {
	after, last := map[plan.StepID][]plan.Need{}, map[plan.StepID][]plan.Need{}
	for _, n := range inv.Nodes {
		if Gives(n) {
			after[install.StepOf(n.Name, install.Boot)] = []plan.Need{{Step: StepID(n.Name)}}
			last[accept(n.Name)] = []plan.Need{{Step: checkID(n.Name), On: plan.Success, Triggers: true}}
		}
	}
	plan.Interpose(steps, after, func(st *plan.Step) bool { return st.Stage != Name && st.Stage != before })
	plan.AddNeeds(steps, last)
	return steps
}
