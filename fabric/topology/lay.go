// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"strconv"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/unit"
)

// layer lays cables into one slab: a hundred thousand of them are one allocation.
type layer struct {
	d     *design
	slab  []inventory.Cable
	taken map[socket]bool      // ports of the site's switches that cable blocks have
	lost  []inventory.CableEnd // ports that cable blocks have
	over  []inventory.CableEnd // ports that a switch of the site has not
	first []*inventory.Cable   // of the splitter in a port of a leaf
	seats []bool               // node links of leaves that are used
}

// socket is a port of a switch.
type socket struct {
	at   *inventory.Switch
	port int
}

// lay makes the cables: nodes to leaves, leaves to spines, spines to cores, and
// those of what manages the fabric.
func (d *design) lay() {
	l := &layer{d: d, slab: make([]inventory.Cable, 0, d.links()), taken: d.taken(), first: make([]*inventory.Cable, len(d.leaves)*d.slots), seats: make([]bool, len(d.leaves)*d.slots)}
	l.nodes()
	l.managers()
	l.spines()
	l.cores()
	d.cables = make([]*inventory.Cable, len(l.slab))
	for i := range l.slab {
		d.cables[i] = &l.slab[i]
	}
	l.collisions()
}

// taken are the ports of switches that have a cable of the site.
func (d *design) taken() map[socket]bool {
	out := map[socket]bool{}
	for _, c := range d.inv.Cables {
		if c.Computed() {
			continue
		}
		for _, e := range [2]*inventory.CableEnd{&c.From, &c.To} {
			if e.Switch != nil {
				out[socket{e.Switch, e.Port}] = true
			}
		}
	}
	return out
}

// add lays one cable; nil when a cable block has one of its ports.
func (l *layer) add(from, to inventory.CableEnd, speed unit.BitRate) *inventory.Cable {
	for _, e := range [2]*inventory.CableEnd{&from, &to} {
		switch {
		case e.Switch == nil || e.Switch.Rack == nil:
		case l.taken[socket{e.Switch, e.Port}]:
			l.lost = append(l.lost, *e)
			return nil
		case e.Switch.Ports > 0 && e.Port > e.Switch.Ports:
			l.over = append(l.over, *e)
			return nil
		}
	}
	l.slab = append(l.slab, inventory.Cable{From: from, To: to, Fabric: l.d.f, Rail: -1, Speed: speed, Decl: l.d.f.Decl})
	return &l.slab[len(l.slab)-1]
}

// linkEnd returns a port of a switch by the number of a link: lanes of split ports are
// counted one by one.
func linkEnd(s *inventory.Switch, n, split int) inventory.CableEnd {
	e := inventory.CableEnd{Switch: s, Port: n + 1}
	if split > 1 {
		e.Port, e.Lane = n/split+1, n%split+1
	}
	return e
}

// nodes lays the cables of nodes. A port in several planes is one splitter cable
// at the node; a port of a leaf that several nodes share is one at the leaf.
func (l *layer) nodes() {
	d := l.d
	for i := range d.groups {
		g := &d.groups[i]
		for _, m := range g.members {
			for _, o := range m.outlets {
				if o.rail >= d.rails {
					continue // the loader has said so
				}
				leaf, n := d.home(g, m.slot, o.rail)
				if seat := leaf*d.slots + n; n >= d.slots || l.seats[seat] {
					continue // two ports on one rail, likewise
				} else {
					l.seats[seat] = true
				}
				if len(d.given) == 0 || !d.given[plug{m.node, o.nic, o.port}] {
					l.node(m.node, o, leaf, n)
				}
			}
		}
	}
}

func (l *layer) node(n *inventory.Node, o outlet, leaf, slot int) {
	d := l.d
	var first *inventory.Cable
	for p := range d.planes {
		to := linkEnd(d.leafAt[leaf*d.planes+p], slot, d.perPort)
		from := inventory.CableEnd{Node: n, NIC: o.nic, Port: o.port}
		if d.planes > 1 {
			from.Lane = p + 1
		}
		c := l.add(from, to, d.speed)
		if c == nil {
			continue
		}
		c.Rail = o.rail
		if d.planes == 1 {
			l.share(c, leaf, slot)
			continue
		}
		if c.Splitter = first; first == nil {
			first = c
		}
	}
}

// share makes a cable in a port of a leaf that has one already a further half of
// that.
func (l *layer) share(c *inventory.Cable, leaf, slot int) {
	if l.d.perPort == 1 {
		return
	}
	first := &l.first[leaf*l.d.slots+slot/l.d.perPort]
	if c.Splitter = *first; *first == nil {
		*first = c
	}
}

// managers lays the cables of what manages the fabric, from places of nodes that
// are free: those of the first units that are not full, and in one slot as many
// leaves as there are.
func (l *layer) managers() {
	d := l.d
	left := d.opt.ManagerPorts
	for i := range d.groups {
		g := &d.groups[i]
		for slot := 0; slot < d.slots && left > 0; slot++ {
			for leaf := g.first; leaf < g.first+g.leaves && left > 0; leaf++ {
				if l.seats[leaf*d.slots+slot] {
					continue
				}
				l.seats[leaf*d.slots+slot] = true
				from := linkEnd(d.leafAt[leaf*d.planes], slot, d.perPort)
				if c := l.add(from, inventory.CableEnd{Text: d.manager(d.opt.ManagerPorts - left)}, d.speed); c != nil {
					l.share(c, leaf, slot)
				}
				left--
			}
		}
	}
	if left > 0 {
		d.found.Add("fabric.manager-ports", d.f.Place("subnet_manager"), "No free port for the subnet manager", fmt.Sprintf("Fabric %q gives %d ports of its leaves to the hosts of its subnet manager, and the nodes leave %d. Leave a node's place free in one unit, as the published designs do, or make units larger.",
			d.f.Name, d.opt.ManagerPorts, d.opt.ManagerPorts-left)).In(d.f.Decl)
	}
}

// manager names a port of a host that manages the fabric; they take turns.
func (d *design) manager(i int) string {
	who := d.opt.Managers
	if len(who) == 0 {
		who = []string{d.f.Name}
	}
	return who[i%len(who)] + "/sm/" + strconv.Itoa(i/len(who))
}

// split is how many links a port between switches is split into.
func (d *design) split() int {
	if d.shape.Lanes {
		return d.leaf.split
	}
	return 1
}

// between is the speed of a link between two tiers.
func (d *design) between(a, b class) unit.BitRate {
	if s := min(a.speed, b.speed) / unit.BitRate(d.split()); s > 0 {
		return s
	}
	return d.speed
}

// spines lays the uplinks of leaves: as many to each spine of the pod, side by
// side, so that both ports of a twin-port cage go to one spine.
func (l *layer) spines() {
	d, s := l.d, l.d.shape
	split, speed, per := d.split(), d.between(d.leaf, d.spine), s.perPair()
	for i := range d.leaves {
		pod, row := i/s.PodSize, i%s.PodSize
		for p := range d.planes {
			var first *inventory.Cable
			for n := range s.Links {
				from := linkEnd(d.leafAt[i*d.planes+p], d.upFrom*split+n, split)
				to := linkEnd(d.spineAt[(pod*s.Spines+n/per)*d.planes+p], row*per+n%per, split)
				first = l.pair(from, to, speed, first)
			}
		}
	}
}

// pair lays a cable between switches; the lanes of one lower port are one
// splitter cable.
func (l *layer) pair(from, to inventory.CableEnd, speed unit.BitRate, first *inventory.Cable) *inventory.Cable {
	c := l.add(from, to, speed)
	if c == nil || from.Lane == 0 {
		return nil
	}
	if first != nil && first.From.Port == from.Port {
		c.Splitter = first
		return first
	}
	return c
}

// cores lays the uplinks of spines: spine j of every pod to the cores of group j,
// as many to each.
func (l *layer) cores() {
	d, s := l.d, l.d.shape
	if s.Cores == 0 {
		return
	}
	split, speed, per := d.split(), d.between(d.spine, d.core), s.SpineUp/s.Cores
	base := d.spine.down(s.Lanes)
	for i := range s.spines() {
		pod, j := i/s.Spines, i%s.Spines
		for p := range d.planes {
			var first *inventory.Cable
			for n := range s.SpineUp {
				from := linkEnd(d.spineAt[i*d.planes+p], base+n, split)
				to := linkEnd(d.coreAt[(j*s.Cores+n/per)*d.planes+p], pod*per+n%per, split)
				first = l.pair(from, to, speed, first)
			}
		}
	}
}

// collisions reports ports that the topology needs and that a cable block has, or
// that the switch has not.
func (l *layer) collisions() {
	if len(l.over) > 0 {
		s := l.over[0].Switch
		l.d.refuse("fabric.switch-ports", s.Decl, "Switch with too few ports for its part", "Switch %s has %d ports, and as a %s of fabric %q it needs port %d. Give the part to another switch, or correct ports. Cables that end in ports that switches lack: %d.", s.Name, s.Ports, s.Tier, l.d.f.Name, l.over[0].Port, len(l.over)).Also("the fabric", l.d.f.Decl)
	}
	if len(l.lost) == 0 {
		return
	}
	var names []string
	for _, e := range l.lost {
		names = append(names, e.String())
	}
	l.d.refuse("fabric.port-taken", l.d.f.Decl, "Port with a cable of its own", "The topology of fabric %q needs ports that cable blocks give to something else: %s. Move these cables to ports that it leaves free, or say topology = \"explicit\" and list all cables.", l.d.f.Name, diag.Few(names, len(names)))
}
