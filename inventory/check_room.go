// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/addr"
)

// rackItem is something in rack units.
type rackItem struct {
	what   string // "node r01-u01"
	node   string
	unit   int
	height int
	at, in hcl.Range
}

// checkRacks reports what does not fit into the units of its rack, and racks with
// one number.
func (l *loader) checkRacks() {
	byNumber := map[int]*Rack{}
	for _, r := range l.inv.Racks {
		if first := byNumber[r.Number]; first != nil {
			l.diags.Add("rack.number", l.place(r, "number"), "Two racks of one number", fmt.Sprintf("Racks %q and %q both have number %d, from which addresses are derived. Give each its own number.", first.Name, r.Name, r.Number)).Also("the other one", l.place(first, "number")).In(r.Decl)
		} else {
			byNumber[r.Number] = r
		}
		l.checkUnits(r)
	}
}

// checkUnits sorts what stands in a rack and compares neighbours.
func (l *loader) checkUnits(r *Rack) {
	things := l.listRackItems(r)
	slices.SortStableFunc(things, func(a, b rackItem) int { return a.unit - b.unit })
	var below *rackItem // the one that reaches highest so far
	for i := range things {
		t := &things[i]
		if top := t.unit + t.height - 1; top > r.Units {
			d := l.diags.Add("unit.range", t.at, "Higher than the rack", fmt.Sprintf("The %s fills %s of rack %q, which has %d.", t.what, describeUnits(t), r.Name, r.Units)).Also("the rack", l.place(r, "units")).In(t.in)
			if t.node != "" {
				d.Of(t.node)
			}
		}
		if below != nil && below.unit+below.height > t.unit {
			d := l.diags.Add("unit.overlap", t.at, "Two things in one rack unit", fmt.Sprintf("The %s fills %s of rack %q, where the %s fills %s. Move one of them.", t.what, describeUnits(t), r.Name, below.what, describeUnits(below))).Also(below.what, below.at).In(t.in)
			for _, n := range []string{t.node, below.node} {
				if n != "" {
					d.Of(n)
				}
			}
		}
		if below == nil || t.unit+t.height > below.unit+below.height {
			below = t
		}
	}
}

func describeUnits(s *rackItem) string {
	if s.height == 1 {
		return fmt.Sprintf("unit %d", s.unit)
	}
	return fmt.Sprintf("units %d to %d", s.unit, s.unit+s.height-1)
}

func (l *loader) listRackItems(r *Rack) []rackItem {
	var out []rackItem
	for _, n := range r.Nodes {
		if n.Unit > 0 {
			out = append(out, rackItem{"node " + n.Name, n.Name, n.Unit, n.Height(), n.Ranges.Unit, n.Decl})
		}
	}
	for _, s := range r.Switches {
		if s.Unit > 0 {
			out = append(out, rackItem{"switch " + s.Name, "", s.Unit, s.Height, l.place(s, "unit"), s.Decl})
		}
	}
	for _, s := range r.Shelves {
		if s.Unit > 0 {
			out = append(out, rackItem{"shelf " + s.Name, "", s.Unit, s.Height, l.place(s, "unit"), s.Decl})
		}
	}
	return out
}

// checkIdentities reports serials, UUIDs and MACs that two nodes claim: the
// identity gate before every erasure rests on them.
func (l *loader) checkIdentities() {
	serials, uuids := map[string]*Node{}, map[string]*Node{}
	macs := map[addr.MAC]macOwner{}
	for _, n := range l.inv.Nodes {
		if first := serials[n.Serial]; n.Serial != "" && first != nil {
			l.twice("serial.duplicate", "Serial", n.Serial, n.Name, first.Name, n.Ranges.Serial, first.Ranges.Serial, n.Decl)
		}
		if first := uuids[n.UUID]; n.UUID != "" && first != nil {
			l.twice("uuid.duplicate", "UUID", n.UUID, n.Name, first.Name, n.Ranges.UUID, first.Ranges.UUID, n.Decl)
		}
		serials[n.Serial], uuids[n.UUID] = n, n
		l.claim(macs, n, n.BootMAC, "", n.Ranges.BootMAC)
		l.claim(macs, n, n.BMC.MAC, "the BMC of ", n.Ranges.BMCMAC)
	}
}

type macOwner struct {
	node, role string
	at         hcl.Range
}

func (l *loader) claim(macs map[addr.MAC]macOwner, n *Node, m addr.MAC, role string, at hcl.Range) {
	if m.IsZero() {
		return
	}
	if first, taken := macs[m]; taken {
		l.twice("mac.duplicate", "MAC", m.String(), role+n.Name, first.role+first.node, at, first.at, n.Decl)
		return
	}
	macs[m] = macOwner{n.Name, role, at}
}

func (l *loader) twice(check, what, value, second, first string, at, was, in hcl.Range) {
	l.diags.Add(check, at, what+" used twice", fmt.Sprintf("%s %q belongs to %s and to %s. One of the two is wrong; compare them with the vendor's list.", what, value, first, second)).Also("used first here", was).In(in)
}

// checkOutlets reports outlets with two plugs.
func (l *loader) checkOutlets() {
	type outlet struct {
		pdu    *PDU
		number int
	}
	type plug struct {
		owner string
		at    hcl.Range
	}
	for _, r := range l.inv.Racks {
		taken := map[outlet]plug{}
		connect := func(owner string, feeds []Feed, at, in hcl.Range) {
			for _, f := range feeds {
				if f.Outlet == 0 {
					continue
				}
				o := outlet{f.PDU, f.Outlet}
				if first, dup := taken[o]; dup {
					l.diags.Add("outlet.duplicate", at, "Two plugs in one outlet", fmt.Sprintf("Outlet %d of PDU %s feeds %s and %s of %s.", o.number, o.pdu.Name, first.owner, f.Supply, owner)).Also("used first here", first.at).In(in).Of(owner)
					continue
				}
				taken[o] = plug{f.Supply + " of " + owner, at}
			}
		}
		for _, n := range r.Nodes {
			connect(n.Name, n.Feeds, n.Ranges.Feeds, n.Decl)
		}
		for _, s := range r.Switches {
			connect(s.Name, s.Feeds, l.place(s, "feeds"), s.Decl)
		}
		for _, s := range r.Shelves {
			connect(s.Name, s.Feeds, l.place(s, "feeds"), s.Decl)
		}
	}
}
