// SPDX-License-Identifier: Apache-2.0

package cabling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
)

// Plug is a port of a node.
type Plug struct {
	Node *inventory.Node
	NIC  *inventory.NIC
	Port int // index among the NIC's ports
}

// Known says which port of the site has which GUID, as its nodes said it.
type Known map[addr.GUID]Plug

// site is a swept subnet in the site's words.
type site struct {
	inv      *inventory.Inventory
	fabric   *inventory.Fabric
	plugs    Known                           // by port GUID
	switches map[addr.GUID]*inventory.Switch // by node GUID
	far      map[spot]found                  // both ways
	guids    map[string]addr.GUID            // of switches that were recognised, by name
	named    map[string]*inventory.Switch    // those of the site
}

// tail is the lower end of a cable: a port of a node, or else of a switch.
type tail struct {
	Plug
	End
}

func (c Cable) tail() tail {
	if c.Node == nil {
		return tail{End: c.Low}
	}
	return tail{Plug: Plug{c.Node, c.NIC, c.Port}}
}

// spot is a port of a device as the sweep names it: a switch by its node GUID, an
// HCA by the GUID of its port, which needs no number.
type spot struct {
	guid   addr.GUID
	number int // of a switch
}

// found is what a cable of the sweep leads to.
type found struct {
	to   spot
	link *ibnetdiscover.Link
}

// newSite says which device is which: HCAs by their ports' GUIDs, or where the
// nodes have not said these, by their descriptions; switches by their names, else
// by what most of their cables are meant for.
func newSite(inv *inventory.Inventory, f *inventory.Fabric, known Known, t *ibnetdiscover.Topology, cables []Cable) *site {
	s := &site{inv: inv, fabric: f, plugs: Known{}, switches: map[addr.GUID]*inventory.Switch{}, far: make(map[spot]found, 2*len(t.Links)), guids: map[string]addr.GUID{}, named: map[string]*inventory.Switch{}}
	for _, sw := range inv.Switches {
		s.named[sw.Name] = sw
	}
	ports := map[addr.GUID]map[int]addr.GUID{} // of HCAs
	taken := map[Plug]bool{}
	for _, p := range known {
		taken[p] = true
	}
	describe := newDescribed(inv, f)
	for _, h := range t.HCAs {
		ports[h.GUID] = map[int]addr.GUID{}
		for _, p := range h.Ports {
			ports[h.GUID][p.Port] = p.GUID
			if plug, ok := known[p.GUID]; ok {
				s.plugs[p.GUID] = plug
			} else if plug, ok := describe.plug(h.Name); ok && !taken[plug] {
				s.plugs[p.GUID] = plug
			}
		}
	}
	at := func(e ibnetdiscover.End) spot {
		if by, ok := ports[e.GUID]; ok {
			return spot{guid: by[e.Port]}
		}
		return spot{e.GUID, e.Port}
	}
	for i := range t.Links {
		l := &t.Links[i]
		a, b := at(l.From), at(l.To)
		s.far[a], s.far[b] = found{b, l}, found{a, l}
	}
	s.name(t)
	s.vote(cables)
	for guid, sw := range s.switches {
		s.guids[sw.Name] = guid
	}
	return s
}

// hostName returns the name in a node description: managed switches call themselves
// MF0;leaf-1:MQM9700/U1, and HCAs "r01-n01 mlx5_0".
func hostName(description string) string {
	if _, rest, ok := strings.Cut(description, ";"); ok {
		description, _, _ = strings.Cut(rest, ":")
	}
	return strings.TrimSpace(description)
}

// name finds switches by what they call themselves.
func (s *site) name(t *ibnetdiscover.Topology) {
	a := newAtlas(s.inv, nil, nil)
	taken := map[*inventory.Switch]addr.GUID{}
	for _, x := range t.Switches {
		sw := a.byName(hostName(x.Name))
		if sw == nil || sw.Fabric != s.fabric {
			continue
		}
		if other, twice := taken[sw]; twice {
			delete(s.switches, other) // a name that two have says nothing
			continue
		}
		taken[sw], s.switches[x.GUID] = x.GUID, sw
	}
}

// vote finds out who the switches are whose names say nothing, from the nodes
// upwards: the one that most of its cables are meant for, when these are more than
// half.
func (s *site) vote(cables []Cable) {
	for range 3 { // leaves, spines, cores
		if !s.anyNameless() {
			return
		}
		votes, all := map[addr.GUID]map[*inventory.Switch]int{}, map[addr.GUID]int{}
		taken := map[*inventory.Switch]bool{}
		for _, sw := range s.switches {
			taken[sw] = true
		}
		lower := s.lower()
		for _, c := range cables {
			from, ok := lower[c.tail()]
			if !ok || taken[c.Switch] {
				continue
			}
			f, ok := s.far[from]
			if !ok || f.to.number == 0 || s.switches[f.to.guid] != nil {
				continue
			}
			if votes[f.to.guid] == nil {
				votes[f.to.guid] = map[*inventory.Switch]int{}
			}
			votes[f.to.guid][c.Switch]++
			all[f.to.guid]++
		}
		for _, guid := range slices.Sorted(maps.Keys(votes)) {
			for sw, n := range votes[guid] {
				if 2*n > all[guid] && !taken[sw] {
					s.switches[guid], taken[sw] = sw, true
				}
			}
		}
	}
}

// anyNameless reports whether the sweep has a switch port of a switch that is not known yet.
func (s *site) anyNameless() bool {
	for at := range s.far {
		if at.number > 0 && s.switches[at.guid] == nil {
			return true
		}
	}
	return false
}

// lower are the places of the lower ends of cables that are known so far.
func (s *site) lower() map[tail]spot {
	out := make(map[tail]spot, len(s.far))
	for guid, p := range s.plugs {
		out[tail{Plug: p}] = spot{guid: guid}
	}
	for at := range s.far {
		if sw := s.switches[at.guid]; sw != nil && at.number > 0 {
			out[tail{End: End{sw.Name, at.number}}] = at
		}
	}
	return out
}

// end is the switch port at a spot; false for an HCA, or a switch nobody knows.
func (s *site) end(at spot) (End, bool) {
	sw := s.switches[at.guid]
	if sw == nil || at.number == 0 {
		return End{}, false
	}
	return End{sw.Name, at.number}, true
}

// described finds ports by the descriptions of their HCAs: a host name with the
// number of the RDMA device, which counts PCI addresses, or with the rail.
type described struct {
	nodes map[string]*inventory.Node
	plugs map[*inventory.Hardware][]Plug // of the fabric, by PCI address; Node is nil
	f     *inventory.Fabric
}

func newDescribed(inv *inventory.Inventory, f *inventory.Fabric) described {
	d := described{map[string]*inventory.Node{}, map[*inventory.Hardware][]Plug{}, f}
	for _, n := range inv.Nodes {
		d.nodes[strings.ToLower(n.Name)] = n
	}
	for _, h := range inv.Hardware {
		var list []Plug
		for i := range h.NICs {
			if nic := &h.NICs[i]; nic.HCA {
				for j := range nic.Ports {
					list = append(list, Plug{NIC: nic, Port: j})
				}
			}
		}
		slices.SortStableFunc(list, func(a, b Plug) int { return cmp.Compare(a.NIC.Ports[a.Port].PCI, b.NIC.Ports[b.Port].PCI) })
		d.plugs[h] = list
	}
	return d
}

func (d described) plug(description string) (Plug, bool) {
	name, rest, _ := strings.Cut(hostName(description), " ")
	name, _, _ = strings.Cut(name, ".")
	n := d.nodes[strings.ToLower(name)]
	if n == nil || n.Hardware == nil {
		return Plug{}, false
	}
	var number int
	rest = strings.TrimSpace(rest)
	list := d.plugs[n.Hardware]
	if _, err := fmt.Sscanf(rest, "rail %d", &number); err == nil {
		for _, p := range list {
			if p.NIC.Fabric == d.f && p.NIC.Ports[p.Port].Rail == number {
				return Plug{n, p.NIC, p.Port}, true
			}
		}
		return Plug{}, false
	}
	if _, err := fmt.Sscanf(rest, "mlx5_%d", &number); err != nil || number < 0 || number >= len(list) || list[number].NIC.Fabric != d.f {
		return Plug{}, false
	}
	return Plug{n, list[number].NIC, list[number].Port}, true
}
