// SPDX-License-Identifier: Apache-2.0

package floor

import (
	"fmt"
	"math"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/fabric/topology"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Check holds the validations of a site against what can be measured, and against
// the hardware of the nodes that they are for.
func Check(inv *inventory.Inventory) diag.List {
	var found diag.List
	used := usersOf(inv)
	for _, v := range inv.Validations {
		c := &check{v: v, users: used[v]}
		c.checkLimits()
		c.checkQuorum()
		c.checkAllReduce()
		c.checkCoverage()
		found = append(found, c.found...)
	}
	return found
}

// user is a chassis with its nodes of one validation.
type user struct {
	hardware *inventory.Hardware
	nodes    []string
	units    bool // something counts their scalable units
}

// usersOf groups the nodes by validation and hardware, in the order of the nodes.
// Nodes for which an override lowers checks stand apart: what it accepts for them
// it does not accept for the others.
func usersOf(inv *inventory.Inventory) map[*inventory.Validation][]*user {
	type key struct {
		v        *inventory.Validation
		h        *inventory.Hardware
		override *inventory.Override
	}
	all := map[*inventory.Validation][]*user{}
	seen := map[key]*user{}
	units := CountUnits(inv)
	for _, n := range inv.Nodes {
		if n.Validation == nil || n.Hardware == nil {
			continue
		}
		k := key{v: n.Validation, h: n.Hardware}
		if n.Override.Lowers("limit.", "validation.") {
			k.override = n.Override
		}
		u := seen[k]
		if u == nil {
			u = &user{hardware: n.Hardware}
			seen[k] = u
			all[n.Validation] = append(all[n.Validation], u)
		}
		u.nodes = append(u.nodes, n.Name)
		u.units = u.units || units[n] > 0 || n.Domain != "" || isCounted(n.Hardware)
	}
	return all
}

// CountUnits says which scalable unit each node is in, by topology.UnitsOf on the fabric
// of its GPUs; nil where no test of the site asks for scope "unit".
func CountUnits(inv *inventory.Inventory) map[*inventory.Node]int {
	if !slices.ContainsFunc(inv.Validations, func(v *inventory.Validation) bool {
		return v.AllReduce != nil && slices.Contains(v.AllReduce.Scope, "unit")
	}) {
		return nil
	}
	return topology.UnitsOf(inv, MainFabric)
}

// isCounted reports whether a fabric of the chassis says how large its units are: one
// that could not be laid out has a diagnostic of its own.
func isCounted(h *inventory.Hardware) bool {
	return slices.ContainsFunc(h.NICs, func(n inventory.NIC) bool { return n.Fabric != nil && n.Fabric.UnitSize > 0 })
}

// check is the work on one validation.
type check struct {
	found diag.List
	v     *inventory.Validation
	users []*user
}

func (c *check) add(name string, at hcl.Range, summary, format string, args ...any) *diag.Diagnostic {
	return c.found.Add(name, at, summary, fmt.Sprintf(format, args...)).In(c.v.Decl)
}

// checkLimits judges each limit block.
func (c *check) checkLimits() {
	for _, l := range c.v.Limits {
		m, ok := measureOf(l.Name)
		if !ok {
			c.add("limit.unknown", l.Decl, "Limit of nothing that is measured", "Nothing measures %q, so its limit would never be held.%s", l.Name, suggestMeasure(l.Name))
			continue
		}
		if c.checkForm(l, m) {
			c.checkLooser(l, m)
		}
	}
}

// suggestMeasure offers the nearest name, or all of them.
func suggestMeasure(name string) string {
	var known []string
	for _, m := range Measures {
		known = append(known, m.Name)
	}
	if s := diag.DidYouMean(name, known); s != "" {
		return s
	}
	return " What can be measured is " + diag.Quoted(known) + "."
}

// checkForm asks for the dimension and the direction of the measure.
func (c *check) checkForm(l inventory.MeasureLimit, m Measure) bool {
	good := true
	for _, side := range []struct {
		name  string
		q     *unit.Quantity
		wrong bool // the side that says nothing of this measure
	}{{"at_least", l.AtLeast, m.AtMost}, {"at_most", l.AtMost, !m.AtMost}} {
		at := inventory.PlaceOf(l.Ranges, side.name, l.Decl)
		switch {
		case side.q == nil:
		case !slices.Contains(m.Dimensions, side.q.Dimension):
			c.add("limit.dimension", at, "Limit in the wrong unit", "Limit %q is %s (%s); it is of %s, in %s.", l.Name, side.q, side.q.Dimension, m.What, exampleOf(m)).In(l.Decl)
			good = false
		case side.wrong && l.AtLeast != nil && l.AtMost != nil: // a band is odd, but it has its good side
		case side.wrong:
			c.add("limit.direction", at, "Limit on the wrong side", "Limit %q has %s alone, so that the worst hardware keeps it: of %s, %s is good. Write %s.", l.Name, side.name, m.What, betterSide(m), otherSide(side.name)).In(l.Decl)
			good = false
		}
	}
	return good
}

func exampleOf(m Measure) string {
	if m.AtMost {
		return `time, such as "5us"`
	}
	return `bytes or bits per second, such as "45GB/s" or "360Gbps"`
}

func betterSide(m Measure) string {
	if m.AtMost {
		return "little"
	}
	return "much"
}

func otherSide(side string) string {
	if side == "at_least" {
		return "at_most"
	}
	return "at_least"
}

// checkLooser compares a limit with the built-in floor for each chassis.
func (c *check) checkLooser(l inventory.MeasureLimit, m Measure) {
	if m.AtMost {
		if l.Name == WriteLatency && l.AtMost != nil && l.AtMost.Value > writeLatency && c.hardwareRDMA() {
			c.add("limit.looser", inventory.PlaceOf(l.Ranges, "at_most", l.Decl), "Limit that faulty hardware keeps", "Limit %q is at most %s; good links take no more than 5us (azurehpc-health-checks). Write at_most = \"5us\".", l.Name, l.AtMost).In(l.Decl).Warn()
		}
		return
	}
	if l.AtLeast == nil {
		return
	}
	value := l.AtLeast.Value
	if l.AtLeast.Dimension == unit.LineRate {
		value /= 8
	}
	for _, u := range c.users {
		if most, f := wireMost(u.hardware); l.Name == WriteBandwidth && f != nil && value > most {
			c.add("limit.range", inventory.PlaceOf(l.Ranges, "at_least", l.Decl), "Limit that no hardware keeps", "Limit %q is at least %s; the wire of hardware %q leaves %s for what is written (%s). %s", l.Name, l.AtLeast, u.hardware.Name, unit.ByteRate(math.Floor(most/1e7)*1e7), describePackets(f), describeKeepable(f, value, most)).
				In(l.Decl).Also("the hardware", u.hardware.Decl).Also("the fabric", f.Decl).Of(u.nodes...)
			continue
		}
		if least, source := c.floorOf(l.Name, u.hardware); value < least {
			c.add("limit.looser", inventory.PlaceOf(l.Ranges, "at_least", l.Decl), "Limit that faulty hardware keeps", "Limit %q is at least %s; good hardware %q gives %s or more (%s), so that a fault in between would be accepted. Write at_least = \"%s\".",
				l.Name, l.AtLeast, u.hardware.Name, unit.ByteRate(least), source, unit.ByteRate(least)).In(l.Decl).Also("the hardware", u.hardware.Decl).Of(u.nodes...).Warn()
		}
	}
}

// describeKeepable says what to do about a limit above what the wire leaves: larger
// packets where these do, a lower limit where they do not.
func describeKeepable(f *inventory.Fabric, value, most float64) string {
	full := most / onWire(payloadOf(f), headersOf(f)) * onWire(fullPayload, headersOf(f))
	if value <= full {
		return fmt.Sprintf("Give fabric %q mtu = 9000, or lower the limit.", f.Name)
	}
	return "Lower the limit."
}

// hardwareRDMA reports whether any chassis has RDMA in hardware.
func (c *check) hardwareRDMA() bool {
	return slices.ContainsFunc(c.users, func(u *user) bool {
		wire, _ := railRate(u.hardware)
		return wire > 0
	})
}
