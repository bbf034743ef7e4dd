// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/mlxconfig"
)

// planted is one fault, as a faults file has it.
type planted struct{ Kind, Node, With, PDU, Shelf, Port, GPU, Switch, End string }

// pairs are its attributes in the order of files.
func (f planted) pairs() (list [][2]string) {
	for _, p := range [][2]string{{"node", f.Node}, {"with", f.With}, {"pdu", f.PDU}, {"shelf", f.Shelf}, {"port", f.Port}, {"gpu", f.GPU}, {"switch", f.Switch}, {"end", f.End}} {
		if p[1] != "" {
			list = append(list, p)
		}
	}
	return list
}

// block is the fault in a faults file.
func (f planted) block() string {
	var b strings.Builder
	fmt.Fprintf(&b, "fault %q {\n", f.Kind)
	for _, p := range f.pairs() {
		fmt.Fprintf(&b, "  %s = %q\n", p[0], p[1])
	}
	return b.String() + "}\n"
}

// argument is the fault of --fault.
func (f planted) argument() string {
	words := []string{"kind=" + f.Kind}
	for _, p := range f.pairs() {
		words = append(words, p[0]+"="+p[1])
	}
	return strings.Join(words, ",")
}

// meets reports whether two faults share a node, a switch or a PDU, or are of one kind
// that is of no node.
func (f planted) meets(o planted) bool {
	for _, n := range []string{f.Node, f.With} {
		if n != "" && (n == o.Node || n == o.With) {
			return true
		}
	}
	return f.Node == "" && o.Node == "" && f.Kind == o.Kind
}

// place draws a place of a kind of fault in a site; false: it has none.
type place func(*inventory.Inventory, *rand.Rand) (planted, bool)

// someNode draws a node.
func someNode(inv *inventory.Inventory, lot *rand.Rand, fits func(*inventory.Node) bool) *inventory.Node {
	var list []*inventory.Node
	for _, n := range inv.Nodes {
		if n.Hardware != nil && !n.Retired && fits(n) {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[lot.IntN(len(list))]
}

// anyNode is the place of what is of a node.
func anyNode(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
	n := someNode(inv, lot, func(*inventory.Node) bool { return true })
	if n == nil {
		return planted{}, false
	}
	return planted{Node: n.Name}, true
}

// nodeThat is the place of what is of a node of which something holds.
func nodeThat(fits func(*inventory.Node) bool) place {
	return func(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
		n := someNode(inv, lot, fits)
		if n == nil {
			return planted{}, false
		}
		return planted{Node: n.Name}, true
	}
}

// The places of what is of Secure Boot, and of the certificate for kernel modules.
var (
	secureNode = nodeThat(func(n *inventory.Node) bool { return n.Hardware.SecureBoot })
	keyNode    = nodeThat(kinds.NeedSigned)
	// taggedNode is one whose boot network has a VLAN at its port.
	taggedNode = nodeThat(func(n *inventory.Node) bool { _, tagged := n.BootVLAN(); return tagged })
)

// anyGPU is the place of what is of a GPU; without NVLink where that is not asked for.
func anyGPU(links bool) place {
	return func(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
		n := someNode(inv, lot, func(n *inventory.Node) bool {
			return n.Hardware.GPUCount() > 0 && (!links || slices.ContainsFunc(n.Hardware.GPUs, func(g inventory.GPU) bool {
				return g.Vendor == "nvidia" && (g.Interconnect == "nvlink" || g.Interconnect == "nvswitch")
			}))
		})
		if n == nil {
			return planted{}, false
		}
		return planted{Node: n.Name, GPU: strconv.Itoa(lot.IntN(n.Hardware.GPUCount()))}, true
	}
}

// anyGPUNode is the place of what is of a node with GPUs.
func anyGPUNode(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
	f, ok := anyGPU(false)(inv, lot)
	f.GPU = ""
	return f, ok
}

// domainNode is the place of what is of a node whose NVLink domain spans nodes.
func domainNode(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
	n := someNode(inv, lot, func(n *inventory.Node) bool { return n.Domain != "" })
	if n == nil {
		return planted{}, false
	}
	return planted{Node: n.Name}, true
}

// port is a port of a node on a fabric, with the switch at its far end.
type port struct {
	node      *inventory.Node
	name, far string
	pci       string
	rail      int
	kind      string // of the fabric
	lossless  bool   // the fabric says which priorities pause
	set       bool   // its link type is set
}

// ports lists the cabled ports of nodes on fabrics.
func ports(inv *inventory.Inventory) (list []port) {
	for _, c := range inv.Cables {
		at, far := c.NodeEnd()
		if at.Node == nil || at.NIC == nil || at.NIC.Fabric == nil || far.Switch == nil || at.Port >= len(at.NIC.Ports) {
			continue
		}
		p := at.NIC.Ports[at.Port]
		_, lossless := inventory.Attribute(at.NIC.Fabric.Value, "lossless")
		list = append(list, port{at.Node, fmt.Sprintf("%s/%d", at.NIC.Name, at.Port), far.Switch.Name, p.PCI, p.Rail, at.NIC.Fabric.Kind, lossless, isVPI(at.NIC)})
	}
	return list
}

// isVPI reports whether the site gives the link type of a card that can be either.
func isVPI(n *inventory.NIC) bool {
	m, _ := mlxconfig.FindModel(n.Model)
	return n.LinkType != "" && m.VPI
}

// anyPort is the place of what is of a port.
func anyPort(fits func(port) bool) place {
	return func(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
		list := slices.DeleteFunc(ports(inv), func(p port) bool { return !fits(p) })
		if len(list) == 0 {
			return planted{}, false
		}
		p := list[lot.IntN(len(list))]
		return planted{Node: p.node.Name, Port: p.name}, true
	}
}

// isPort takes every port, isLossless those whose fabric says which priorities pause, isSet
// those whose link type is set, and isEthernet those that are not on InfiniBand.
func isPort(port) bool       { return true }
func isLossless(p port) bool { return p.lossless }
func isSet(p port) bool      { return p.set }
func isEthernet(p port) bool { return p.kind != "infiniband" }

// eitherEnd is the place of what is of one end of a port's cable: the node's, or the switch's.
func eitherEnd(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
	f, ok := anyPort(isLossless)(inv, lot)
	if lot.IntN(2) == 1 {
		f.End = "switch"
	}
	return f, ok
}

// twoPlugs is the place of two plugs in each other's port of one leaf.
func twoPlugs(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
	f, ok := anyPort(isPort)(inv, lot)
	if !ok {
		return f, false
	}
	all := ports(inv)
	i := slices.IndexFunc(all, func(p port) bool { return p.node.Name == f.Node && p.name == f.Port })
	var others []string
	for _, p := range all {
		if p.far == all[i].far && p.name == f.Port && p.node != all[i].node {
			others = append(others, p.node.Name)
		}
	}
	if len(others) == 0 {
		return f, false
	}
	f.With = others[lot.IntN(len(others))]
	return f, true
}

// twoNodes is the place of what is exchanged between two nodes.
func twoNodes(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
	a, ok := anyNode(inv, lot)
	b, _ := anyNode(inv, lot)
	for tries := 0; ok && b.Node == a.Node && tries < 100; tries++ {
		b, _ = anyNode(inv, lot)
	}
	a.With = b.Node
	return a, ok && a.With != a.Node
}

// trunk is the place of what is of a cable between two switches.
func trunk(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
	var list []string
	for _, c := range inv.Cables {
		if c.From.Switch != nil && c.To.Switch != nil && c.Fabric != nil && c.Fabric.Kind == "infiniband" {
			list = append(list, c.From.String())
		}
	}
	if len(list) == 0 {
		return planted{}, false
	}
	return planted{Port: list[lot.IntN(len(list))]}, true
}

// crossedTrunks lists the cables up from leaves that something crosses.
func crossedTrunks(inv *inventory.Inventory) (list []*inventory.Cable) {
	crossed := map[string]bool{}
	for _, of := range leavesOfRails(inv) {
		for name := range of {
			crossed[name] = crossed[name] || len(of) > 1
		}
	}
	for _, c := range inv.Cables {
		if c.From.Switch != nil && c.To.Switch != nil && crossed[c.From.Switch.Name] {
			list = append(list, c)
		}
	}
	return list
}

// anyTrunk is the place of what is of a cable between switches of any kind of fabric.
func anyTrunk(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
	list := crossedTrunks(inv)
	if len(list) == 0 {
		return planted{}, false
	}
	return planted{Port: list[lot.IntN(len(list))].From.String()}, true
}

// spareTrunk is the place of a cable between switches without which others connect the same two, where somebody
// says that it has no link.
func spareTrunk(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
	type pair struct{ from, to *inventory.Switch }
	count := map[pair]int{}
	for _, c := range inv.Cables {
		count[pair{c.From.Switch, c.To.Switch}]++
	}
	var list []string
	for _, c := range inv.Cables {
		if c.From.Switch != nil && c.To.Switch != nil && count[pair{c.From.Switch, c.To.Switch}] > 1 && isCounted(c.From.Switch) && isCounted(c.To.Switch) {
			list = append(list, c.From.String())
		}
	}
	if len(list) == 0 {
		return planted{}, false
	}
	return planted{Port: list[lot.IntN(len(list))]}, true
}

// spine is the place of what is of a spine.
func spine(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
	list := crossedTrunks(inv)
	if len(list) == 0 {
		return planted{}, false
	}
	return planted{Switch: list[lot.IntN(len(list))].To.Switch.Name}, true
}

// leaf is the place of what is of a leaf that something crosses: rails of nodes on
// several leaves.
func leaf(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
	leaves := leavesOfRails(inv)
	crossed := map[string]bool{}
	for _, of := range leaves {
		for name := range of {
			crossed[name] = crossed[name] || len(of) > 1
		}
	}
	list := slices.DeleteFunc(slices.Sorted(maps.Keys(crossed)), func(name string) bool { return !crossed[name] })
	if len(list) == 0 {
		return planted{}, false
	}
	return planted{Switch: list[lot.IntN(len(list))]}, true
}

// leavesOfRails are the leaves of each rail of a fabric.
func leavesOfRails(inv *inventory.Inventory) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, p := range ports(inv) {
		rail := fmt.Sprint(p.kind, p.rail)
		if all[rail] == nil {
			all[rail] = map[string]bool{}
		}
		all[rail][p.far] = true
	}
	return all
}

// pdu is the place of what is of a PDU.
func pdu(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
	var list []string
	for _, r := range inv.Racks {
		for _, p := range r.PDUs {
			if p.Control != nil { // nobody knows of one that cannot be asked
				list = append(list, p.Name)
			}
		}
		for _, s := range r.Shelves { // but by the shelf that it feeds
			if s.Control != nil && len(s.Feeds) > 0 {
				list = append(list, s.Feeds[0].PDU.Name)
			}
		}
	}
	if len(list) == 0 {
		return planted{}, false
	}
	return planted{PDU: list[lot.IntN(len(list))]}, true
}

// shelf is the place of what is of a power shelf that can be read.
func shelf(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
	var list []string
	for _, r := range inv.Racks {
		for _, s := range r.Shelves {
			if s.Control != nil {
				list = append(list, s.Name)
			}
		}
	}
	if len(list) == 0 {
		return planted{}, false
	}
	return planted{Shelf: list[lot.IntN(len(list))]}, true
}

// onInfiniBand is the place of what is of a site with InfiniBand, and of one of its switches.
func onInfiniBand(ofSwitch bool) place {
	return func(inv *inventory.Inventory, lot *rand.Rand) (planted, bool) {
		var list []string
		for _, s := range inv.Switches {
			if s.Fabric != nil && s.Fabric.Kind == "infiniband" {
				list = append(list, s.Name)
			}
		}
		if len(list) == 0 || !ofSwitch {
			return planted{}, len(list) > 0
		}
		return planted{Switch: list[lot.IntN(len(list))]}, true
	}
}

// nowhere is the place of what is of the controller.
func nowhere(*inventory.Inventory, *rand.Rand) (planted, bool) { return planted{}, true }
