// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// classes works out what the switches of each tier can do, and how fast a link is.
func (d *design) classes() {
	f := d.f
	d.speed = d.linkSpeed() / unit.BitRate(d.planes)
	d.leaf = d.class(f.Switch, "switch")
	if d.speed == 0 { // nobody says what a link carries: what a port leaves it
		d.speed = d.leaf.speed / unit.BitRate(d.leaf.split)
	}
	d.spine, d.core = d.leaf, d.leaf
	if f.Spine.Decl.Filename != "" || f.Spine.Ports > 0 {
		d.spine = d.class(inheritModel(f.Spine, f.Switch), "spine")
	}
	if f.Core.Decl.Filename != "" || f.Core.Ports > 0 {
		d.core = d.class(inheritModel(f.Core, f.Switch), "core")
	}
	if d.failed {
		return
	}
	d.perPort = d.leaf.split
	lane := d.leaf.speed / unit.BitRate(d.leaf.split)
	if d.speed > 0 && lane > 0 && d.speed > lane {
		d.perPort = 1 // a link takes the whole port
	}
	if d.speed > d.leaf.speed && d.leaf.speed > 0 {
		d.refuse("fabric.link-speed", d.f.Place("link"), "Link faster than the port", "A link of fabric %q carries %s in a plane, and a port of its leaves %s. Give the fabric another switch, or a link that its ports carry.", f.Name, d.speed, d.leaf.speed)
		return
	}
	d.down, d.up = 1, 1
	if up := min(d.leaf.speed, d.spine.speed); d.speed > 0 && up > 0 {
		d.down, d.up = float64(d.speed)*float64(d.perPort), float64(up)
	}
}

// linkSpeed is the speed of a node's link over all planes: what the fabric says, else
// that of the fastest NIC; 0: not known.
func (d *design) linkSpeed() unit.BitRate {
	speed := d.f.Link
	if speed != 0 {
		return speed
	}
	for _, m := range d.members {
		for _, o := range m.outlets {
			speed = max(speed, o.nic.Speed)
		}
	}
	return speed
}

// inheritModel fills what a tier does not say from the model of all tiers; a tier of
// another model has ports of its own.
func inheritModel(m, all inventory.SwitchModel) inventory.SwitchModel {
	if m.OS == "" {
		m.OS = all.OS
	}
	if m.Model != "" && m.Model != all.Model {
		return m
	}
	m.Model = all.Model
	if m.Ports == 0 {
		m.Ports = all.Ports
	}
	if m.Speed == 0 {
		m.Speed = all.Speed
	}
	if m.Split == 0 {
		m.Split = all.Split
	}
	return m
}

// class reads one block. What the site says wins over the table of models.
func (d *design) class(m inventory.SwitchModel, block string) class {
	at := m.Decl
	if at.Filename == "" {
		at = d.f.Decl
	}
	known, ok := FindModel(m.Model)
	c := class{ports: m.Ports, split: max(m.Split, 1), speed: m.Speed, model: m}
	if c.ports == 0 && ok {
		c.ports = known.Ports
	}
	if c.ports == 0 {
		c.ports = d.racked(block)
	}
	if c.ports == 0 {
		d.refuse("fabric.switch-ports", at, "Number of switch ports not known", "Fabric %q has topology %q, which is computed from the ports of its switches. Say %s { ports = N }: how many ports, each of the speed of a link or faster, one has.", d.f.Name, d.f.Topology, block)
		return c
	}
	if c.speed == 0 && ok && c.ports == known.Ports {
		c.speed = known.Speed
	}
	if c.speed == 0 {
		c.speed = d.speed * unit.BitRate(c.split)
	}
	c.model.Ports, c.model.Speed = c.ports, c.speed
	if wrong := findContradiction(m, known, d.f.Kind); ok && wrong != "" {
		d.found.Add("fabric.switch-model", at, "Not what this model is", fmt.Sprintf("Fabric %q says that a %s has %s (%s). What the site says is used; correct it where it is wrong.", d.f.Name, m.Model, wrong, known.SourceText)).In(d.f.Decl).Warn()
	}
	return c
}

// racked is the number of ports of the site's own switches of a tier, the least
// that any of them has; 0: they do not say.
func (d *design) racked(block string) int {
	least := 0
	for _, s := range d.inv.Switches {
		tier := tierOf(s)
		mine := block == "switch" && (tier == inventory.Leaf || tier == inventory.NoTier) || block == string(tier)
		if s.Fabric == d.f && mine && s.Ports > 0 && (least == 0 || s.Ports < least) {
			least = s.Ports
		}
	}
	return least
}

// findContradiction says in what a block differs from the model that it names.
func findContradiction(m inventory.SwitchModel, known Model, kind string) string {
	var wrong []string
	if m.Ports > 0 && m.Ports != known.Ports {
		wrong = append(wrong, fmt.Sprintf("%d ports, and it has %d", m.Ports, known.Ports))
	}
	if m.Speed > 0 && m.Speed != known.Speed {
		wrong = append(wrong, fmt.Sprintf("ports of %s, and they have %s", m.Speed, known.Speed))
	}
	if m.Split > 1 && len(known.Splits) > 0 && !slices.Contains(known.Splits, m.Split) {
		wrong = append(wrong, fmt.Sprintf("ports that split into %d, which they do not", m.Split))
	}
	if kind != known.Kind {
		wrong = append(wrong, fmt.Sprintf("ports of kind %s, and they are of kind %s", kind, known.Kind))
	}
	return strings.Join(wrong, "; ")
}
