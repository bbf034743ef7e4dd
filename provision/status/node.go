// SPDX-License-Identifier: Apache-2.0

// Package status says what state and inventory know of nodes and switches while nothing
// is asked and no run is active.
package status

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/reach"
)

// ReadNode is what state and inventory know of a node: all but what is under way. A
// node that the state does not know has a story as well: nothing was done yet.
func ReadNode(ctx context.Context, inv *inventory.Inventory, r state.Reader, node string) (control.Why, error) {
	w, err := control.ReadWhy(ctx, r, node, listPDUs(inv, node)...)
	if err != nil && errkind.Of(err) != errkind.NotFound {
		return w, err
	}
	w.Node.Name = node
	if n, ok := inv.Node(node); ok {
		w.Place = findPlace(inv, n, reach.Facts(r))
	}
	if w.Console, err = readConsole(r, w); err != nil {
		return w, err
	}
	w.Notes, err = readNotesOf(ctx, inv, r, node)
	return w, err
}

// listPDUs are the PDUs of a node: a node that continues with half of its supplies has
// no finding of its own.
func listPDUs(inv *inventory.Inventory, node string) (out []subject.ID) {
	if n, ok := inv.Node(node); ok {
		for _, p := range listPDUNames(n) {
			out = append(out, subject.ID{Kind: subject.PDU, Name: p})
		}
	}
	return out
}

// ListNodes lists every node of the inventory as the state knows it.
func ListNodes(ctx context.Context, inv *inventory.Inventory, r state.Reader) ([]state.Node, error) {
	known, err := state.ReadNodes(ctx, r)
	if err != nil {
		return nil, err
	}
	out := make([]state.Node, 0, len(inv.Nodes))
	for _, n := range inv.Nodes {
		x := known[n.Name]
		x.Name = n.Name
		out = append(out, x)
	}
	return out, nil
}

// ReadSite is where the nodes of the inventory stand while no run is active.
func ReadSite(ctx context.Context, inv *inventory.Inventory, r state.Reader, now time.Time) (why.Site, error) {
	nodes, err := ListNodes(ctx, inv, r)
	if err != nil {
		return why.Site{}, err
	}
	left, err := control.ReadLastRun(ctx, r)
	if err != nil {
		return why.Site{}, err
	}
	last, version, err := state.Get[state.Run](ctx, r, state.LastRun)
	if err != nil {
		return why.Site{}, err
	}
	s := why.Site{Nodes: nodes, Skipped: left.Skipped, Findings: left.Findings, Now: now}
	if version != state.Absent {
		s.Last = &last
	}
	s.Notes, err = ReadNotes(ctx, inv, r, nodes)
	return s, err
}

// ListTraits is what each node hangs on, in words.
func ListTraits(inv *inventory.Inventory) why.Traits {
	t := make(why.Traits, len(inv.Nodes))
	for _, n := range inv.Nodes {
		all := []string{}
		if n.Rack != nil {
			all = append(all, "rack "+n.Rack.Name)
		}
		for _, p := range listPDUNames(n) {
			all = append(all, "PDU "+p)
		}
		if n.Hardware != nil {
			all = append(all, "hardware "+n.Hardware.Name)
		}
		t[n.Name] = all
	}
	seen := map[[2]string]bool{}
	for _, c := range inv.Cables {
		node, far := findNodeEnd(c)
		if node == nil || far.Switch == nil || seen[[2]string{node.Node.Name, far.Switch.Name}] {
			continue
		}
		seen[[2]string{node.Node.Name, far.Switch.Name}] = true
		t[node.Node.Name] = append(t[node.Node.Name], "switch "+far.Switch.Name)
	}
	return t
}

// findNodeEnd is the end of a cable that is a node's, and the other one; nil when none
// is.
func findNodeEnd(c *inventory.Cable) (node, far *inventory.CableEnd) {
	switch {
	case c.From.Node != nil:
		return &c.From, &c.To
	case c.To.Node != nil:
		return &c.To, &c.From
	}
	return nil, nil
}

func listPDUNames(n *inventory.Node) (out []string) {
	seen := map[string]bool{}
	for _, f := range n.Feeds {
		if f.PDU != nil && !seen[f.PDU.Name] {
			seen[f.PDU.Name] = true
			out = append(out, f.PDU.Name)
		}
	}
	return out
}

// findPlace is where a node is, and what its cables lead to.
func findPlace(inv *inventory.Inventory, n *inventory.Node, facts func(fact.Key) (fact.Fact, bool)) *control.Place {
	p := &control.Place{Unit: n.Unit, Serial: n.Serial, PDUs: listPDUNames(n), Protocol: n.BMC.Protocol}
	if n.Rack != nil {
		p.Rack = n.Rack.Name
	}
	if n.Role != nil {
		p.Role = n.Role.Name
	}
	if n.BMC.Address.IsValid() {
		p.BMC = n.BMC.Address.String()
	}
	if !n.BootMAC.IsZero() {
		p.BootMAC = n.BootMAC.String()
	}
	if n.Hardware != nil {
		p.Hardware = n.Hardware.Name
		p.BootNIC = findBootNIC(n.Hardware)
	}
	ends := readNeighbours(n.Name, facts)
	for _, c := range inv.Cables {
		end, far := findNodeEnd(c)
		if end == nil || end.Node != n || end.NIC == nil {
			continue
		}
		port := control.Port{Port: fmt.Sprintf("%s/%d", end.NIC.Name, end.Port), To: far.String()}
		if end.Port < len(end.NIC.Ports) {
			h := ends[strings.ToLower(end.NIC.Ports[end.Port].PCI)]
			port.Heard, port.HeardAt = h.text, h.at
		}
		p.Ports = append(p.Ports, port)
	}
	return p
}

// findBootNIC is the port that a node boots from: "mgmt/0"; of a NIC with several ports, of
// which boot_mac says the one, "mgmt"; "" where none boots.
func findBootNIC(h *inventory.Hardware) string {
	nic, ok := h.BootNIC()
	switch {
	case !ok:
		return ""
	case len(nic.Ports) > 1:
		return nic.Name
	}
	return nic.Name + "/0"
}

// neighbour is the far end of a cable as the node heard it.
type neighbour struct {
	text string
	at   time.Time
}

// readNeighbours is what a node heard by LLDP when it was inspected last, by PCI address.
func readNeighbours(node string, facts func(fact.Key) (fact.Fact, bool)) map[string]neighbour {
	out := map[string]neighbour{}
	f, ok := facts(cabling.NeighboursFact.Of(subject.OfNode(node)))
	if !ok {
		return out
	}
	list, err := cabling.NeighboursFact.Get(f)
	if err != nil {
		return out
	}
	for _, h := range list {
		out[strings.ToLower(h.PCI)] = neighbour{formatNeighbour(h), f.Observed.UTC()}
	}
	return out
}

func formatNeighbour(h wire.Neighbour) string {
	name := h.SystemName
	if name == "" {
		name = h.ChassisID
	}
	return strings.TrimSpace(name + " " + h.PortID)
}

// readConsole is the console that was kept of a node's step that failed, unless the node
// has come further since.
func readConsole(r state.Reader, w control.Why) (*control.Console, error) {
	f, ok := reach.Facts(r)(install.ConsoleFact.Of(subject.OfNode(w.Node.Name)))
	if !ok || w.Node.Accepted {
		return nil, nil
	}
	t, err := install.ConsoleFact.Get(f)
	if err != nil {
		return nil, err
	}
	for _, x := range w.Steps {
		if x.ID == t.Step && x.State != state.StepIsDone && !t.At.Before(x.Started) {
			return &control.Console{Step: t.Step, At: t.At, Lines: t.Lines, Ref: t.Ref}, nil
		}
	}
	return nil, nil
}
