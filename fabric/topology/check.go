// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Check looks at the cables of a fabric, given or computed: rails that do not end
// on their leaf, leaves with unequal links to their spines, over-subscription, two
// rails of a node on one leaf, ports without a cable, and halves of splitters. A
// fabric without cables has nothing to find. It is linear in the cables.
func Check(inv *inventory.Inventory, f *inventory.Fabric) diag.List {
	v := viewOf(inv, f)
	if f.Topology != "" && f.Topology != "explicit" && !slices.ContainsFunc(v.cables, func(e edge) bool { return e.cable.Computed() }) {
		return nil // Build has said why
	}
	if !slices.ContainsFunc(v.cables, func(e edge) bool { return e.node != nil }) {
		return nil
	}
	k := &checker{view: v, inv: inv, f: f}
	k.homes()
	k.railLeaf()
	k.sharedLeaf()
	k.unconnected()
	k.unequal()
	k.ratio()
	k.splitters()
	return k.found
}

// checker is one look at a fabric.
type checker struct {
	*view
	inv   *inventory.Inventory
	f     *inventory.Fabric
	found diag.List
	nodes []home // of nodes with ports on the fabric, in the order of the site
}

// home is where the rails of a node end.
type home struct {
	node    *inventory.Node
	outlets []outlet
	edges   []*edge // by rail; nil: no cable. Of several planes the first
}

// fault is one thing that a check found.
type fault struct {
	text  string
	at    hcl.Range
	nodes []string
}

// oneByOne is how many findings of a check are shown apart; more are one finding.
const oneByOne = 5

// report turns what a check found into findings. advice ends each.
func (k *checker) report(check, summary, advice string, faults []fault) (first int) {
	first = len(k.found)
	if len(faults) <= oneByOne {
		for _, x := range faults {
			k.found.Add(check, x.at, summary, k.sentence(x.text)+advice).Also("the fabric", k.f.Decl).Of(x.nodes...)
		}
		return first
	}
	var nodes []string
	for _, x := range faults {
		nodes = append(nodes, x.nodes...)
	}
	var some []string
	for _, x := range faults[:3] {
		some = append(some, x.text)
	}
	text := fmt.Sprintf("%s; and so for %d more.", strings.Join(some, "; "), len(faults)-3)
	k.found.Add(check, faults[0].at, summary, k.sentence(strings.TrimSuffix(text, "."))+advice).Also("the fabric", k.f.Decl).Of(nodes...)
	return first
}

func (k *checker) sentence(text string) string {
	return fmt.Sprintf("In fabric %q %s. ", k.f.Name, text)
}

// homes finds for each node where its rails end.
func (k *checker) homes() {
	of := map[*inventory.Hardware][]outlet{}
	at := map[*inventory.Node]int{}
	rails := max(k.f.Rails, 1)
	for _, n := range k.inv.Nodes {
		if n.Hardware == nil {
			continue
		}
		list, known := of[n.Hardware]
		if !known {
			list = slices.DeleteFunc(listOutlets(n.Hardware, k.f), func(o outlet) bool { return o.rail >= rails })
			of[n.Hardware] = list
		}
		if len(list) > 0 {
			at[n] = len(k.nodes)
			k.nodes = append(k.nodes, home{node: n, outlets: list})
		}
	}
	slab := make([]*edge, len(k.nodes)*rails)
	for i := range k.nodes {
		k.nodes[i].edges = slab[i*rails : (i+1)*rails]
	}
	for i := range k.cables {
		e := &k.cables[i]
		if e.node == nil || e.port >= len(e.nic.Ports) {
			continue
		}
		rail := e.nic.Ports[e.port].Rail
		h, ok := at[e.node]
		if ok && rail >= 0 && rail < rails && k.nodes[h].edges[rail] == nil {
			k.nodes[h].edges[rail] = e
		}
	}
}

// sharedLeaf warns of two rails of a node on one leaf: one switch takes both
// away, and what rails are for is lost. A rule that means it is not warned of.
func (k *checker) sharedLeaf() {
	if k.f.Topology == "top-of-rack" || k.f.Topology == "fat-tree" {
		return
	}
	var faults []fault
	for _, h := range k.nodes {
		for r, e := range h.edges {
			if e == nil {
				continue
			}
			if s := slices.IndexFunc(h.edges[:r], func(o *edge) bool { return o != nil && o.low == e.low }); s >= 0 {
				faults = append(faults, fault{fmt.Sprintf("rails %d and %d of %s both end on %s", s, r, h.node.Name, e.low.Name), e.cable.Place(e.end), []string{h.node.Name}})
				break
			}
		}
	}
	first := k.report("fabric.shared-leaf", "Two rails of a node on one leaf", "One leaf that fails takes both rails away. Give each rail a leaf of its own where there are enough.", faults)
	for i := first; i < len(k.found); i++ {
		k.found[i].Warn()
	}
}

// unconnected reports ports of rails without a cable, where others have one.
func (k *checker) unconnected() {
	var faults []fault
	for _, h := range k.nodes {
		var none []string
		for _, o := range h.outlets {
			if h.edges[o.rail] == nil {
				none = append(none, inventory.CableEnd{Node: h.node, NIC: o.nic, Port: o.port}.String())
			}
		}
		if len(none) > 0 {
			faults = append(faults, fault{diag.Few(none, len(none)) + " has no cable", h.node.Decl, []string{h.node.Name}})
		}
	}
	k.report("fabric.unconnected", "Rail without a cable", "Add its cable block, or take the port out of the hardware.", faults)
}

// ratio reports leaves with more speed down than the fabric allows for what goes
// up.
func (k *checker) ratio() {
	limit := max(k.f.Oversubscription, 1)
	var faults []fault
	for _, s := range k.switches {
		if s.tier == inventory.Leaf && s.up > 0 && s.down > s.up*limit*(1+1e-9) {
			faults = append(faults, fault{fmt.Sprintf("leaf %s has %.3g times as much speed down to nodes as up to spines", s.Name, s.down/s.up), s.Decl, nil})
		}
	}
	k.report("fabric.oversubscription", "Leaf over-subscribed", fmt.Sprintf("The fabric allows %.3g. Add uplinks, or say oversubscription where less is enough.", limit), faults)
}

// unequal reports leaves that have not the same number of links to each of their
// spines: what is spread evenly over unequal ways is held up by the narrowest.
func (k *checker) unequal() {
	type area struct{ plane, pod int }
	reach := map[area]int{}
	links := map[*vertex]map[*vertex]int{}
	for _, s := range k.switches {
		if s.tier != inventory.Leaf {
			continue
		}
		count := map[*vertex]int{}
		for _, up := range s.spines {
			count[up]++
		}
		links[s] = count
		a := area{s.Plane, s.Pod}
		reach[a] = max(reach[a], len(count))
	}
	var faults []fault
	for _, s := range k.switches {
		count, most := links[s], reach[area{s.Plane, s.Pod}]
		if s.tier != inventory.Leaf || most == 0 {
			continue
		}
		if len(count) < most {
			faults = append(faults, fault{fmt.Sprintf("leaf %s is linked to fewer spines than others, %d and not %d", s.Name, len(count), most), s.Decl, nil})
			continue
		}
		low, high := s.spines[0], s.spines[0]
		for _, up := range s.spines {
			if count[up] < count[low] {
				low = up
			}
			if count[up] > count[high] {
				high = up
			}
		}
		if count[low] != count[high] {
			faults = append(faults, fault{fmt.Sprintf("leaf %s has %d links to %s and %d to %s", s.Name, count[high], high.Name, count[low], low.Name), s.Decl, nil})
		}
	}
	k.report("fabric.unequal-spines", "Unequal links to spines", "Give each leaf the same number of links to each spine.", faults)
}
