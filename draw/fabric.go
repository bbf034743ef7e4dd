// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/ironrail/ironrail/internal/natural"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Fabric is one fabric in numbers.
type Fabric struct {
	Name     string      `json:"name"`
	Kind     string      `json:"kind"`
	Topology string      `json:"topology"`
	Nodes    int         `json:"nodes"`
	Tiers    []*TierSet  `json:"tiers"` // from the nodes upwards: leaves, spines, cores
	Links    []*LinkSet  `json:"links"` // between the tiers
	Groups   []*GroupSet `json:"groups"`

	speed   unit.BitRate // of a link that does not say its own
	nodes   []*inventory.Node
	pairs   []pair // of switches, by lower and upper
	access  []access
	tier    map[*inventory.Switch]int
	members map[*inventory.Switch]*GroupSet
}

// TierSet is the switches of one tier.
type TierSet struct {
	Name     string `json:"name"`
	Switches int    `json:"switches"`
	Model    string `json:"model"`    // of the first; others may differ
	Unplaced int    `json:"unplaced"` // of them, those that stand in no rack

	list   []*inventory.Switch
	groups []*GroupSet
}

// GroupSet is switches that are drawn as one: the leaves of a scalable unit, the
// spines of a pod.
type GroupSet struct {
	Tier     string `json:"tier"`
	Name     string `json:"name"`
	Switches int    `json:"switches"`
	Nodes    int    `json:"nodes"` // that end in it
	Down     int    `json:"links_down"`
	Up       int    `json:"links_up"`

	key  groupKey
	list []*inventory.Switch
	ends map[*inventory.Node]bool
}

// LinkSet is the links between two tiers.
type LinkSet struct {
	From  string       `json:"from"` // "node", "leaf", "spine"
	To    string       `json:"to"`
	Count int          `json:"count"`
	Speed unit.BitRate `json:"speed,omitempty"` // of one link, such as "400Gbps"; 0: not known, or they differ
}

// pair is the links between two switches.
type pair struct {
	low, high *inventory.Switch
	n         int
}

// access is a link between a node and a switch.
type access struct {
	node *inventory.Node
	sw   *inventory.Switch
	rail int
}

// groupKey is what the switches of a group have in common.
type groupKey struct {
	pod, unit, plane int
	rack             *inventory.Rack
}

// tierNames are the tiers from the nodes upwards.
var tierNames = [...]string{"node", "leaf", "spine", "core"}

// tierName is a tier in words.
func tierName(t inventory.Tier, n int) string {
	switch {
	case t == inventory.NoTier:
		return pluralOf(n, "switch", "switches")
	case t == inventory.Leaf && n != 1:
		return "leaves"
	default:
		return string(t) + pluralOf(n, "", "s")
	}
}

// newFabrics sorts the switches and cables of a site by fabric.
func newFabrics(inv *inventory.Inventory) []*Fabric {
	out := make([]*Fabric, len(inv.Fabrics))
	at := map[*inventory.Fabric]int{}
	for i, f := range inv.Fabrics {
		at[f] = i
		out[i] = &Fabric{Name: f.Name, Kind: f.Kind, Topology: f.Topology, speed: f.Link, Tiers: []*TierSet{}, Links: []*LinkSet{}, Groups: []*GroupSet{},
			tier: map[*inventory.Switch]int{}, members: map[*inventory.Switch]*GroupSet{}}
	}
	cables := make([][]*inventory.Cable, len(out))
	for _, c := range inv.Cables {
		if i, ok := at[fabricOf(c)]; ok {
			cables[i] = append(cables[i], c)
		}
	}
	switches := make([][]*inventory.Switch, len(out))
	for _, s := range inv.Switches {
		if i, ok := at[s.Fabric]; ok {
			switches[i] = append(switches[i], s)
		}
	}
	nodes := nodesOf(inv, at)
	for i, f := range out {
		if f.Kind == "nvlink" {
			nodes[i] = nvlinkDomains(switches[i])
		}
		f.nodes, f.Nodes = nodes[i], len(nodes[i])
		f.build(switches[i], cables[i])
	}
	return out
}

// fabricOf is the fabric of a cable: its own, or that of one of its ends.
func fabricOf(c *inventory.Cable) *inventory.Fabric {
	if c.Fabric != nil {
		return c.Fabric
	}
	for _, e := range []*inventory.CableEnd{&c.From, &c.To} {
		if e.NIC != nil && e.NIC.Fabric != nil {
			return e.NIC.Fabric
		}
		if e.Switch != nil && e.Switch.Fabric != nil {
			return e.Switch.Fabric
		}
	}
	return nil
}

// nodesOf lists the nodes with a port on each fabric.
func nodesOf(inv *inventory.Inventory, at map[*inventory.Fabric]int) [][]*inventory.Node {
	ports := map[*inventory.Hardware][]int{}
	for _, h := range inv.Hardware {
		for i := range h.NICs {
			if f, ok := at[h.NICs[i].Fabric]; ok && !slices.Contains(ports[h], f) {
				ports[h] = append(ports[h], f)
			}
		}
	}
	out := make([][]*inventory.Node, len(at))
	for _, n := range inv.Nodes {
		for _, f := range ports[n.Hardware] {
			out[f] = append(out[f], n)
		}
	}
	return out
}

// nvlinkDomains returns the nodes of NVLink domains that stand in one rack with their
// switch trays: a backplane joins them, and no cable of the site.
func nvlinkDomains(switches []*inventory.Switch) []*inventory.Node {
	var out []*inventory.Node
	seen := map[*inventory.Rack]bool{}
	for _, s := range switches {
		if s.Rack == nil || seen[s.Rack] {
			continue
		}
		seen[s.Rack] = true
		for _, n := range s.Rack.Nodes {
			if n.Domain != "" {
				out = append(out, n)
			}
		}
	}
	return out
}

// build finds tiers, groups and links.
func (f *Fabric) build(switches []*inventory.Switch, cables []*inventory.Cable) {
	f.findTiers(switches, cables)
	f.findGroups(switches)
	links := map[[2]int]*LinkSet{}
	pairs := map[[2]*inventory.Switch]int{}
	for _, c := range cables {
		low, high := c.From, c.To
		if f.level(low) > f.level(high) {
			low, high = high, low
		}
		if high.Switch == nil {
			continue // between two nodes: no map shows it
		}
		speed := c.Speed
		if speed == 0 {
			speed = f.speed
		}
		f.countLink(links, f.level(low), f.level(high), speed)
		if g := f.members[high.Switch]; g != nil {
			g.Down++
			if low.Node != nil {
				g.ends[low.Node] = true
			}
		}
		if low.Switch == nil {
			f.access = append(f.access, access{low.Node, high.Switch, railOf(c.Rail, low)})
			continue
		}
		if g := f.members[low.Switch]; g != nil {
			g.Up++
		}
		pairs[[2]*inventory.Switch{low.Switch, high.Switch}]++
	}
	for p, n := range pairs {
		f.pairs = append(f.pairs, pair{p[0], p[1], n})
	}
	slices.SortFunc(f.pairs, func(a, b pair) int {
		return cmp.Or(natural.Compare(a.low.Name, b.low.Name), natural.Compare(a.high.Name, b.high.Name))
	})
	slices.SortFunc(f.Links, func(a, b *LinkSet) int {
		return cmp.Or(cmp.Compare(slices.Index(tierNames[:], a.From), slices.Index(tierNames[:], b.From)), cmp.Compare(slices.Index(tierNames[:], a.To), slices.Index(tierNames[:], b.To)))
	})
	if f.Kind == "nvlink" {
		for _, n := range f.nodes {
			for _, g := range f.Groups {
				if g.key.rack == n.Rack {
					g.ends[n] = true
				}
			}
		}
	}
	for _, g := range f.Groups {
		g.Nodes = len(g.ends)
	}
}

func (f *Fabric) countLink(links map[[2]int]*LinkSet, low, high int, speed unit.BitRate) {
	key := [2]int{low, high}
	l := links[key]
	if l == nil {
		l = &LinkSet{From: tierNames[low], To: tierNames[high], Speed: speed}
		links[key] = l
		f.Links = append(f.Links, l)
	}
	l.Count++
	if l.Speed != speed {
		l.Speed = 0
	}
}

// level is the tier of a cable's end: 0 is a node, or what the site does not
// know.
func (f *Fabric) level(e inventory.CableEnd) int {
	if e.Switch == nil {
		return 0
	}
	return f.tier[e.Switch]
}

// railOf is the rail of a link: its own, or that of the port of its node.
func railOf(rail int, e inventory.CableEnd) int {
	if rail < 0 && e.NIC != nil && e.Port >= 0 && e.Port < len(e.NIC.Ports) {
		return e.NIC.Ports[e.Port].Rail
	}
	return rail
}

// findTiers collects the switches of each tier that has any, from the leaves up.
func (f *Fabric) findTiers(switches []*inventory.Switch, cables []*inventory.Cable) {
	f.assignTiers(switches, cables)
	for level := 1; level <= 3; level++ {
		t := &TierSet{Name: tierNames[level]}
		for _, s := range switches {
			if f.tier[s] != level {
				continue
			}
			t.list = append(t.list, s)
			if s.Rack == nil {
				t.Unplaced++
			}
		}
		if t.Switches = len(t.list); t.Switches == 0 {
			continue
		}
		slices.SortFunc(t.list, func(a, b *inventory.Switch) int {
			return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.ScalableUnit, b.ScalableUnit), cmp.Compare(a.Plane, b.Plane), cmp.Compare(a.Rail, b.Rail), natural.Compare(a.Name, b.Name))
		})
		t.Model = t.list[0].Model
		f.Tiers = append(f.Tiers, t)
	}
}

// assignTiers takes the tiers that switches have; another switch is a leaf when a
// node ends in it, else one above the lowest of its neighbours.
func (f *Fabric) assignTiers(switches []*inventory.Switch, cables []*inventory.Cable) {
	for _, s := range switches {
		f.tier[s] = map[inventory.Tier]int{inventory.Leaf: 1, inventory.Spine: 2, inventory.Core: 3}[s.Tier]
	}
	for step := range 3 {
		for _, c := range cables {
			for _, e := range [][2]inventory.CableEnd{{c.From, c.To}, {c.To, c.From}} {
				s := e[1].Switch
				if s == nil || f.tier[s] != 0 {
					continue
				}
				if below := f.level(e[0]); below == step && (below > 0 || e[0].Switch == nil) {
					f.tier[s] = step + 1
				}
			}
		}
	}
	for _, s := range switches {
		if f.tier[s] == 0 {
			f.tier[s] = 1
		}
	}
}

// mostGroups is how many groups of a tier a map can show.
const mostGroups = 72

// findGroups groups the switches of each tier: leaves by scalable unit or rack,
// spines by pod, all by plane where there is nothing else. Too many groups are
// grouped by pod.
func (f *Fabric) findGroups(switches []*inventory.Switch) {
	for _, t := range f.Tiers {
		for _, coarse := range []bool{false, true} {
			t.groups = groupsOf(t, coarse)
			if len(t.groups) <= mostGroups {
				break
			}
		}
		for _, g := range t.groups {
			for _, s := range g.list {
				f.members[s] = g
			}
		}
		f.Groups = append(f.Groups, t.groups...)
	}
}

func groupsOf(t *TierSet, coarse bool) []*GroupSet {
	byKey := map[groupKey]*GroupSet{}
	var out []*GroupSet
	for _, s := range t.list {
		k := keyOf(t.Name, s, coarse)
		g := byKey[k]
		if g == nil {
			g = &GroupSet{Tier: t.Name, Name: k.name(t.Name), key: k, ends: map[*inventory.Node]bool{}}
			byKey[k] = g
			out = append(out, g)
		}
		g.list = append(g.list, s)
		g.Switches++
	}
	if coarse && len(out) > mostGroups {
		return mergeGroups(t, out)
	}
	return out
}

// keyOf says which group a switch belongs to.
func keyOf(tier string, s *inventory.Switch, coarse bool) groupKey {
	k := groupKey{pod: s.Pod}
	switch {
	case tier != "leaf":
		k.plane = s.Plane + 1
	case coarse && s.Pod > 0:
	case s.ScalableUnit > 0:
		k.unit = s.ScalableUnit
	case s.Rack != nil:
		k.rack, k.pod = s.Rack, 0
	}
	return k
}

func (k groupKey) name(tier string) string {
	switch {
	case k.unit > 0:
		return "unit " + strconv.Itoa(k.unit)
	case k.rack != nil:
		return "rack " + k.rack.Name
	}
	name := tierName(inventory.Tier(tier), 2)
	if k.pod > 0 {
		name = "pod " + strconv.Itoa(k.pod) + " " + name
	}
	if k.plane > 0 {
		name += " of plane " + strconv.Itoa(k.plane-1)
	}
	return name
}

// mergeGroups puts neighbouring groups together until the map can show them.
func mergeGroups(t *TierSet, groups []*GroupSet) []*GroupSet {
	size := (len(groups) + mostGroups - 1) / mostGroups
	var out []*GroupSet
	for _, part := range cutChunks(groups, size) {
		g := &GroupSet{Tier: t.Name, Name: part[0].Name, ends: map[*inventory.Node]bool{}}
		if len(part) > 1 {
			g.Name += " to " + part[len(part)-1].Name
		}
		for _, p := range part {
			g.list = append(g.list, p.list...)
			g.Switches += p.Switches
		}
		out = append(out, g)
	}
	return out
}
