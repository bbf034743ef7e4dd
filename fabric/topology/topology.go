// Package topology computes a fabric from its rule: which leaf and which port each
// rail of each node ends on, how many spines and cores that takes, and the cables
// between them. It checks what the site's own cables make of a fabric as well. It
// is pure: no I/O, no clock, and the same site gives the same cables.
//
// Sources of the rules: NVIDIA DGX SuperPOD reference architectures (H100: RA-11333,
// B200: RA-11334, B300 with Spectrum-4 and with Quantum-X800), whose component
// counts are a test.
package topology

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Options are what a kind of fabric knows of its own. The zero value is useful.
type Options struct {
	Managers     []string // who takes ports of leaves for itself, such as a subnet manager's controllers
	ManagerPorts int      // how many ports they take together
	MaxAddresses int      // ports and switches that one plane can address; 0: no limit
	AddressCheck string   // the check that speaks of it
	AddressName  string   // what they are called: "unicast LIDs"
	Kind         string   // of the switches it computes, as of inventory.Switch; "ethernet" when empty
}

// Build computes the switches that stand in no rack and the cables of f, and sets
// the part that the site's own switches have in it. Where the rule cannot be
// followed there are neither, and an error says why. It takes time and memory in
// proportion to the cables.
func Build(inv *inventory.Inventory, f *inventory.Fabric, opt Options) ([]*inventory.Switch, []*inventory.Cable, diag.List) {
	if f.Topology == "" || f.Topology == "explicit" {
		return nil, nil, nil
	}
	d := &design{inv: inv, f: f, opt: opt, planes: max(f.Planes, 1), rails: max(f.Rails, 1)}
	if d.gather(); len(d.members) == 0 {
		return nil, nil, d.found
	}
	for _, step := range []func(){d.classes, d.sort, d.checkRails, d.grow, d.checkAddresses} {
		if step(); d.failed {
			return nil, nil, d.found
		}
	}
	d.place()
	if d.lay(); d.failed {
		return nil, nil, d.found
	}
	return d.computed, d.cables, d.found
}

// design is one fabric on its way from a rule to cables.
type design struct {
	inv    *inventory.Inventory
	f      *inventory.Fabric
	opt    Options
	found  diag.List
	failed bool // an error was found that leaves nothing to build

	planes, rails int
	members       []member // by rack number, unit and name
	ports         int      // of all members, that the topology cables
	given         map[plug]bool

	leaf, spine, core class
	speed             unit.BitRate // of a node's link in one plane; 0: not known
	perPort           int          // node links that one port of a leaf takes
	down, up          float64      // speeds of a leaf's ports, for the ratio; equal when not known

	groups []group
	leaves []leaf // of one plane
	slots  int    // node links that a leaf has room for
	shape  Shape
	upFrom int // ports of a leaf before the first uplink

	leafAt, spineAt, coreAt []*inventory.Switch // by position and plane
	computed                []*inventory.Switch
	cables                  []*inventory.Cable
}

// member is a node on the fabric.
type member struct {
	node    *inventory.Node
	outlets []outlet // shared by all nodes of one hardware
	slot    int      // within its group
}

// outlet is a port of a chassis on the fabric.
type outlet struct {
	nic  *inventory.NIC
	port int
	rail int
}

// plug is a port of a node.
type plug struct {
	node *inventory.Node
	nic  *inventory.NIC
	port int
}

// group is a set of nodes with leaves of their own: a scalable unit, or a rack.
type group struct {
	unit    int // scalable unit; 0: none
	rack    *inventory.Rack
	members []member
	first   int // index of its first leaf
	leaves  int
}

// leaf is the part of one leaf.
type leaf struct {
	unit, rail int
	rack       *inventory.Rack
	own        []*inventory.Switch // it is these, by plane; none: placed later
	number     int                 // for its name, from 1, where it has neither rail
}

// refuse reports what leaves nothing to build.
func (d *design) refuse(check string, at hcl.Range, summary, format string, args ...any) *diag.Diagnostic {
	d.failed = true
	return d.found.Add(check, at, summary, fmt.Sprintf(format, args...)).In(d.f.Decl)
}

// gather finds the nodes with ports of rails on the fabric, and which of these
// ports cable blocks take.
func (d *design) gather() {
	of := map[*inventory.Hardware][]outlet{}
	for _, n := range d.inv.Nodes {
		if n.Hardware == nil {
			continue
		}
		list, known := of[n.Hardware]
		if !known {
			list = outlets(n.Hardware, d.f)
			of[n.Hardware] = list
			d.railless(n.Hardware)
		}
		if len(list) > 0 {
			d.members = append(d.members, member{node: n, outlets: list})
			d.ports += len(list)
		}
	}
	d.given = map[plug]bool{}
	for _, c := range d.inv.Cables {
		if c.Computed() {
			continue
		}
		for _, e := range [2]*inventory.CableEnd{&c.From, &c.To} {
			if e.Node != nil && e.NIC != nil && e.NIC.Fabric == d.f {
				d.given[plug{e.Node, e.NIC, e.Port}] = true
			}
		}
	}
}

// railless reports NICs on the fabric whose ports say no rail: nothing would be
// cabled there.
func (d *design) railless(h *inventory.Hardware) {
	for i := range h.NICs {
		nic := &h.NICs[i]
		if nic.Fabric != d.f || len(nic.Ports) == 0 || slices.ContainsFunc(nic.Ports, func(p inventory.NICPort) bool { return p.Rail >= 0 }) {
			continue
		}
		d.found.Add("fabric.rails", nic.Decl, "Ports without a rail", fmt.Sprintf("NIC %q of hardware %q is on fabric %q, whose topology cables rails, and its ports say none. Write ports = [{ rail = 0, pci = %q }].", nic.Name, h.Name, d.f.Name, nic.Ports[0].PCI)).Also("the fabric", d.f.Decl)
	}
}

// outlets lists the ports of a chassis on a fabric, by rail.
func outlets(h *inventory.Hardware, f *inventory.Fabric) (list []outlet) {
	for i := range h.NICs {
		nic := &h.NICs[i]
		if nic.Fabric != f {
			continue
		}
		for j, p := range nic.Ports {
			if p.Rail >= 0 {
				list = append(list, outlet{nic, j, p.Rail})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b outlet) int { return a.rail - b.rail })
	return list
}

// Of is the fabric that a block is; nil: none of the site.
func Of(inv *inventory.Inventory, b inventory.Block) *inventory.Fabric {
	i := slices.IndexFunc(inv.Fabrics, func(f *inventory.Fabric) bool { return f.Name == b.Name && f.Kind == b.Kind })
	if i < 0 {
		return nil
	}
	return inv.Fabrics[i]
}

// Ports is the number of ports of rails that the site's nodes have on a fabric.
func Ports(inv *inventory.Inventory, f *inventory.Fabric) int {
	total := 0
	of := map[*inventory.Hardware]int{}
	for _, n := range inv.Nodes {
		if n.Hardware == nil {
			continue
		}
		count, known := of[n.Hardware]
		if !known {
			count = len(outlets(n.Hardware, f))
			of[n.Hardware] = count
		}
		total += count
	}
	return total
}
