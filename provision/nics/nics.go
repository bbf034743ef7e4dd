// SPDX-License-Identifier: Apache-2.0

// Package nics is the stage of the settings in the flash of NVIDIA's NICs, before their
// fabrics come up: the link type of ports, into how many ports the cage of a card is split,
// whether the firmware can boot from it, and whether a BlueField is a NIC or a DPU. They are read on the node by mlxconfig (MFT, DOCA)
// or mstconfig (mstflint), written where they differ, and are in force after one cold power
// cycle for all cards of the node, after which they are read back.
package nics

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
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/install"
)

// The stage's name and the version of its fingerprints.
const (
	Name    = "nics"
	Version = 1
)

// How long a step takes: reading, where all is set already; with a power cycle a shutdown,
// 30 s without power, the self-test of a GPU node (3 to 8 minutes) and the boot after it.
// limit is its hang deadline, for self-tests that train memory.
const (
	usual    = 10 * time.Second
	withBoot = 20 * time.Minute
	limit    = 60 * time.Minute
)

// Record is what a node's NICs are known to have.
type Record struct {
	Settings []string `json:"settings"`          // in force: "0000:18:00.0 LINK_TYPE_P1 IB(1)"
	Leaving  string   `json:"leaving,omitempty"` // boot id of the system that is switched off for them; empty: none is
}

// settingsFact is the record of a node.
const settingsFact = fact.Name[Record]("nics.settings")

// Power switches a node; the BMC does.
type Power interface {
	PowerState(context.Context) (bmc.PowerState, error)
	SetPower(context.Context, bmc.PowerAction) (bmc.Outcome, error)
}

// Stage is the stage. It is safe for concurrent use.
type Stage struct {
	inv   *inventory.Inventory
	nodes onnode.Nodes
	power func(ctx context.Context, node string) (Power, error)
}

// New returns the stage; nodes and power may be nil when only Plan is called.
func New(inv *inventory.Inventory, nodes onnode.Nodes, power func(ctx context.Context, node string) (Power, error)) *Stage {
	return &Stage{inv, nodes, power}
}

// Name implements stage.Stage.
func (s *Stage) Name() string { return Name }

// Version implements stage.Stage.
func (s *Stage) Version() int { return Version }

// StepID returns the step of a node.
func StepID(node string) plan.StepID { return plan.StepID(node + "/" + Name + ".settings") }

// bootStep is the step of the install stage after which a node without drivers can be
// asked.
func bootStep(node string) plan.StepID { return plan.StepID(node + "/install.boot") }

// Gives reports whether a node has a step of this stage.
func Gives(n *inventory.Node) bool {
	return n.Image != nil && !n.Retired && n.Hardware != nil && len(cardsOf(n.Hardware)) > 0
}

// Plan implements stage.Stage: a step for each node whose hardware block asks for settings.
func (s *Stage) Plan(view stage.View) (steps []plan.Step, _ hcl.Diagnostics) {
	var inrush *power.Inrush
	shared := map[*inventory.Hardware]plan.Step{}
	for _, n := range s.inv.Nodes {
		if !Gives(n) {
			continue
		}
		if inrush == nil {
			inrush = power.NewInrush(s.inv)
		}
		st, known := shared[n.Hardware]
		if !known {
			st = stepOf(n.Hardware)
			shared[n.Hardware] = st
		}
		me := subject.OfNode(n.Name)
		st.ID, st.Subject, st.DepthKey, st.Needs = StepID(n.Name), me, n.Name, needsOf(n)
		st.Uses = append(install.InrushOf(n, inrush), plan.Use{Resource: "bmc/" + n.Name, Units: 1, Hold: plan.ForStep})
		st.Reads, st.Yields = []fact.Key{settingsFact.Of(me)}, []fact.Key{settingsFact.Of(me)}
		_, recorded := view.Fact(settingsFact.Of(me))
		st.Inherited = !recorded
		steps = append(steps, st)
	}
	return steps, nil
}

// stepOf is what the steps of nodes with one hardware block have in common. Its inputs are
// what the site says.
func stepOf(h *inventory.Hardware) plan.Step {
	st := plan.Step{Stage: Name, Title: "set up the NICs of hardware." + h.Name + ": " + strings.Join(words(h), ", ") + "; power off and on where one is not in force",
		May: plan.Effects(plan.Config, plan.Power), Decl: stage.Source(h.Decl), Deadline: plan.Budget{Limit: limit, Expected: usual, Slow: withBoot}, Version: Version}
	for _, o := range optionsOf(h) {
		st.Inputs = append(st.Inputs, plan.Input{Name: o.block + "." + o.attribute, Value: o.value, Decl: stage.Source(o.at)},
			plan.Input{Name: o.block + "." + o.attribute + " at", Value: strings.Join(o.pci, " "), Decl: stage.Source(o.at)})
	}
	return st
}

// needsOf are the drivers of a node, which bring the program, or its first boot.
func needsOf(n *inventory.Node) (list []plan.Need) {
	for _, d := range n.Drivers {
		list = append(list, plan.Need{Step: plan.StepID(n.Name + "/drivers." + d.Name), On: plan.Success})
	}
	return append(list, plan.Need{Step: bootStep(n.Name), On: plan.Success, Triggers: true})
}

// Observe implements stage.Stage.
func (s *Stage) Observe(ctx context.Context, run stage.Run, st plan.Step) (stage.Observation, error) {
	n, err := s.inv.Planned(st.Subject.Name)
	if err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	seen, err := s.read(ctx, n)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	var wrong []string
	for _, r := range seen {
		wrong = append(append(append(wrong, r.refused()...), describe(r, r.unset())...), describe(r, r.waiting())...)
	}
	for _, r := range seen {
		gone, err := s.absent(ctx, n.Name, r.card)
		if err != nil {
			return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
		}
		if len(gone) > 0 {
			wrong = append(wrong, "no function at "+strings.Join(gone, ", "))
		}
	}
	if len(wrong) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: strings.Join(wrong, "; ")}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: strings.Join(words(n.Hardware), ", ")}, record(ctx, run, n, Record{Settings: inForce(seen)})
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	n, err := s.inv.Planned(st.Subject.Name)
	if err != nil {
		return err
	}
	if last := lastRecord(run, n.Name); last.Leaving != "" {
		if err := s.cycle(ctx, run, n, st, last.Leaving); err != nil {
			return err
		}
	}
	seen, err := s.readSafe(ctx, run, n)
	if err != nil {
		return err
	}
	for range rounds {
		var wrote bool
		if seen, wrote, err = s.write(ctx, run, n, st, seen); err != nil {
			return err
		}
		if !needsCycle(seen, wrote) {
			break
		}
		if seen, err = s.restart(ctx, run, n, st, seen); err != nil {
			return err
		}
	}
	if err := s.judge(ctx, run, n, seen, reading.unset, "a NIC does not keep what is set", doSet); err != nil {
		return err
	}
	if err := s.findFunctions(ctx, run, n, seen); err != nil {
		return err
	}
	return record(ctx, run, n, Record{Settings: inForce(seen)})
}

// rounds is how often a node is switched off and on: once, and once more where a card has
// settings that it did not have before its cage was split, such as the link type of port 2.
const rounds = 2

// findFunctions makes a finding of cards whose cages are split and that do not show a function
// for each port.
func (s *Stage) findFunctions(ctx context.Context, run stage.Run, n *inventory.Node, seen []reading) error {
	for _, r := range seen {
		gone, err := s.absent(ctx, n.Name, r.card)
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			continue
		}
		why := fmt.Sprintf("the card at %s is split into %d ports, and the system has no function at %s", r.pci, r.split, strings.Join(gone, ", "))
		return blame(ctx, run, n, r.card, "a NIC whose port is split does not show all of its functions", []string{why, s.identity(ctx, n.Name, r)}, errkind.New(errkind.Mismatch, "%s", why).Do(doSplit))
	}
	return nil
}

// absent lists the functions that a card shows once its cage is split, and that the system
// does not have.
func (s *Stage) absent(ctx context.Context, node string, c card) (gone []string, err error) {
	for _, pci := range c.later {
		out, err := s.nodes.Run(ctx, node, onnode.Command{Argv: []string{"cat", "/sys/bus/pci/devices/" + pci + "/vendor"}})
		if err != nil {
			return nil, fmt.Errorf("node %s: functions of the card at %s: %w", node, c.pci, err)
		}
		if out.Exit != 0 {
			gone = append(gone, pci)
		}
	}
	return gone, nil
}

// restart switches the node off and on, and reads its NICs again.
func (s *Stage) restart(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step, before []reading) ([]reading, error) {
	id, err := onnode.BootID(ctx, s.nodes, n.Name)
	if err != nil {
		return nil, err
	}
	if err := record(ctx, run, n, Record{Settings: inForce(before), Leaving: id}); err != nil {
		return nil, err
	}
	if err := s.cycle(ctx, run, n, st, id); err != nil {
		return nil, err
	}
	seen, err := s.readSafe(ctx, run, n)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, r := range before {
		for _, w := range r.wants {
			_, has := r.setting(w)
			known[r.pci+" "+w.name] = has
		}
	}
	lacks := func(r reading) []want { // what the card did not have before it was split waits for the next round
		return slices.DeleteFunc(r.waiting(), func(w want) bool { return !known[r.pci+" "+w.name] })
	}
	return seen, s.judge(ctx, run, n, seen, lacks, "after a power cycle a NIC does not have what was set",
		"Read the card with `mlxconfig -d ADDRESS -e q`, update its firmware, or have it replaced; then run `ironrail apply`.")
}

// write sets what the next boot would not bring, all cards in one journaled effect, and
// reads it back.
func (s *Stage) write(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step, seen []reading) (after []reading, wrote bool, err error) {
	var list []string
	for _, r := range seen {
		list = append(list, describe(r, r.unset())...)
	}
	if len(list) == 0 {
		return seen, false, nil
	}
	run.Emit(event.Event{Type: event.StepProgress, Node: n.Name, Text: strings.Join(list, "; ")})
	err = run.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s/set-%d", st.ID, run.Clock().Now().UnixNano()), // idempotent: each attempt is one of its own
		Kind: plan.Config, Repeatable: true, Does: fmt.Sprintf("set %d settings of the NICs of %s: %s", len(list), n.Name, strings.Join(list, "; ")),
		Do: func(ctx context.Context) error { return s.set(ctx, n.Name, seen) }})
	if bad := (*cardError)(nil); errors.As(err, &bad) {
		return nil, true, blame(ctx, run, n, bad.card, "a NIC refuses a setting", []string{err.Error()}, errkind.Begun(err))
	} else if err != nil {
		return nil, true, errkind.Begun(err)
	}
	if after, err = s.readSafe(ctx, run, n); err != nil {
		return nil, true, errkind.Begun(err)
	}
	return after, true, errkind.Begun(s.judge(ctx, run, n, after, reading.unset, "a NIC does not keep what is set", doSet))
}

// needsCycle reports whether a setting waits for a power cycle. A firmware that does not
// say what is in force has one after a write.
func needsCycle(seen []reading, wrote bool) bool {
	for _, r := range seen {
		if len(r.waiting()) > 0 || wrote && !r.found.Current {
			return true
		}
	}
	return false
}

// lastRecord is what is recorded of a node; unreadable counts as nothing.
func lastRecord(run stage.Run, node string) (last Record) {
	if f, ok := run.Fact(settingsFact.Of(subject.OfNode(node))); ok {
		last, _ = settingsFact.Get(f)
	}
	return last
}

func record(ctx context.Context, run stage.Run, n *inventory.Node, r Record) error {
	f, err := settingsFact.New(subject.OfNode(n.Name), r, n.Serial)
	if err != nil {
		return err
	}
	return run.Learn(ctx, f)
}

// afterSplit returns what a comparison of cables needs: of nodes whose ports are split the
// step that splits them, after which they listen, and not the one in which the ramdisk
// listened.
func afterSplit(needs []plan.Need, split map[string]bool) []plan.Need {
	needs = slices.Clone(needs)
	for i, need := range needs {
		if node, _, _ := strings.Cut(string(need.Step), "/"); split[node] {
			needs[i].Step = StepID(node)
		}
	}
	return needs
}

// Weave puts the steps of this stage into their place among those of others: what follows
// the drivers or the boot of a node, but for other settings of the node, follows its NICs.
// Cables of a node whose ports are split are compared once they are.
func Weave(inv *inventory.Inventory, steps []plan.Step) []plan.Step {
	of, split := map[plan.StepID][]plan.Need{}, map[string]bool{}
	for _, n := range inv.Nodes {
		if Gives(n) {
			split[n.Name] = n.Hardware.Splits()
			for _, need := range needsOf(n) {
				of[need.Step] = []plan.Need{{Step: StepID(n.Name), Triggers: true}}
			}
		}
	}
	plan.Interpose(steps, of, func(st *plan.Step) bool {
		return st.Stage == "fabric" || st.Stage == "mounts" || st.Stage == "validate"
	})
	for i := range steps {
		if steps[i].Stage == cabling.StageName {
			steps[i].Needs = afterSplit(steps[i].Needs, split)
		}
	}
	return steps
}
