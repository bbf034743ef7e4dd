// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// part is one place in the tree that a switch takes.
type part struct {
	tier       inventory.Tier
	unit, rail int
	plane, pod int
	index      int // among its tier and plane
	leaf       *leaf
	at         **inventory.Switch // where it is noted
}

// free reports whether any switch may take the part: nobody has, and it is not a
// leaf that belongs into a rack.
func (p *part) free() bool { return *p.at == nil && (p.leaf == nil || p.leaf.rack == nil) }

// place gives the site's switches their parts, pinned ones first, and makes
// switches without a place of what is left.
func (d *design) place() {
	tiers := d.tiers()
	d.leafAt = make([]*inventory.Switch, tiers[0].count*d.planes)
	d.spineAt = make([]*inventory.Switch, tiers[1].count*d.planes)
	d.coreAt = make([]*inventory.Switch, tiers[2].count*d.planes)
	parts := d.parts()
	for i := range parts {
		if l := parts[i].leaf; l != nil && parts[i].plane < len(l.own) {
			d.take(&parts[i], l.own[parts[i].plane])
		}
	}
	var free []*inventory.Switch
	for _, s := range d.placed() {
		if !isPinned(s) {
			free = append(free, s)
			continue
		}
		d.pin(parts, s)
	}
	d.fill(parts, free)
	d.make(parts)
}

// parts lists the tree: leaves, spines, cores, each by position, then plane.
func (d *design) parts() []part {
	list := make([]part, 0, len(d.leafAt)+len(d.spineAt)+len(d.coreAt))
	for i := range d.leaves {
		l := &d.leaves[i]
		pod := 0
		if d.shape.Levels == 3 {
			pod = i/d.shape.PodSize + 1
		}
		for p := range d.planes {
			list = append(list, part{tier: inventory.Leaf, unit: l.unit, rail: l.rail, plane: p, pod: pod, index: i, leaf: l, at: &d.leafAt[i*d.planes+p]})
		}
	}
	for i := range d.shape.spines() {
		pod := 0
		if d.shape.Levels == 3 {
			pod = i/d.shape.Spines + 1
		}
		for p := range d.planes {
			list = append(list, part{tier: inventory.Spine, rail: -1, plane: p, pod: pod, index: i, at: &d.spineAt[i*d.planes+p]})
		}
	}
	for i := range d.shape.cores() {
		for p := range d.planes {
			list = append(list, part{tier: inventory.Core, rail: -1, plane: p, index: i, at: &d.coreAt[i*d.planes+p]})
		}
	}
	return list
}

// take makes a switch of the site the part.
func (d *design) take(p *part, s *inventory.Switch) {
	*p.at = s
	s.Tier, s.ScalableUnit, s.Rail, s.Pod = p.tier, p.unit, p.rail, p.pod
	s.Plane = -1
	if d.planes > 1 {
		s.Plane = p.plane
	}
}

// placed lists the site's switches of the fabric in the order of the room, but
// for those that are a rack's own leaves.
func (d *design) placed() (list []*inventory.Switch) {
	own := map[*inventory.Switch]bool{}
	for _, l := range d.leaves {
		for _, s := range l.own {
			own[s] = true
		}
	}
	for _, s := range d.inv.Switches {
		if s.Fabric == d.f && s.Rack != nil && !own[s] {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b *inventory.Switch) int {
		return cmp.Or(cmp.Compare(rackNumber(a.Rack), rackNumber(b.Rack)), cmp.Compare(a.Unit, b.Unit), strings.Compare(a.Name, b.Name))
	})
	return list
}

func isPinned(s *inventory.Switch) bool { return s.ScalableUnit > 0 || s.Rail >= 0 || s.Plane >= 0 }

// pin seats a switch that says which part it is.
func (d *design) pin(parts []part, s *inventory.Switch) {
	tier := tierOf(s)
	if tier == inventory.NoTier {
		tier = inventory.Leaf
	}
	i := slices.IndexFunc(parts, func(p part) bool {
		return p.tier == tier && p.free() && (s.ScalableUnit == 0 || s.ScalableUnit == p.unit) && (s.Rail < 0 || s.Rail == p.rail) && (s.Plane < 0 || s.Plane == p.plane)
	})
	if i >= 0 {
		d.take(&parts[i], s)
		return
	}
	d.found.Add("fabric.pinned", s.Decl, "Part of the fabric not free", fmt.Sprintf("Switch %s is to be %s of fabric %q, and there is no such part, or another switch is it already. Correct tier, scalable_unit, rail and plane, or take them away: the parts that are left are given in the order of the room.", s.Name, describeSwitch(s, tier), d.f.Name)).Also("the fabric", d.f.Decl)
}

func describeSwitch(s *inventory.Switch, tier inventory.Tier) string {
	text := "a " + string(tier)
	if s.ScalableUnit > 0 {
		text += fmt.Sprintf(" of scalable unit %d", s.ScalableUnit)
	}
	if s.Rail >= 0 {
		text += fmt.Sprintf(" of rail %d", s.Rail)
	}
	if s.Plane >= 0 {
		text += fmt.Sprintf(" in plane %d", s.Plane)
	}
	return text
}

// fill seats the other switches in the order of the room: those of a known tier,
// then the rest in what is left.
func (d *design) fill(parts []part, free []*inventory.Switch) {
	var rest, spare []*inventory.Switch
	next := map[inventory.Tier]int{}
	seat := func(s *inventory.Switch, tier inventory.Tier) bool {
		for i := next[tier]; i < len(parts); i++ {
			if next[tier] = i; parts[i].free() && (tier == inventory.NoTier || parts[i].tier == tier) {
				d.take(&parts[i], s)
				return true
			}
		}
		next[tier] = len(parts)
		return false
	}
	for _, s := range free {
		switch tier := tierOf(s); {
		case tier == inventory.NoTier:
			rest = append(rest, s)
		case !seat(s, tier):
			spare = append(spare, s)
		}
	}
	for _, s := range rest {
		if !seat(s, inventory.NoTier) {
			spare = append(spare, s)
		}
	}
	if len(spare) > 0 {
		var names []string
		for _, s := range spare {
			names = append(names, s.Name)
		}
		d.found.Add("fabric.spare-switch", spare[0].Decl, "Switch that the topology does not need", fmt.Sprintf("Fabric %q connects all of its nodes without %s. Take what is not needed away, or say what it is for.", d.f.Name, diag.Few(names, len(names)))).Also("the fabric", d.f.Decl).Warn()
	}
}

// make makes switches of the parts that nobody took.
func (d *design) make(parts []part) {
	left := 0
	for i := range parts {
		if *parts[i].at == nil {
			left++
		}
	}
	if left == 0 {
		return
	}
	slab := make([]inventory.Switch, left)
	d.computed = make([]*inventory.Switch, 0, left)
	count := map[inventory.Tier]int{}
	var names []string
	for i := range parts {
		p := &parts[i]
		if *p.at != nil {
			continue
		}
		s := &slab[len(d.computed)]
		d.describe(s, p)
		d.take(p, s)
		d.computed = append(d.computed, s)
		count[p.tier]++
		if len(names) < 4 {
			names = append(names, s.Name)
		}
	}
	var what []string
	for _, t := range []struct {
		tier inventory.Tier
		many string
	}{{inventory.Leaf, "leaves"}, {inventory.Spine, "spines"}, {inventory.Core, "cores"}} {
		switch n := count[t.tier]; {
		case n == 1:
			what = append(what, "1 "+string(t.tier))
		case n > 1:
			what = append(what, fmt.Sprintf("%d %s", n, t.many))
		}
	}
	more := ""
	if left > len(names) {
		more = ", and so on"
	}
	d.found.Add("fabric.unplaced", d.f.Decl, "Switches without a place", fmt.Sprintf("Fabric %q needs switches that stand in no rack: %s (%s%s). Give racks blocks such as switch \"leaf-1\" { fabric = fabric.%s }; without them cables have no length, and their power and weight are not counted.",
		d.f.Name, strings.Join(what, ", "), strings.Join(names, ", "), more, d.f.Name)).Warn()
}

// describe fills a switch without a place.
func (d *design) describe(s *inventory.Switch, p *part) {
	c := map[inventory.Tier]class{inventory.Leaf: d.leaf, inventory.Spine: d.spine, inventory.Core: d.core}[p.tier]
	s.Label = d.label(p)
	s.Name = d.f.Name + "/" + s.Label
	s.Kind, s.Model, s.OS, s.Ports, s.Height, s.Fabric, s.Decl = d.opt.Kind, c.model.Model, c.model.OS, c.ports, 1, d.f, d.f.Decl
	if s.Kind == "" {
		s.Kind = "ethernet"
	}
	if m, ok := FindModel(s.Model); ok {
		s.Height = m.RackUnits
	}
}

// label names a part: leaf-u1-r0, leaf-r01-1 of a rack, leaf-3; spine-1,
// spine-pod1-1; core-1; with -p0 behind where there are planes.
func (d *design) label(p *part) string {
	var s string
	switch {
	case p.tier == inventory.Leaf && p.leaf.rack != nil:
		s = "leaf-" + p.leaf.rack.Name + "-" + strconv.Itoa(p.leaf.number)
	case p.tier == inventory.Leaf && p.rail >= 0:
		s = "leaf-u" + strconv.Itoa(p.unit) + "-r" + strconv.Itoa(p.rail)
	case p.tier == inventory.Leaf:
		s = "leaf-" + strconv.Itoa(p.leaf.number)
	case p.tier == inventory.Spine && p.pod > 0:
		s = "spine-pod" + strconv.Itoa(p.pod) + "-" + strconv.Itoa(p.index%d.shape.Spines+1)
	default:
		s = string(p.tier) + "-" + strconv.Itoa(p.index+1)
	}
	if d.planes > 1 {
		s += "-p" + strconv.Itoa(p.plane)
	}
	return s
}
