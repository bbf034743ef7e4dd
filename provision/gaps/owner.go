// SPDX-License-Identifier: Apache-2.0

package gaps

import (
	"cmp"
	"slices"
	"sort"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/inventory"
)

// owner is a block of the files.
type owner struct {
	block, name string
	decl        hcl.Range
	ranges      map[string]hcl.Range       // places of its attributes; nil: not known
	uses        func(*inventory.Node) bool // nil: it is a node
}

// nodes is how many nodes use the block.
func (o owner) nodes(inv *inventory.Inventory) int {
	switch {
	case o.block == "node":
		return 1
	case o.uses == nil:
		return 0
	}
	return count(inv, o.uses)
}

// owners are blocks in the order of their places.
type owners []owner

// ownersOf lists the blocks that stages find something wrong with.
func ownersOf(inv *inventory.Inventory) (list owners) {
	add := func(block, name string, decl hcl.Range, ranges map[string]hcl.Range, uses func(*inventory.Node) bool) {
		list = append(list, owner{block, name, decl, ranges, uses})
	}
	for _, c := range inv.Controllers {
		add("controller", c.Name, c.Decl, nil, everyNode)
	}
	for _, b := range inv.BMCs {
		add("bmc", b.Name, b.Decl, b.Ranges, func(n *inventory.Node) bool { return n.BMC.Profile == b })
	}
	for _, h := range inv.Hardware {
		add("hardware", h.Name, h.Decl, h.Ranges, func(n *inventory.Node) bool { return n.Hardware == h })
	}
	for _, i := range inv.Images {
		add("image", i.Name, i.Decl, i.Ranges, func(n *inventory.Node) bool { return n.Image == i })
	}
	for _, l := range inv.DiskLayouts {
		add("disk_layout", l.Name, l.Decl, nil, func(n *inventory.Node) bool { return n.Disks == l })
	}
	for _, d := range inv.Drivers {
		add("driver", d.Name, d.Decl, d.Ranges, func(n *inventory.Node) bool { return slices.Contains(n.Drivers, d) })
	}
	for _, f := range inv.Fabrics {
		add("fabric", f.Name, f.Decl, f.Ranges, func(n *inventory.Node) bool { return slices.Contains(fabric.Of(n), f) })
	}
	for _, v := range inv.Validations {
		add("validation", v.Name, v.Decl, v.Ranges, func(n *inventory.Node) bool { return n.Validation == v })
	}
	for _, h := range inv.Handovers {
		add("handover", h.Name, h.Decl, h.Ranges, func(n *inventory.Node) bool { return n.Handover == h || slices.Contains(n.Exports, h) })
	}
	for _, r := range inv.Roles {
		add("role", r.Name, r.Decl, r.Ranges, func(n *inventory.Node) bool { return n.Role == r })
	}
	for _, r := range inv.Racks {
		add("rack", r.Name, r.Decl, nil, func(n *inventory.Node) bool { return n.Rack == r })
	}
	for _, n := range inv.Nodes {
		add("node", n.Name, n.Decl, nil, nil)
	}
	slices.SortStableFunc(list, func(a, b owner) int { return compareRanges(a.decl, b.decl) })
	return list
}

func compareRanges(a, b hcl.Range) int {
	return cmp.Or(cmp.Compare(a.Filename, b.Filename), cmp.Compare(a.Start.Byte, b.Start.Byte))
}

// find is the block that a place lies in, with the attribute of it that stands there:
// the last that begins before the place in its file. Of several instances it is the
// first, used by the nodes of all. The zero owner: none is known.
func (l owners) find(at hcl.Range) (of owner, setting string) {
	i := sort.Search(len(l), func(i int) bool { return compareRanges(l[i].decl, at) > 0 })
	if i == 0 || l[i-1].decl.Filename != at.Filename {
		return owner{}, ""
	}
	i--
	of = l[i]
	for ; i > 0 && of.uses != nil && l[i-1].decl == of.decl; i-- { // another instance of the block
		last, before := of.uses, l[i-1]
		of = before
		of.uses = func(n *inventory.Node) bool { return before.uses(n) || last(n) }
	}
	for name, r := range of.ranges {
		if r.Start.Byte <= at.Start.Byte && at.End.Byte <= r.End.Byte && r.Filename == at.Filename {
			setting = name
		}
	}
	return of, setting
}
