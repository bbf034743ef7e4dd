// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
)

// The further steps of a fabric: n1/fabric.compute.ports, and of the whole fabric
// site/fabric.compute.subnet and site/fabric.compute.cabling.
const (
	partPorts   = "ports"
	partSubnet  = "subnet"
	partCabling = "cabling"
)

// Identity is one port of a node with the names that the subnet manager knows.
type Identity struct {
	NIC    string    `json:"nic"`
	Port   int       `json:"port"` // index among the NIC's ports
	Device string    `json:"device"`
	GUID   addr.GUID `json:"guid"` // of the port
	HCA    addr.GUID `json:"hca"`
}

// Identities is the fact of who the ports of a node on a fabric are.
func Identities(fabric string) fact.Name[[]Identity] {
	return fact.Name[[]Identity]("fabric.guids." + fabric)
}

// Loaded is the fact of what a subnet manager does: its routing engine, how many
// ports it knows, and which other managers are on the fabric.
type Loaded struct {
	Engine   string `json:"engine"`
	Ports    int    `json:"ports"`
	Switches int    `json:"switches"`
	Standbys int    `json:"standbys,omitempty"` // of run_on, that are ready to take over
	Strange  int    `json:"strange,omitempty"`  // managers that the site does not have
	Listed   bool   `json:"listed,omitempty"`   // the managers of the fabric could be listed
}

// LoadedFact belongs to the fabric.
const LoadedFact = fact.Name[Loaded]("fabric.subnet")

// SuspectsFact lists the cables that the last sweep found wrong, by name. It
// belongs to the fabric.
const SuspectsFact = fact.Name[[]string]("fabric.suspects")

func subjectOf(f *inventory.Fabric) subject.ID { return subject.ID{Kind: subject.Fabric, Name: f.Name} }

// Steps implements fabric.Staged.
func (b *InfiniBand) Steps(_ stage.View, f *inventory.Fabric, nodes []*inventory.Node, needs func(*inventory.Node) []plan.Need) []plan.Step {
	subnet := plan.Step{ID: fabric.PartID("site", f.Name, partSubnet), Action: plan.Create, Subject: subjectOf(f), Barrier: true,
		Title: fmt.Sprintf("load the subnet manager of fabric %s", f.Name), May: plan.Effects(plan.Config),
		Deadline: plan.Budget{Limit: 15 * time.Minute, Expected: 10 * time.Second},
		Yields:   []fact.Key{LoadedFact.Of(subjectOf(f))}, Inputs: b.subnetInputs(f, nodes)}
	steps := make([]plan.Step, 0, len(nodes)+2)
	for _, n := range nodes {
		id, fc := fabric.PartID(n.Name, f.Name, partPorts), Identities(f.Name).Of(subject.OfNode(n.Name))
		steps = append(steps, plan.Step{ID: id, Action: plan.Read, Subject: subject.OfNode(n.Name), Title: "read the ports on fabric " + f.Name,
			Deadline: plan.Budget{Limit: 2 * time.Minute, Expected: time.Second}, Needs: needs(n), Yields: []fact.Key{fc}})
		subnet.Needs = append(subnet.Needs, plan.Need{Step: id, On: plan.Settled, Triggers: true})
		subnet.Reads = append(subnet.Reads, fc)
	}
	sweep := plan.Step{ID: fabric.PartID("site", f.Name, partCabling), Action: plan.Read, Subject: subjectOf(f), Barrier: true,
		Title:    fmt.Sprintf("compare the cables of fabric %s with a sweep", f.Name),
		Deadline: plan.Budget{Limit: 5 * time.Minute, Expected: 2 * time.Second},
		Needs:    []plan.Need{{Step: subnet.ID, On: plan.Settled, Triggers: true}}, Reads: subnet.Reads, Yields: []fact.Key{SuspectsFact.Of(subjectOf(f))}}
	return append(steps, subnet, sweep)
}

// subnetInputs are what decides the files of the subnet manager, but for the GUIDs,
// which are known after the nodes' ports were read.
func (b *InfiniBand) subnetInputs(f *inventory.Fabric, nodes []*inventory.Node) []plan.Input {
	at := stage.Source(f.Place("subnet_manager"))
	in := []plan.Input{{Name: "routing", Value: strings.Join(RoutingEngines(b.inv, f), ","), Decl: at},
		{Name: "run_on", Value: strings.Join(readManager(f.Value).runOn, ","), Decl: at}}
	for _, p := range f.Partitions {
		var members []string
		for _, n := range nodes {
			if slices.ContainsFunc(n.Partitions, func(q inventory.Partition) bool { return q.Fabric == f && q.PKey == p.PKey }) {
				members = append(members, n.Name)
			}
		}
		in = append(in, plan.Input{Name: "partition " + p.Name, Value: fmt.Sprintf("%#04x: %s", p.PKey, strings.Join(members, " ")), Decl: stage.Source(p.Decl)})
	}
	return in
}

// Needs implements fabric.Staged.
func (b *InfiniBand) Needs(f *inventory.Fabric, n *inventory.Node) []plan.Need {
	return []plan.Need{
		{Step: fabric.PartID(n.Name, f.Name, partPorts), On: plan.Success},
		{Step: fabric.PartID("site", f.Name, partSubnet), On: plan.Success},
		{Step: fabric.PartID("site", f.Name, partCabling), On: plan.Settled},
	}
}

// ObserveStep implements fabric.Staged. Cables are compared whenever that is
// planned; a subnet manager conforms when it has the files and does what they say.
func (b *InfiniBand) ObserveStep(ctx context.Context, run stage.Run, f *inventory.Fabric, st plan.Step) (stage.Observation, error) {
	switch partOf(st) {
	case partPorts:
		return b.observePorts(ctx, run, f, st)
	case partCabling:
		return stage.Observation{State: stage.Unknown}, nil
	}
	sub, members, err := b.subnet(run, f)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	found, err := sub.Sweep(ctx)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	files, err := sub.Files(members, found)
	if err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	differ, err := sub.Differing(ctx, files)
	if err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	if len(differ) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: fmt.Sprintf("%s differs from the plan", differ[0].Name)}, nil
	}
	wrong, err := sub.Verify(ctx, members, found)
	switch {
	case err != nil:
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	case len(wrong) > 0:
		return stage.Observation{State: stage.Differs, Evidence: joinWords(wrong)}, nil
	}
	managed, err := sub.Managers(ctx, members, found)
	if managed.Listed = err == nil; err != nil {
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	}
	if len(managed.Wrong) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: joinWords(managed.Wrong)}, nil
	}
	if worse := worseManaged(readLoaded(run, f), managed); len(worse) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: worse[0].Cause}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: fmt.Sprintf("%d ports have their P_Keys", len(members))}, b.loaded(ctx, run, sub, members, len(found.Switches), managed)
}

func partOf(st plan.Step) string { return string(st.ID[strings.LastIndexByte(string(st.ID), '.')+1:]) }

// ApplyStep implements fabric.Staged.
func (b *InfiniBand) ApplyStep(ctx context.Context, run stage.Run, f *inventory.Fabric, st plan.Step) error {
	switch partOf(st) {
	case partPorts:
		return b.identify(ctx, run, f, st)
	case partSubnet:
		return b.load(ctx, run, f, st)
	case partCabling:
		return b.compare(ctx, run, f)
	}
	return errkind.New(errkind.NotFound, "step %s is not in this inventory", st.ID).Do("Plan again: the site's files changed after the plan was made.")
}

// observePorts looks whether the ports of a node are still those it told of.
func (b *InfiniBand) observePorts(ctx context.Context, run stage.Run, f *inventory.Fabric, st plan.Step) (stage.Observation, error) {
	known, ok := run.Fact(Identities(f.Name).Of(st.Subject))
	if !ok {
		return stage.Observation{State: stage.Differs, Evidence: "the node has not said its GUIDs"}, nil
	}
	before, err := Identities(f.Name).Get(known)
	if err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	now, err := b.identities(ctx, f, st.Subject.Name)
	switch {
	case err != nil:
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	case !slices.Equal(before, now):
		return stage.Observation{State: stage.Differs, Evidence: "a port has another GUID"}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: fmt.Sprintf("%d ports have the GUIDs that are known", len(now))}, nil
}

// identify asks a node who its ports are.
func (b *InfiniBand) identify(ctx context.Context, run stage.Run, f *inventory.Fabric, st plan.Step) error {
	list, err := b.identities(ctx, f, st.Subject.Name)
	if err != nil {
		return err
	}
	fc, err := Identities(f.Name).New(st.Subject, list, "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, fc)
}

// identities are the ports of a node with the names that it says.
func (b *InfiniBand) identities(ctx context.Context, f *inventory.Fabric, node string) ([]Identity, error) {
	n, ok := b.inv.Node(node)
	if !ok {
		return nil, errkind.New(errkind.NotFound, "there is no node %s", node).Do("Plan again: the site's files changed after the plan was made.")
	}
	have, err := b.readPorts(ctx, n)
	if err != nil {
		return nil, err
	}
	list := []Identity{}
	for _, m := range portsOf(f, n) {
		got, problem := portAt(have, m.NIC.Ports[m.Port].PCI)
		if problem != "" {
			return nil, errkind.New(errkind.Mismatch, "node %s: %s: %s", n.Name, m.title(), problem).Do("See whether the driver is loaded (`ibstat`), and whether the HCA is in its slot and has one port for each PCI function.")
		}
		guid, err := addr.ParseGUID(got.GUID)
		hca, err2 := addr.ParseGUID(got.HCA)
		if err != nil || err2 != nil {
			return nil, errkind.New(errkind.Mismatch, "node %s: %s has no GUID", n.Name, m.title()).Do("Its firmware has none, or the port is Ethernet: see `ibstat` and LINK_TYPE of mlxconfig.")
		}
		list = append(list, Identity{NIC: m.NIC.Name, Port: m.Port, Device: got.Device, GUID: guid, HCA: hca})
	}
	return list, nil
}

// subnet is the fabric with its manager, and the ports that nodes have told of.
func (b *InfiniBand) subnet(run stage.Run, f *inventory.Fabric) (*Subnet, []Member, error) {
	host := b.hostOf(f)
	if host == nil {
		return nil, nil, errkind.New(errkind.Unsupported, "the subnet manager of fabric %s cannot be reached from here", f.Name)
	}
	var members []Member
	for _, n := range b.inv.Nodes {
		known, ok := run.Fact(Identities(f.Name).Of(subject.OfNode(n.Name)))
		if !ok || n.Hardware == nil {
			continue
		}
		list, err := Identities(f.Name).Get(known)
		if err != nil {
			return nil, nil, err
		}
		members = append(members, Members(f, n, list)...)
	}
	return &Subnet{Inv: b.inv, Fabric: f, Host: host, Clock: run.Clock()}, members, nil
}

// Members joins what a node said of its ports with the site's words. Ports that
// its hardware does not have any more are left out.
func Members(f *inventory.Fabric, n *inventory.Node, ids []Identity) (list []Member) {
	for _, m := range portsOf(f, n) {
		for _, id := range ids {
			if id.NIC == m.NIC.Name && id.Port == m.Port {
				m.Device, m.GUID, m.HCA = id.Device, id.GUID, id.HCA
				list = append(list, m)
			}
		}
	}
	return list
}

// noNodes ends a step of a fabric none of whose nodes came so far: each has a finding of its
// own, or waits for one, and the fabric is not to blame.
func noNodes(f *inventory.Fabric, why string) error {
	return &stage.BlockedError{Err: errkind.New(errkind.Refused, "no node of fabric %s has said its GUIDs: %s", f.Name, why).Do("Bring up a node first.")}
}

// load writes the files and reads back what the manager does with them.
func (b *InfiniBand) load(ctx context.Context, run stage.Run, f *inventory.Fabric, st plan.Step) error {
	sub, members, err := b.subnet(run, f)
	if err != nil {
		return err
	}
	if len(members) == 0 {
		return noNodes(f, "its partitions would be empty")
	}
	found, err := sub.Sweep(ctx)
	if err != nil {
		return err
	}
	files, err := sub.Files(members, found)
	if err != nil {
		return err
	}
	err = run.Effect(ctx, stage.Effect{Key: fmt.Sprintf("%s/load-%d", st.ID, run.Clock().Now().UnixNano()), Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("load %d files into the subnet manager of fabric %s", len(files), f.Name),
		Do:   func(ctx context.Context) error { return sub.Load(ctx, files) }})
	if err != nil {
		return err
	}
	if found, err = sub.Sweep(ctx); err != nil { // with the LIDs that it gave
		return err
	}
	wrong, err := sub.Verify(ctx, members, found)
	if err != nil {
		return err
	}
	managed, err := sub.Managers(ctx, members, found)
	managed.Listed = err == nil
	if err != nil { // P_Keys and routes are as they should be: that much is known
		run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("the subnet managers of fabric %s could not be counted: %v", f.Name, err)})
	}
	if wrong = append(managed.Wrong, wrong...); len(wrong) > 0 {
		return errkind.New(errkind.Mismatch, "fabric %s was loaded and yet: %s", f.Name, joinWords(wrong)).Do("See opensm's log on the controller.")
	}
	for _, x := range managed.Findings {
		if err := run.Blame(ctx, x); err != nil {
			return err
		}
	}
	return b.loaded(ctx, run, sub, members, len(found.Switches), managed)
}

func (b *InfiniBand) loaded(ctx context.Context, run stage.Run, sub *Subnet, members []Member, switches int, managed Managed) error {
	engine, err := sub.routed(ctx)
	if err != nil {
		return err
	}
	fc, err := LoadedFact.New(subjectOf(sub.Fabric), Loaded{engine, len(members), switches, managed.Standbys, managed.Strange, managed.Listed}, "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, fc)
}

// compare holds a sweep against the site's cables. Nodes on a wrong cable are taken
// out; cables between switches are findings without a node.
func (b *InfiniBand) compare(ctx context.Context, run stage.Run, f *inventory.Fabric) error {
	sub, members, err := b.subnet(run, f)
	if err != nil {
		return err
	}
	found, err := sub.Sweep(ctx)
	switch {
	case err != nil && len(members) == 0:
		return noNodes(f, errkind.Line(err))
	case err != nil:
		return err
	}
	findings := b.compareCables(f, members, found)
	suspects := []string{}
	for _, x := range findings {
		suspects = append(suspects, x.swept...)
		if err := run.Blame(ctx, x.Finding); err != nil {
			return err
		}
	}
	fc, err := SuspectsFact.New(subjectOf(f), suspects, "")
	if err != nil {
		return err
	}
	if err := run.Learn(ctx, fc); err != nil || len(findings) == 0 {
		return err
	}
	return errkind.New(errkind.Mismatch, "%s", findings[0].Cause).Do(findings[0].Action)
}

// badCable is what a sweep found of a cable: it suspects nodes where one of its ends is at a
// node's port.
type badCable struct {
	stage.Finding
	swept []string // names of its suspects as the sweep has them
}

// compareCables holds a sweep against the site's cables.
func (b *InfiniBand) compareCables(f *inventory.Fabric, members []Member, found *ibnetdiscover.Topology) (list []badCable) {
	for _, x := range cabling.CompareSweep(b.inv, f, Plugs(members), found).Findings {
		bad := badCable{Finding: x}
		for i, s := range x.Suspects {
			bad.swept = append(bad.swept, s.Subject.Name)
			node, port, ok := strings.Cut(s.Subject.Name, "/")
			if _, known := b.inv.Node(node); ok && known && s.Subject.Kind == subject.Link {
				if s.Part != "" {
					port += " (" + s.Part + ")"
				}
				bad.Suspects[i] = stage.Suspect{Subject: subject.OfNode(node), Part: port}
			}
		}
		list = append(list, bad)
	}
	return list
}

// Resweep implements fabric.Sweeping.
func (b *InfiniBand) Resweep(ctx context.Context, run stage.Run, f *inventory.Fabric) (s fabric.Swept, err error) {
	var suspects []string
	known, before := run.Fact(SuspectsFact.Of(subjectOf(f)))
	if s.Before = before; before {
		if suspects, err = SuspectsFact.Get(known); err != nil {
			return s, err
		}
	}
	sub, members, err := b.subnet(run, f)
	if err != nil {
		return s, err
	}
	found, err := sub.Sweep(ctx)
	if err != nil {
		return s, err
	}
	s.Seen = found
	for _, x := range b.compareCables(f, members, found) {
		if slices.ContainsFunc(x.swept, func(name string) bool { return !slices.Contains(suspects, name) }) {
			s.Found = append(s.Found, x.Finding)
		}
	}
	return s, nil
}
