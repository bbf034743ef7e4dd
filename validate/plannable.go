// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/target"
)

// Plannable returns what of a validation block of a site this stage can test, and
// the names of the parts that it cannot test yet: "burn_in", "pair", "all_reduce",
// "limit gpu.hbm_copy". nodes are those that it applies to. Without rails no test
// between nodes can be. The block itself is not changed, and is returned when
// nothing is missing. Parts that are wrong stay in, so that a plan says what is
// wrong with them.
func Plannable(inv *inventory.Inventory, v *inventory.Validation, nodes []*inventory.Node, rails bool) (*inventory.Validation, []string) {
	bare := inventory.Validation{Name: v.Name, Quorum: v.Quorum, Decl: v.Decl}
	rest, units := *v, floor.CountUnits(inv)
	var left []string
	drop := func(name string, part inventory.Validation, lost bool) bool {
		if lost || stage.HasOnlyNotImplemented(checkGroup(target.Group{Validation: &part, Nodes: nodes, Units: units})) {
			left = append(left, name)
			return true
		}
		return false
	}
	if part := bare; v.BurnIn > 0 {
		part.BurnIn = v.BurnIn
		if drop("burn_in", part, false) {
			rest.BurnIn = unit.Duration(0)
		}
	}
	if part := bare; v.Pair != nil {
		part.Pair = v.Pair
		if drop("pair", part, !rails) {
			rest.Pair = nil
		}
	}
	if part := bare; v.AllReduce != nil {
		part.AllReduce = v.AllReduce
		if drop("all_reduce", part, !rails) {
			rest.AllReduce = nil
		}
	}
	rest.Limits = nil
	for _, l := range v.Limits {
		part := bare
		part.Limits = []inventory.MeasureLimit{l}
		if !drop("limit "+l.Name, part, !rails && !withinNode(l.Name)) {
			rest.Limits = append(rest.Limits, l)
		}
	}
	if len(left) == 0 {
		return v, nil
	}
	return &rest, left
}

// withinNode reports whether a limit is of what a node does by itself.
func withinNode(limit string) bool {
	c := checkMeasuring(limit)
	return c != nil && c.Scope == target.EachNode
}
