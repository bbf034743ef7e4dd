// SPDX-License-Identifier: Apache-2.0

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
	for _, step := range []func(){
		d.gather,         // the nodes with ports on the fabric; none: nothing to do
		d.classes,        // what a switch of each tier can do, and how fast a link is
		d.sort,           // nodes by place, into groups with leaves of their own
		d.checkRails,     // nodes of a group that do not fit each other
		d.grow,           // the tree above the leaves
		d.checkAddresses, // whether it can all be addressed
		d.place,          // the site's switches into the tree, and others for the rest
		d.lay,            // the cables
	} {
		if step(); d.failed || len(d.members) == 0 {
			return nil, nil, d.found
		}
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
