// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"

	"github.com/ironrail/ironrail/inventory"
)

// grow finds the tree above the leaves.
func (d *design) grow() {
	used := (d.slots + d.perPort - 1) / d.perPort // ports of a leaf for nodes
	if used > d.leaf.ports {
		d.refuse("fabric.unit-size", d.f.Place("unit_size"), "More nodes than a leaf has ports", "A leaf of fabric %q has %d ports, each for the links of %d nodes; %d links are to end on it.", d.f.Name, d.leaf.ports, d.perPort, d.slots)
		return
	}
	if d.f.Topology == "top-of-rack" && len(d.groups) == 1 && d.f.Levels <= 1 {
		d.shape = Shape{Levels: 1, Leaves: len(d.leaves), PodSize: len(d.leaves), Pods: 1}
		return
	}
	n := need{leaves: len(d.leaves), levels: d.f.Levels, leaf: d.leaf, spine: d.spine, core: d.core}
	if d.f.Topology == "rail-optimized" {
		n.perUnit = d.rails
	}
	n.ups = uplinkCounts(d.leaf.ports, used, d.down, d.up, max(d.f.Oversubscription, 1))
	if len(n.ups) == 0 && (n.leaves > 1 || n.levels > 1) {
		most := d.half() * d.perPort
		d.refuse("fabric.unit-size", d.f.Place("unit_size"), "Too few ports left for uplinks", "A leaf of fabric %q has %d ports: %d for nodes leave %d for uplinks, which is more than the over-subscription of %.3g allows. With it a leaf takes the links of %d nodes; make units smaller, raise oversubscription, or take a switch with more ports.",
			d.f.Name, d.leaf.ports, used, d.leaf.ports-used, max(d.f.Oversubscription, 1), most)
		return
	}
	var ok bool
	if d.shape, ok = solveShape(n); !ok {
		d.tooMany(n)
		return
	}
	if total := d.links(); total > maxCables {
		d.refuse("fabric.capacity", d.f.Place("topology"), "More cables than one fabric may have", "The topology of fabric %q comes to %d cables in %d leaves; %d are the most. Make larger units, or several fabrics of it.", d.f.Name, total, len(d.leaves)*d.planes, maxCables)
		return
	}
	d.upFrom = max(used, d.half())
	if d.upFrom+d.shape.Up > d.leaf.ports {
		d.upFrom = d.leaf.ports - d.shape.Up
	}
}

// links is the number of cables, with all their halves.
func (d *design) links() int {
	total := d.ports + len(d.leaves)*d.shape.Links
	if d.shape.Cores > 0 {
		total += d.shape.spines() * d.shape.SpineUp
	}
	return d.planes*total + d.opt.ManagerPorts
}

// tooMany says what the fabric holds, and what would hold more.
func (d *design) tooMany(n need) {
	holds := mostEndpoints(n)
	if n.levels == 1 {
		holds = 1
	}
	text := fmt.Sprintf("Fabric %q has %d nodes with %d ports on it, for which topology %q needs %d leaves in each plane; switches of %d ports carry %d leaves at most in a tree of %s.",
		d.f.Name, len(d.members), d.ports, d.f.Topology, n.leaves, d.leaf.ports, holds, levelText(n.levels))
	better := n
	better.levels = 0
	split, levels := d.leaf.split == 1 && d.leaf.speed >= 2*d.speed && d.speed > 0, n.levels > 0 && n.levels < 3 && mostEndpoints(better) >= n.leaves
	if split {
		text += fmt.Sprintf(" A port carries %s and a link %s: with split = %d one port takes several links.", d.leaf.speed, d.speed, d.leaf.speed/d.speed)
	}
	if levels {
		text += " With levels = 3, or without the line, it fits."
	}
	if !split && !levels {
		text += " Take a switch with more ports, or make two fabrics of it."
	}
	d.refuse("fabric.capacity", d.f.Place("topology"), "More ports than the topology can hold", "%s", text)
}

func levelText(levels int) string {
	switch levels {
	case 0:
		return "up to 3 levels"
	case 1:
		return "1 level"
	}
	return fmt.Sprintf("%d levels", levels)
}

// checkAddresses reports a plane with more ports than can be addressed: all of
// its node ports, each of its switches, and what manages it.
func (d *design) checkAddresses() {
	total := d.ports + d.opt.ManagerPorts + len(d.leaves) + d.shape.spines() + d.shape.cores()
	if d.opt.MaxAddresses == 0 || total <= d.opt.MaxAddresses {
		return
	}
	d.refuse(d.opt.AddressCheck, d.f.Place("rails"), "More ports than one subnet holds", "One subnet of fabric %q has %d node ports, %d switches and %d ports of its managers: %d %s, and there are %d. Make several fabrics of it, such as one for each rail, or use planes.",
		d.f.Name, d.ports, len(d.leaves)+d.shape.spines()+d.shape.cores(), d.opt.ManagerPorts, total, d.opt.AddressName, d.opt.MaxAddresses)
}

// home is where a port of a node ends: the leaf, and which of its node links.
func (d *design) home(g *group, slot, rail int) (leaf, link int) {
	switch d.f.Topology {
	case "rail-optimized":
		return g.first + rail, slot
	case "fat-tree":
		per := d.slots / d.rails
		return g.first + slot/per, slot%per*d.rails + rail
	}
	return g.first + rail%g.leaves, slot*d.perLeaf(*g) + rail/g.leaves
}

// tiers are the tiers with the number of their switches in one plane.
func (d *design) tiers() [3]struct {
	tier  inventory.Tier
	count int
} {
	return [3]struct {
		tier  inventory.Tier
		count int
	}{{inventory.Leaf, len(d.leaves)}, {inventory.Spine, d.shape.spines()}, {inventory.Core, d.shape.cores()}}
}
