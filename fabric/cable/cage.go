// SPDX-License-Identifier: Apache-2.0

package cable

import (
	"strings"

	"github.com/ironrail/ironrail/fabric/topology"
	"github.com/ironrail/ironrail/inventory"
)

// cages remembers which cages serve two ports. It belongs to one goroutine.
type cages struct {
	perCage map[*inventory.Switch]int
	models  map[string]int
	panels  map[*inventory.NIC][]panel
}

// panel is the cage of a node's port.
type panel struct {
	cage int // the same for ports of one cage
	of   int // ports in the cage
}

func newCages() cages {
	return cages{perCage: map[*inventory.Switch]int{}, models: map[string]int{}, panels: map[*inventory.NIC][]panel{}}
}

// portsPerCage is 2 for a switch with twin-port cages, whose transceivers have
// two fibre connectors, else 1.
func (c cages) portsPerCage(s *inventory.Switch) int {
	if n, ok := c.perCage[s]; ok {
		return n
	}
	model, n := s.Model, 1
	if model == "" && s.Fabric != nil {
		model = modelOf(s).Model
	}
	if of, ok := c.models[model]; ok {
		n = of
	} else if m, ok := topology.FindModel(model); ok {
		n = max(1, m.Cage)
	}
	c.models[model], c.perCage[s] = n, n
	return n
}

// label is what is printed at a port of a switch. A model that is not known has
// one port a cage.
func (c cages) label(s *inventory.Switch, port, lane int) string {
	return topology.PortLabel(c.portsPerCage(s), port, lane)
}

// panel finds the cage of a node's port: ports whose labels differ only after the
// last slash, "OSFP 1/1" and "OSFP 1/2", are of one cage.
func (c cages) panel(nic *inventory.NIC, port int) panel {
	list, ok := c.panels[nic]
	if !ok {
		list = listPanels(nic)
		c.panels[nic] = list
	}
	if port < 0 || port >= len(list) {
		return panel{port, 1}
	}
	return list[port]
}

func listPanels(nic *inventory.NIC) []panel {
	out := make([]panel, len(nic.Ports))
	first := map[string]int{}
	for i, p := range nic.Ports {
		out[i] = panel{i, 1}
		slash := strings.LastIndexByte(p.Panel, '/')
		if slash < 0 {
			continue
		}
		name := p.Panel[:slash]
		at, again := first[name]
		if !again {
			first[name] = i
			continue
		}
		out[at].of++
		out[i].cage = at
	}
	for i := range out {
		out[i].of = out[out[i].cage].of
	}
	return out
}

// cage is one cage, comparable; links is how many links it serves.
type cage struct {
	node  *inventory.Node
	nic   *inventory.NIC
	sw    *inventory.Switch
	index int
}

// of finds the cage of an end and the number of links that it serves.
func (c cages) of(e *inventory.CableEnd) (cage, int) {
	switch {
	case e.Node != nil && e.NIC != nil:
		p := c.panel(e.NIC, e.Port)
		return cage{node: e.Node, nic: e.NIC, index: p.cage}, p.of
	case e.Switch != nil:
		n, lanes := c.portsPerCage(e.Switch), 1
		if e.Lane > 0 && e.Switch.Fabric != nil {
			lanes = max(1, modelOf(e.Switch).Split)
		}
		return cage{sw: e.Switch, index: (e.Port - 1) / n}, n * lanes
	}
	return cage{}, 1
}

// sharing reports whether the cage of an end of the first half of a run serves
// links of other cables.
func (c cages) sharing(r *Run, e *inventory.CableEnd) bool {
	if len(r.Cables) > 1 && (e == &r.Cables[0].From) == trunkAtFrom(r) {
		return false // the whole cage is the trunk's
	}
	_, links := c.of(e)
	return links > 1 && !c.straight(r)
}

// straight reports whether all halves of a run end in one cage at either end, and
// fill both: the cable is no splitter then, but one for both ports.
func (c cages) straight(r *Run) bool {
	n := len(r.Cables)
	if n < 2 {
		return false
	}
	var first cage
	for i, h := range r.Cables {
		leg := &h.To
		if !trunkAtFrom(r) {
			leg = &h.From
		}
		at, links := c.of(leg)
		if i == 0 {
			first = at
		}
		if at != first || links != n {
			return false
		}
	}
	return true
}
