// SPDX-License-Identifier: Apache-2.0

package power

import (
	"cmp"
	"slices"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// site is the working state: who draws what through which plug. It is written by
// survey and loseFeeds only.
type site struct {
	inv   *inventory.Inventory
	feeds []feed // by name
	racks []rack // as the inventory's
	pdus  []pdu  // of all racks
	loads []load
	plugs []plug // of all loads
}

// feed is one of the building's feeds, as PDUs and feed blocks name them.
type feed struct {
	name   string
	block  *inventory.BuildingFeed // nil: no block has this name
	load   Load
	losses []feedLoss // by lost feed
}

type feedLoss struct {
	feed  int
	extra Load
}

// rack is where the things of a rack are in the lists of the site.
type rack struct {
	firstPDU, pdus   int
	firstLoad, loads int
	shelves          int // load of the shelves together; -1: none
	pooled           Load
}

// pdu is one PDU.
type pdu struct {
	*inventory.PDU
	wiring
	rack   int
	feed   int
	load   [3]Load // of each circuit
	losses []loss
	plugs  int // outlets that are needed
	placed int // plugs that say their outlet
}

// loss is what the loss of a feed adds to the circuits of a PDU.
type loss struct {
	feed  int
	extra [3]Load
}

// load is what draws: a node, a switch, or the shelves of a rack together.
type load struct {
	name        string
	unit        int
	node        *inventory.Node
	sw          *inventory.Switch
	rack        int
	draw        Load
	inrush      unit.Watts
	first, last int  // plugs
	pooled      bool // draws from the rack's shelves
}

// plug is one supply.
type plug struct {
	pdu     int // -1: the inventory does not say where
	feed    int // of the PDU; -1
	circuit int
	outlet  int        // 0: any
	rating  unit.Watts // what the supply carries
	share   float64    // of the load, with all feeds
}

// surveyRacks goes through the racks once.
func surveyRacks(inv *inventory.Inventory) *site {
	s := &site{inv: inv, racks: make([]rack, len(inv.Racks)), loads: make([]load, 0, len(inv.Nodes)+len(inv.Switches)+len(inv.Racks)), plugs: make([]plug, 0, countPlugs(inv))}
	byName := s.nameFeeds()
	for i, r := range inv.Racks {
		at := &s.racks[i]
		at.firstPDU, at.pdus = len(s.pdus), len(r.PDUs)
		for _, p := range r.PDUs {
			s.pdus = append(s.pdus, pdu{PDU: p, wiring: wiringOf(p), rack: i, feed: byName[p.Feed]})
		}
		s.surveyRack(i, r)
	}
	for i := range s.pdus {
		p := &s.pdus[i]
		s.feeds[p.feed].load = s.feeds[p.feed].load.plus(sumLoads(p.load))
	}
	return s
}

func countPlugs(inv *inventory.Inventory) int {
	n := 0
	for _, node := range inv.Nodes {
		n += len(node.Feeds)
	}
	for _, r := range inv.Racks {
		for _, sw := range r.Switches {
			n += len(sw.Feeds)
		}
		for _, sh := range r.Shelves {
			n += sh.Count
		}
	}
	return n
}

// nameFeeds lists the feeds of the site and returns their places by name.
func (s *site) nameFeeds() map[string]int {
	byName := map[string]int{}
	var names []string
	know := func(name string) {
		if _, ok := byName[name]; !ok {
			byName[name] = 0
			names = append(names, name)
		}
	}
	for _, f := range s.inv.Feeds {
		know(f.Name)
	}
	pdus := 0
	for _, r := range s.inv.Racks {
		pdus += len(r.PDUs)
		for _, p := range r.PDUs {
			know(p.Feed)
		}
	}
	slices.Sort(names)
	s.feeds, s.pdus = make([]feed, len(names)), make([]pdu, 0, pdus)
	for i, name := range names {
		s.feeds[i].name, byName[name] = name, i
	}
	for _, f := range s.inv.Feeds {
		s.feeds[byName[f.Name]].block = f
	}
	return byName
}

// surveyRack lists what draws in a rack, in order of unit, and plugs it in.
func (s *site) surveyRack(i int, r *inventory.Rack) {
	at := &s.racks[i]
	at.firstLoad, at.shelves = len(s.loads), -1
	for _, n := range r.Nodes {
		s.loads = append(s.loads, nodeLoad(i, n))
	}
	for _, sw := range r.Switches {
		s.loads = append(s.loads, switchLoad(i, sw))
	}
	if len(r.Switches) > 0 {
		slices.SortStableFunc(s.loads[at.firstLoad:], func(a, b load) int { return cmp.Compare(a.unit, b.unit) })
	}
	for j := at.firstLoad; j < len(s.loads); j++ {
		l := &s.loads[j]
		if l.pooled = len(l.feeds()) == 0 && len(r.Shelves) > 0; l.pooled {
			at.pooled = at.pooled.plus(l.draw)
			continue
		}
		s.plugIn(at, l)
	}
	if len(r.Shelves) > 0 {
		s.loads = append(s.loads, load{name: r.Name, unit: r.Shelves[0].Unit, rack: i, draw: at.pooled})
		at.shelves = len(s.loads) - 1
		s.plugShelves(at, r, &s.loads[at.shelves])
	}
	at.loads = len(s.loads) - at.firstLoad
	s.assign(at)
}

// inrushFactor is how many times its maximum a thing draws until it has settled,
// where its hardware does not say. An assumption: in the first 20 to 50 ms it is
// 3 to 5 times (Raritan PX4, inrush of GPU servers), which a type C breaker lets
// pass (IEC 60898-1, table 7: it holds at 5 times its rating), and after seconds
// at most once.
const inrushFactor = 1.5

func nodeLoad(rack int, n *inventory.Node) load {
	l := load{name: n.Name, unit: n.Unit, node: n, rack: rack}
	if h := n.Hardware; h != nil {
		l.draw = Load{h.Power.Typical, h.Power.Max}
		l.inrush = h.Power.Inrush
	}
	return l.complete()
}

func switchLoad(rack int, sw *inventory.Switch) load {
	return load{name: sw.Name, unit: sw.Unit, sw: sw, rack: rack, draw: Load{Max: sw.Power}}.complete()
}

// isShelves reports whether it is the shelves of a rack together.
func (l *load) isShelves() bool { return l.node == nil && l.sw == nil }

// complete fills in what was not given: typically the maximum is drawn.
func (l load) complete() load {
	if l.draw.Typical == 0 {
		l.draw.Typical = l.draw.Max
	}
	if l.inrush == 0 {
		l.inrush = l.draw.Max * inrushFactor
	}
	return l
}
