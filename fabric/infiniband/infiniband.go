// SPDX-License-Identifier: Apache-2.0

// Package infiniband is the fabric kind of InfiniBand: what its subnet manager
// takes of a fabric that is computed, and what one subnet can hold.
package infiniband

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/gocty"

	"github.com/ironrail/ironrail/fabric/topology"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Name is the kind's name in the language.
const Name = "infiniband"

// maxLIDs is the number of unicast local identifiers of one subnet, 0x0001 to
// 0xBFFF: each port of an HCA has one, each switch one for its port 0. Source:
// InfiniBand Architecture Specification volume 1, 4.1.3 (local identifiers).
const maxLIDs = 0xbfff

const lidCheck = "fabric.lids"

// Design computes the topology of a fabric.
func Design(inv *inventory.Inventory, f *inventory.Fabric) ([]*inventory.Switch, []*inventory.Cable, diag.List) {
	m := readManager(f.Value)
	return topology.Build(inv, f, topology.Options{
		Managers: m.runOn, ManagerPorts: m.ports, MaxAddresses: maxLIDs, AddressCheck: lidCheck, AddressName: "unicast LIDs", Kind: Name,
	})
}

// Check looks at the cables of a fabric, at who is in its partitions, and at the
// size of its subnet where no topology is computed.
func Check(inv *inventory.Inventory, b inventory.Block) diag.List {
	f := topology.Of(inv, b)
	if f == nil {
		return nil
	}
	found := append(topology.Check(inv, f), checkMembership(inv, f)...)
	if f.Topology != "" && f.Topology != "explicit" {
		return found // Design has counted
	}
	switches := 0
	for _, s := range inv.Switches {
		if s.Fabric == f {
			switches++
		}
	}
	if ports := topology.CountPorts(inv, f); ports+switches > maxLIDs {
		found.Add(lidCheck, f.Decl, "More ports than one subnet holds", fmt.Sprintf("One subnet of fabric %q has %d node ports and %d switches: %d unicast LIDs, and there are %d. Make several fabrics of it, such as one for each rail.", f.Name, ports, switches, ports+switches, maxLIDs))
	}
	return found
}

// subnetManager is the subnet_manager block.
type subnetManager struct {
	given   bool
	runOn   []string // names of controllers; the first is the master
	ports   int      // of leaves, that its hosts take
	engine  string   // "opensm" or "ufm"
	routing []string // engines, in the order in which they are tried; nil: what fits
}

// readManager reads the block out of the fabric's value; Load has checked its types.
func readManager(v cty.Value) (m subnetManager) {
	sm, given := inventory.Attribute(v, "subnet_manager")
	m.given, m.routing = given, readTexts(sm, "routing")
	if e, ok := inventory.Attribute(sm, "engine"); ok && e.Type() == cty.String {
		m.engine = e.AsString()
	}
	if n, ok := inventory.Attribute(sm, "ports"); ok && n.Type() == cty.Number {
		if err := gocty.FromCtyValue(n, &m.ports); err != nil {
			m.ports = 0
		}
	}
	list, ok := inventory.Attribute(sm, "run_on")
	if !ok || !list.CanIterateElements() {
		return m
	}
	for it := list.ElementIterator(); it.Next(); {
		_, e := it.Element()
		if _, name, ok := inventory.RefName(e); ok {
			m.runOn = append(m.runOn, name)
		}
	}
	return m
}
