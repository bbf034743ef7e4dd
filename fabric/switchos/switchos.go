// SPDX-License-Identifier: Apache-2.0

// Package switchos configures the switches of RoCE fabrics that the site has a
// login for: one step a switch reads what it has, patches what differs, reads it
// back, and keeps it only when it is as it should be. The step of a node then
// compares both ends of its cables. What a switch system's configuration is belongs
// to a package of its own, such as sonic.
package switchos

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// The further steps of a fabric: net/leaf-1/fabric.compute.switch, and of all of
// them together site/fabric.compute.switches.
const (
	partSwitch   = "switch"
	partSwitches = "switches"
)

// Resource begins the name of what a switch's step uses of its fabric. There are
// AtOnce units: one for each switch while no node is on the fabric, all of them for
// a switch that nodes work through.
const (
	Resource = "switches/"
	AtOnce   = 8
)

// What the steps learn of a switch: the host key that it showed, as
// authorized_keys has it, and how it was when it was read last.
const (
	HostKeyFact  = fact.Name[string]("switch.host_key")
	ObservedFact = fact.Name[ObservedState]("switch.standing")
)

// ObservedState is how a switch was read.
type ObservedState struct {
	Conforms bool                 `json:"conforms"`
	Ports    map[string]sonic.QoS `json:"ports"` // of the fabric, by the switch's names
}

// Switches runs commands on switches, by their names in the site, as the user of
// their login. What onnode.Nodes says of Run holds here too.
type Switches interface {
	Run(ctx context.Context, name string, c onnode.Command) (onnode.Output, error)
	// HostKey is the key that a switch showed, as authorized_keys has it; "" before
	// it was connected to.
	HostKey(name string) string
}

// Kind is the fabric kind roce with the switches of its fabrics. It implements
// fabric.Staged.
type Kind struct {
	*roce.RoCE
	inv      *inventory.Inventory
	switches Switches
	links    []*roce.Links
	known    sync.Map // *inventory.Fabric to []*sonic.Switch, which are not to be changed
}

// New returns the kind. switches may be nil when only plans are made.
func New(r *roce.RoCE, inv *inventory.Inventory, switches Switches, links []*roce.Links) *Kind {
	k := &Kind{RoCE: r, inv: inv, switches: switches, links: links}
	r.Against(k.ends)
	return k
}

// Of is the subject of a switch.
func Of(s *inventory.Switch) subject.ID { return subject.ID{Kind: subject.Switch, Name: s.Name} }

// StepID is the step that configures a switch of a fabric.
func StepID(s *inventory.Switch, f *inventory.Fabric) plan.StepID {
	return fabric.PartID(s.Name, f.Name, partSwitch)
}

// managed lists the SONiC switches of a fabric that can be logged in to.
func (k *Kind) managed(f *inventory.Fabric) []*sonic.Switch {
	if list, ok := k.known.Load(f); ok {
		return list.([]*sonic.Switch)
	}
	list := k.list(f)
	k.known.Store(f, list)
	return list
}

func (k *Kind) list(f *inventory.Fabric) []*sonic.Switch {
	if !slices.ContainsFunc(k.inv.Switches, func(s *inventory.Switch) bool { return s.Login != nil }) {
		return nil
	}
	var links *roce.Links
	if i := slices.IndexFunc(k.links, func(l *roce.Links) bool { return l.Fabric == f }); i >= 0 {
		links = k.links[i]
	}
	return slices.DeleteFunc(sonic.Switches(k.inv, f, links), func(s *sonic.Switch) bool { return s.Switch.Login == nil })
}

// Check implements fabric.Kind. It says which switches the plan leaves alone, where
// it configures others of the fabric.
func (k *Kind) Check(f *inventory.Fabric, nodes []*inventory.Node) hcl.Diagnostics {
	diags := k.RoCE.Check(f, nodes)
	var alone []string
	for _, s := range k.inv.Switches {
		if s.Fabric == f && s.Login == nil {
			alone = append(alone, s.Name)
		}
	}
	if len(alone) == 0 {
		return diags
	}
	return append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Switches are not configured", Subject: f.Decl.Ptr(),
		Detail: fmt.Sprintf("ironrail has no login for switches of fabric %q, %d in all, such as %s, and leaves them as they are. `ironrail fabric render` writes what they are to have; `login` lets ironrail do it.",
			f.Name, len(alone), alone[0])})
}

// Steps implements fabric.Staged.
func (k *Kind) Steps(v stage.View, f *inventory.Fabric, nodes []*inventory.Node, _ func(*inventory.Node) []plan.Need) []plan.Step {
	list := k.managed(f)
	if len(list) == 0 {
		return nil
	}
	units := 1
	if isUsed(v, f, nodes) {
		units = AtOnce
	}
	all := plan.Step{ID: fabric.PartID("site", f.Name, partSwitches), Action: plan.Read, Subject: subject.ID{Kind: subject.Fabric, Name: f.Name}, Barrier: true,
		Title:    fmt.Sprintf("compare both ends of the cables between the switches of fabric %s", f.Name),
		Deadline: plan.Budget{Limit: time.Minute, Expected: time.Second}}
	steps := make([]plan.Step, 0, len(list)+1)
	for _, s := range list {
		me, id := Of(s.Switch), StepID(s.Switch, f)
		steps = append(steps, plan.Step{ID: id, Action: plan.Create, Subject: me, May: plan.Effects(plan.Config),
			Title:    fmt.Sprintf("configure switch %s at %s for fabric %s", s.Switch.Name, s.Switch.Address, f.Name),
			Deadline: plan.Budget{Limit: stepLimit, Expected: time.Minute}, Uses: []plan.Use{{Resource: Resource + f.Name, Units: units, Hold: plan.ForStep}},
			Yields: []fact.Key{HostKeyFact.Of(me), ObservedFact.Of(me), configFact.Of(me)}, Inputs: switchInputs(s)})
		all.Needs = append(all.Needs, plan.Need{Step: id, On: plan.Settled, Triggers: true})
		all.Reads = append(all.Reads, ObservedFact.Of(me))
	}
	return append(steps, all)
}

// isUsed reports whether a node was ever brought up on the fabric: work may run
// through its switches.
func isUsed(v stage.View, f *inventory.Fabric, nodes []*inventory.Node) bool {
	return v != nil && slices.ContainsFunc(nodes, func(n *inventory.Node) bool {
		_, known := v.Fact(fabric.Ports(f.Name).Of(subject.OfNode(n.Name)))
		return known
	})
}

// switchInputs returns what decides a switch's configuration: in words what is few, and of
// each table how many keys it has and a digest.
func switchInputs(s *sonic.Switch) []plan.Input {
	f := s.Fabric
	in := []plan.Input{{Name: "address", Value: s.Switch.Address.String(), Decl: stage.Source(s.Switch.Decl)}, {Name: "mtu", Value: strconv.Itoa(f.MTU), Decl: stage.Source(f.Place("mtu"))}}
	if s.Paused {
		in = append(in, plan.Input{Name: "lossless", Value: s.Lossless.String(), Decl: stage.Source(f.Place("lossless"))})
	}
	want := s.Render()
	for _, table := range slices.Sorted(maps.Keys(want)) {
		text, err := json.Marshal(want[table])
		if err != nil {
			continue // cannot be: maps of text
		}
		sum := sha256.Sum256(text)
		in = append(in, plan.Input{Name: table, Value: fmt.Sprintf("%d keys, sha256:%s", len(want[table]), hex.EncodeToString(sum[:4])), Decl: stage.Source(f.Decl)})
	}
	return in
}

// Needs implements fabric.Staged: a node compares its end of a cable with what was
// read of the switch.
func (k *Kind) Needs(f *inventory.Fabric, _ *inventory.Node) []plan.Need {
	if len(k.managed(f)) == 0 {
		return nil
	}
	return []plan.Need{{Step: fabric.PartID("site", f.Name, partSwitches), On: plan.Settled, TriggersIfNew: false}}
}

// find is the switch of a step.
func (k *Kind) find(f *inventory.Fabric, st plan.Step) (*sonic.Switch, error) {
	for _, s := range k.managed(f) {
		if StepID(s.Switch, f) == st.ID {
			return s, nil
		}
	}
	return nil, errkind.New(errkind.NotFound, "step %s is not in this inventory", st.ID).Do("Plan again: the site's files changed after the plan was made.")
}

// ObserveStep implements fabric.Staged.
func (k *Kind) ObserveStep(ctx context.Context, run stage.Run, f *inventory.Fabric, st plan.Step) (stage.Observation, error) {
	if strings.HasSuffix(string(st.ID), "."+partSwitches) {
		return k.observeTrunks(run, f)
	}
	s, err := k.find(f, st)
	if err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	if k.switches == nil {
		return stage.Observation{State: stage.Unknown, Evidence: "switches cannot be reached from here"}, nil
	}
	p := &peer{name: s.Switch.Name, at: k.switches}
	have, err := p.read(ctx, run, s)
	if have != nil && errkind.Of(err) == errkind.Mismatch { // it was read, and is another one or has other ports
		return stage.Observation{State: stage.Differs, Evidence: err.Error() + ". " + errkind.Action(err)}, nil
	}
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	if err := recordObserved(ctx, run, s, have); err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	if left := s.Compare(have); len(left) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: describeFew(left, shownDifferences), Operations: listOperations(s, left)}, nil
	}
	if saved, err := p.saved(ctx); err == nil && len(s.Compare(saved)) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: "it runs as it should, and would not after a reboot: its configuration is not saved"}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: fmt.Sprintf("%d ports are configured", len(s.Ports))}, nil
}

// ApplyStep implements fabric.Staged.
func (k *Kind) ApplyStep(ctx context.Context, run stage.Run, f *inventory.Fabric, st plan.Step) error {
	if strings.HasSuffix(string(st.ID), "."+partSwitches) {
		return k.blameTrunks(ctx, run, f)
	}
	s, err := k.find(f, st)
	if err != nil {
		return err
	}
	if k.switches == nil {
		return errkind.New(errkind.Unsupported, "switch %s cannot be reached from here", s.Switch.Name)
	}
	return (&change{peer: peer{name: s.Switch.Name, at: k.switches}, run: run, st: st, sw: s}).make(ctx)
}

// recordObserved remembers how a switch was read.
func recordObserved(ctx context.Context, run stage.Run, s *sonic.Switch, have sonic.Config) error {
	now := ObservedState{Conforms: len(s.Compare(have)) == 0, Ports: map[string]sonic.QoS{}}
	for _, p := range s.Ports {
		now.Ports[p.Name] = have.QoSOf(p.Name).Kept(s.Lossless)
	}
	f, err := ObservedFact.New(Of(s.Switch), now, "")
	if err != nil {
		return err
	}
	kept, err := configFact.New(Of(s.Switch), packConfig(have), "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, f, kept)
}

// shownDifferences is how many a sentence has.
const shownDifferences = 6

// describeFew says the first differences as changes, those of fields that are there before
// keys that are new, which are counted by their tables.
func describeFew(list []sonic.Difference, most int) string {
	var words, tables []string
	changed, fresh := 0, map[string]int{}
	for _, d := range list {
		switch {
		case d.Field == "":
			if fresh[d.Table]++; fresh[d.Table] == 1 {
				tables = append(tables, d.Table)
			}
		case changed < most:
			words = append(words, d.Change())
			fallthrough
		default:
			changed++
		}
	}
	if more := changed - most; more > 0 {
		words = append(words, fmt.Sprintf("%d more fields", more))
	}
	for i, t := range tables {
		tables[i] = fmt.Sprintf("%s %d", t, fresh[t])
	}
	if len(tables) > 0 {
		words = append(words, "new keys: "+strings.Join(tables, ", "))
	}
	return cmp.Or(strings.Join(words, "; "), "nothing")
}
