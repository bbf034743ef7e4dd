// SPDX-License-Identifier: Apache-2.0

// Package cabling compares the cables that a site intends with what its nodes
// hear by LLDP, or a sweep of an InfiniBand fabric finds, and says which plugs to
// exchange. It is pure: no I/O, no clock.
// What was not heard is unknown, never wrong.
package cabling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// Cable is one intended cable between a node and a switch, or where a fabric is
// swept, between two switches.
type Cable struct {
	Low    End // the lower end of a cable between switches; Node and NIC are nil then
	Node   *inventory.Node
	NIC    *inventory.NIC
	Port   int // index among the NIC's ports
	Switch *inventory.Switch
	Number int              // of the switch port, as printed
	Block  *inventory.Cable // that gives it, or that a topology computes
	others []End            // where else the port may be heard: it is split over several planes
}

// Name is that of the node's end, such as r01-u01/rail/0: the name of the link.
func (c Cable) Name() string {
	if c.Node == nil {
		return c.Low.String()
	}
	return fmt.Sprintf("%s/%s/%d", c.Node.Name, c.NIC.Name, c.Port)
}

// panel is the label of the node's port on the case; empty: none.
func (c Cable) panel() string {
	if c.Node == nil {
		return ""
	}
	return c.port().Panel
}

// port is the port of the node's end.
func (c Cable) port() inventory.NICPort { return c.NIC.Ports[c.Port] }

// end is the switch's end.
func (c Cable) end() End { return End{c.Switch.Name, c.Number} }

// End is a switch port.
type End struct {
	Switch string // scoped: net/leaf-1
	Number int    // 0: not known
}

// String is as cable blocks write it.
func (e End) String() string { return fmt.Sprintf("%s/%d", e.Switch, e.Number) }

// State is how a cable is.
type State string

// The states. Unknown is that of what was not heard or not understood.
const (
	Conforms State = "conforms"
	Unknown  State = "unknown"
	Wrong    State = "wrong"
	Missing  State = "missing" // a sweep finds no link at either end
)

// Result is one cable.
type Result struct {
	Cable Cable
	State State
	Found End    // where it ends; known unless State is Unknown
	Why   string // why it is unknown
	swept bool   // found by a sweep, not heard by LLDP
}

// Report is what Compare found.
type Report struct {
	Results  []Result        // in the order of the site's files
	Findings []stage.Finding // one for each set of cables that must be exchanged
}

// IntendedCables lists the site's cables between a node and a switch. A port that is
// split over several planes is one cable, its first half.
func IntendedCables(inv *inventory.Inventory) (list []Cable) {
	for _, b := range inv.Cables {
		if from, to, ok := endsOf(b); ok {
			if n := len(list); n > 0 && (b.Splitter != nil || from.Lane > 1) && list[n-1].Node == from.Node && list[n-1].NIC == from.NIC && list[n-1].Port == from.Port {
				list[n-1].others = append(list[n-1].others, End{to.Switch.Name, to.Port})
				continue
			}
			list = append(list, Cable{Node: from.Node, NIC: from.NIC, Port: from.Port, Switch: to.Switch, Number: to.Port, Block: b})
		}
	}
	return list
}

// endsOf returns a cable's end at a node and that at a switch; false when it has not both.
func endsOf(b *inventory.Cable) (from, to *inventory.CableEnd, ok bool) {
	from, to = &b.From, &b.To
	if from.Switch != nil {
		from, to = to, from
	}
	return from, to, from.Node != nil && from.NIC != nil && to.Switch != nil && from.Port < len(from.NIC.Ports)
}

// CompareCables judges the site's cables by what its nodes heard, by node. Nodes that
// are not in it have heard nothing. Ports of a fabric's rails that no cable block
// names are compared with the same rail of the other nodes.
func CompareCables(inv *inventory.Inventory, heard map[string][]wire.Neighbour) Report {
	cables := IntendedCables(inv)
	at := newAtlas(inv, cables, heard)
	var r Report
	for _, c := range cables {
		r.Results = append(r.Results, at.compareCable(c))
	}
	switches, rest := findMisnamed(r.Results)
	r.Findings = slices.Concat(switches, findExchanged(rest), at.rails(inv, cables))
	return r
}

// compareCable compares one cable.
func (a *atlas) compareCable(c Cable) Result {
	r := Result{Cable: c, State: Unknown}
	if infiniBand(c.NIC) {
		r.Why = "InfiniBand does not speak LLDP"
		return r
	}
	pci := c.port().PCI
	if pci == "" {
		r.Why = fmt.Sprintf("hardware %q does not say the PCI address of the port", c.Node.Hardware.Name)
		return r
	}
	n, ok := a.heard[place{c.Node.Name, pci}]
	if !ok {
		r.Why = "nothing was heard"
		return r
	}
	end, why := a.end(n)
	if why != "" {
		r.Why = why
		return r
	}
	if r.Found, r.State = end, Wrong; end == c.end() || slices.Contains(c.others, end) {
		r.State = Conforms
	}
	return r
}

// infiniBand reports whether a port speaks InfiniBand.
func infiniBand(nic *inventory.NIC) bool {
	if nic.LinkType != "" {
		return nic.LinkType == "infiniband"
	}
	return nic.Fabric != nil && nic.Fabric.Kind == "infiniband"
}

// place is a port of a node.
type place struct{ node, pci string }

// atlas knows what was heard, and which switch is meant.
type atlas struct {
	heard    map[place]wire.Neighbour
	named    map[string]*inventory.Switch // by the names that a switch may give itself
	chassis  map[string]*inventory.Switch // by chassis id, for those whose name says nothing
	switches map[string]*inventory.Switch // by name
}

func newAtlas(inv *inventory.Inventory, cables []Cable, heard map[string][]wire.Neighbour) *atlas {
	a := &atlas{heard: map[place]wire.Neighbour{}, named: map[string]*inventory.Switch{}, chassis: map[string]*inventory.Switch{}, switches: map[string]*inventory.Switch{}}
	for node, list := range heard {
		for _, n := range list {
			if n.PCI != "" {
				a.heard[place{node, n.PCI}] = n
			}
		}
	}
	for _, r := range inv.Racks {
		for _, s := range r.Switches {
			a.switches[s.Name] = s
			a.name(s)
		}
	}
	for _, s := range inv.Switches {
		if s.Rack == nil && a.switches[s.Name] == nil { // one that a topology computes
			a.switches[s.Name] = s
			a.name(s)
		}
	}
	a.vote(cables)
	return a
}

// name enters the names under which a switch may present itself. One that two
// switches could have says nothing.
func (a *atlas) name(s *inventory.Switch) {
	for _, as := range []string{s.Name, s.Label, strings.ReplaceAll(s.Name, "/", "-"), strings.ReplaceAll(s.Name, "/", "_"), strings.ReplaceAll(s.Name, "/", ".")} {
		as = strings.ToLower(as)
		if other, taken := a.named[as]; taken && other != s {
			a.named[as] = nil
			continue
		}
		a.named[as] = s
	}
}

// byName finds a switch by what it calls itself, with or without a domain.
func (a *atlas) byName(system string) *inventory.Switch {
	system = strings.ToLower(system)
	if s := a.named[system]; s != nil {
		return s
	}
	host, _, _ := strings.Cut(system, ".")
	return a.named[host]
}

// vote finds out which switch a chassis is whose name says nothing, such as
// "sonic" on all: the one that most of its cables are meant for, when these are
// two at least and more than half.
func (a *atlas) vote(cables []Cable) {
	votes, all := map[string]map[*inventory.Switch]int{}, map[string]int{}
	for _, c := range cables {
		n, ok := a.heard[place{c.Node.Name, c.port().PCI}]
		if !ok || n.ChassisID == "" || a.byName(n.SystemName) != nil {
			continue
		}
		if votes[n.ChassisID] == nil {
			votes[n.ChassisID] = map[*inventory.Switch]int{}
		}
		votes[n.ChassisID][c.Switch]++
		all[n.ChassisID]++
	}
	for id, by := range votes {
		for s, n := range by {
			if n >= 2 && 2*n > all[id] {
				a.chassis[id] = s
			}
		}
	}
}

// end is the switch port that a neighbour is, or why that cannot be said.
func (a *atlas) end(n wire.Neighbour) (e End, why string) {
	s := a.byName(n.SystemName)
	if s == nil {
		s = a.chassis[n.ChassisID]
	}
	if s == nil {
		return End{}, fmt.Sprintf("the switch that calls itself %q (chassis %s) is none of the site's", n.SystemName, n.ChassisID)
	}
	number, ok := PanelNumber(s.OS, s.Model, n.PortID)
	if !ok {
		return End{}, fmt.Sprintf("port name %q of switch %s is not understood", n.PortID, s.Name)
	}
	return End{s.Name, number}, ""
}

// byName orders cables.
func byName(a, b Cable) int {
	if a.Node == nil || b.Node == nil {
		return cmp.Or(strings.Compare(a.Low.Switch, b.Low.Switch), cmp.Compare(a.Low.Number, b.Low.Number))
	}
	return cmp.Or(strings.Compare(a.Node.Name, b.Node.Name), strings.Compare(a.NIC.Name, b.NIC.Name), cmp.Compare(a.Port, b.Port))
}
