// SPDX-License-Identifier: Apache-2.0

package cabling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// railPort is a port of a rail that no cable block names, with the switch that it
// hears.
type railPort struct {
	node *inventory.Node
	nic  *inventory.NIC
	port int
	on   string // name of the switch
}

func (p railPort) rail() int    { return p.nic.Ports[p.port].Rail }
func (p railPort) name() string { return fmt.Sprintf("%s/%s/%d", p.node.Name, p.nic.Name, p.port) }

// rails compares ports without a cable block: in a rail-optimised fabric rail r
// of all nodes of a unit is on one leaf, so that a port on another than most is
// crossed. Fewer than three that agree prove nothing.
func (a *atlas) rails(inv *inventory.Inventory, cables []Cable) (findings []stage.Finding) {
	given := map[string]bool{}
	for _, c := range cables {
		given[c.Name()] = true
	}
	for _, f := range inv.Fabrics {
		if f.Topology != "explicit" && f.Topology != "rail-optimized" {
			continue
		}
		for _, unit := range a.units(inv, f, given) {
			findings = append(findings, findCrossed(f, unit)...)
		}
	}
	return findings
}

// units lists the ports of a fabric that hear a switch, by scalable unit.
func (a *atlas) units(inv *inventory.Inventory, f *inventory.Fabric, given map[string]bool) [][]railPort {
	var units [][]railPort
	members := 0
	for _, n := range inv.Nodes {
		member := false
		if n.Hardware == nil {
			continue
		}
		unit := 0
		if f.UnitSize > 0 {
			unit = members / f.UnitSize
		}
		for i := range n.Hardware.NICs {
			nic := &n.Hardware.NICs[i]
			if nic.Fabric != f {
				continue
			}
			member = true
			for j, p := range nic.Ports {
				rp := railPort{node: n, nic: nic, port: j}
				heard, ok := a.heard[place{n.Name, p.PCI}]
				if !ok || given[rp.name()] {
					continue
				}
				if end, why := a.end(heard); why == "" {
					rp.on = end.Switch
					for len(units) <= unit {
						units = append(units, nil)
					}
					units[unit] = append(units[unit], rp)
				}
			}
		}
		if member {
			members++
		}
	}
	return units
}

// findCrossed finds the ports of a unit that are on another leaf than their rail; two
// of one node that are on each other's are one finding.
func findCrossed(f *inventory.Fabric, unit []railPort) (findings []stage.Finding) {
	leaf := majorityLeaves(unit)
	var wrong []railPort
	for _, p := range unit {
		if l := leaf[p.rail()]; l != "" && l != p.on {
			wrong = append(wrong, p)
		}
	}
	done := map[string]bool{}
	for _, p := range wrong {
		if done[p.name()] {
			continue
		}
		set := []railPort{p}
		if i := slices.IndexFunc(wrong, func(q railPort) bool {
			return q.node == p.node && q.rail() != p.rail() && !done[q.name()] && q.on == leaf[p.rail()] && p.on == leaf[q.rail()]
		}); i >= 0 {
			set = append(set, wrong[i])
		}
		finding := stage.Finding{Action: "Exchange the plugs at the node, or at the leaves" + again + "."}
		var what []string
		for _, q := range set {
			done[q.name()] = true
			finding.Suspects = append(finding.Suspects, stage.Suspect{Subject: subject.ID{Kind: subject.Link, Name: q.name()}, Part: q.nic.Ports[q.port].Panel})
			what = append(what, fmt.Sprintf("rail %d of %s is on %s, and rail %d of the other nodes is on %s", q.rail(), q.node.Name, q.on, q.rail(), leaf[q.rail()]))
			finding.Evidence = append(finding.Evidence, fmt.Sprintf("%s hears %s by LLDP", q.name(), q.on))
		}
		if len(set) == 1 {
			finding.Action = fmt.Sprintf("Plug %s into %s%s.", p.name(), leaf[p.rail()], again)
		}
		finding.Cause = fmt.Sprintf("fabric %s: %s", f.Name, strings.Join(what, "; "))
		findings = append(findings, finding)
	}
	return findings
}

// majorityLeaves returns the leaf of each rail: that of three ports at least, and of three
// quarters of those that were heard.
func majorityLeaves(unit []railPort) map[int]string {
	count, all := map[int]map[string]int{}, map[int]int{}
	for _, p := range unit {
		if count[p.rail()] == nil {
			count[p.rail()] = map[string]int{}
		}
		count[p.rail()][p.on]++
		all[p.rail()]++
	}
	leaf := map[int]string{}
	for rail, votes := range count {
		for name, n := range votes {
			if n >= 3 && 4*n >= 3*all[rail] {
				leaf[rail] = name
			}
		}
	}
	return leaf
}
