package floor

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Check holds the validations of a site against what can be measured, and against
// the hardware of the nodes that they are for.
func Check(inv *inventory.Inventory) diag.List {
	var found diag.List
	used := users(inv)
	for _, v := range inv.Validations {
		c := &check{v: v, users: used[v]}
		c.checkLimits()
		c.checkQuorum()
		c.checkAllReduce()
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

// users groups the nodes by validation and hardware, in the order of the nodes.
// Nodes for which an override lowers checks stand apart: what it accepts for them
// it does not accept for the others.
func users(inv *inventory.Inventory) map[*inventory.Validation][]*user {
	type key struct {
		v        *inventory.Validation
		h        *inventory.Hardware
		override *inventory.Override
	}
	all := map[*inventory.Validation][]*user{}
	seen := map[key]*user{}
	for _, n := range inv.Nodes {
		if n.Validation == nil || n.Hardware == nil {
			continue
		}
		k := key{v: n.Validation, h: n.Hardware}
		if n.Override != nil && len(n.Override.Allow) > 0 {
			k.override = n.Override
		}
		u := seen[k]
		if u == nil {
			u = &user{hardware: n.Hardware}
			seen[k] = u
			all[n.Validation] = append(all[n.Validation], u)
		}
		u.nodes = append(u.nodes, n.Name)
		u.units = u.units || n.ScalableUnit > 0 || n.Domain != "" || counted(n.Hardware)
	}
	return all
}

// counted reports whether a fabric of the chassis says how large its units are.
func counted(h *inventory.Hardware) bool {
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

// place is where an attribute stands, or its block's header.
func place(ranges map[string]hcl.Range, name string, decl hcl.Range) hcl.Range {
	if r, ok := ranges[name]; ok {
		return r
	}
	return decl
}

// checkLimits judges each limit block.
func (c *check) checkLimits() {
	for _, l := range c.v.Limits {
		m, ok := measureOf(l.Name)
		if !ok {
			c.add("limit.unknown", l.Decl, "Limit of nothing that is measured", "Nothing measures %q, so its limit would never be held.%s", l.Name, suggest(l.Name))
			continue
		}
		if c.checkForm(l, m) {
			c.checkLooser(l, m)
		}
	}
}

// suggest offers the nearest name, or all of them.
func suggest(name string) string {
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
		at := place(l.Ranges, side.name, l.Decl)
		switch {
		case side.q == nil:
		case !slices.Contains(m.Dimensions, side.q.Dimension):
			c.add("limit.dimension", at, "Limit in the wrong unit", "Limit %q is %s (%s); it is of %s, in %s.", l.Name, side.q, side.q.Dimension, m.What, example(m)).In(l.Decl)
			good = false
		case side.wrong && l.AtLeast != nil && l.AtMost != nil: // a band is odd, but it has its good side
		case side.wrong:
			c.add("limit.direction", at, "Limit on the wrong side", "Limit %q has %s alone, so that the worst hardware keeps it: of %s, %s is good. Write %s.", l.Name, side.name, m.What, better(m), other(side.name)).In(l.Decl)
			good = false
		}
	}
	return good
}

func example(m Measure) string {
	if m.AtMost {
		return `time, such as "5us"`
	}
	return `bytes or bits per second, such as "45GB/s" or "360Gbps"`
}

func better(m Measure) string {
	if m.AtMost {
		return "little"
	}
	return "much"
}

func other(side string) string {
	if side == "at_least" {
		return "at_most"
	}
	return "at_least"
}

// checkLooser compares a limit with the built-in floor for each chassis.
func (c *check) checkLooser(l inventory.MeasureLimit, m Measure) {
	if m.AtMost {
		if l.AtMost != nil && l.AtMost.Value > writeLatency && c.hardwareRDMA() {
			c.add("limit.looser", place(l.Ranges, "at_most", l.Decl), "Limit that faulty hardware keeps", "Limit %q is at most %s; good links take no more than 5us (azurehpc-health-checks). Write at_most = \"5us\".", l.Name, l.AtMost).In(l.Decl).Warn()
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
		if least, source := c.floorOf(l.Name, u.hardware); value < least {
			c.add("limit.looser", place(l.Ranges, "at_least", l.Decl), "Limit that faulty hardware keeps", "Limit %q is at least %s; good hardware %q gives %s or more (%s), so that a fault in between would be accepted. Write at_least = \"%s\".",
				l.Name, l.AtLeast, u.hardware.Name, unit.ByteRate(least), source, unit.ByteRate(least)).In(l.Decl).Also("the hardware", u.hardware.Decl).Of(u.nodes...).Warn()
		}
	}
}

// hardwareRDMA reports whether any chassis has RDMA in hardware.
func (c *check) hardwareRDMA() bool {
	return slices.ContainsFunc(c.users, func(u *user) bool { return rails(u.hardware) > 0 })
}

// floorOf is the least that good hardware gives, in bytes per second, and why; 0
// where nothing is known.
func (c *check) floorOf(measure string, h *inventory.Hardware) (float64, string) {
	switch measure {
	case WriteBandwidth:
		if slow := slowest(h); slow > 0 {
			return math.Floor(slow/8*wireShare/100/1e6) * 1e6, fmt.Sprintf("%d%% of %s", wireShare, unit.BitRate(slow))
		}
		return 0, ""
	case AllReduceBandwidth:
		return c.collective(h)
	}
	for _, g := range h.GPUs {
		if f, ok := gpuFloorOf(g, measure); ok {
			return float64(f.least), f.source
		}
	}
	return 0, ""
}

// collective is the floor of an all-reduce: the least of those of its scopes.
func (c *check) collective(h *inventory.Hardware) (float64, string) {
	a := c.v.AllReduce
	if a == nil || a.Engine == "mpi" {
		return 0, ""
	}
	least, source := math.Inf(1), ""
	lower := func(v float64, why string) {
		if v < least {
			least, source = v, why
		}
	}
	for _, scope := range a.Scope {
		known := false
		if scope == "node" {
			for _, g := range h.GPUs {
				if f, ok := gpuFloorOf(g, AllReduceBandwidth); ok && g.Count == 8 {
					lower(float64(f.least), f.source)
					known = true
				}
			}
		} else if wire := rails(h); wire > 0 {
			part := shareOf(h)
			lower(math.Floor(wire/8*float64(part.percent)/100/1e6)*1e6, fmt.Sprintf("%d%% of what its rails carry, %s; %s", part.percent, unit.BitRate(wire), part.source))
			known = true
		}
		if !known {
			return 0, ""
		}
	}
	if math.IsInf(least, 1) {
		return 0, ""
	}
	return least, source
}

// rails is the line rate of a chassis on the fabric where it has most, in bits
// per second; 0 where RDMA is in software or no speed is given.
func rails(h *inventory.Hardware) float64 {
	sum := map[*inventory.Fabric]float64{}
	most := 0.0
	for _, n := range h.NICs {
		if n.Fabric != nil && n.SoftwareRDMA == "" {
			sum[n.Fabric] += float64(n.Speed) * float64(len(n.Ports))
			most = max(most, sum[n.Fabric])
		}
	}
	return most
}

// slowest is the line rate of the slowest port on a fabric, in bits per second; 0
// where one is in software or no speed is given.
func slowest(h *inventory.Hardware) float64 {
	slow := math.Inf(1)
	for _, n := range h.NICs {
		if n.Fabric == nil {
			continue
		}
		if n.SoftwareRDMA != "" {
			return 0
		}
		slow = min(slow, float64(n.Speed))
	}
	if math.IsInf(slow, 1) {
		return 0
	}
	return slow
}

// nodes are all nodes of the validation.
func (c *check) nodes() (list []string) {
	for _, u := range c.users {
		list = append(list, u.nodes...)
	}
	return list
}

// checkQuorum asks that most of a group is judged.
func (c *check) checkQuorum() {
	q, nodes := float64(c.v.Quorum), c.nodes()
	if q > 0 && q <= 50 && len(nodes) > 2 { // half of two is one: there is no other way to say so
		c.add("validation.quorum", place(c.v.Ranges, "quorum", c.v.Decl), "Quorum of half or less", "With a quorum of %s a group is judged when half of it is missing, and what is left is compared with too few others to tell good from bad. Write 80%% or more.", c.v.Quorum).Of(nodes...).Warn()
	}
}

// checkAllReduce judges the all_reduce block against the chassis.
func (c *check) checkAllReduce() {
	a := c.v.AllReduce
	if a == nil {
		return
	}
	for _, u := range c.users {
		c.checkEngine(a, u)
		if slices.Contains(a.Scope, "unit") && !u.units {
			c.add("validation.scope", place(a.Ranges, "scope", a.Decl), "Scope of units that nobody counts", "Scope \"unit\" tests each scalable unit by itself, and nothing says which node of hardware %q is in which. Give its fabric unit_size, the racks scalable_unit, or the nodes a domain.", u.hardware.Name).In(a.Decl).Also("the hardware", u.hardware.Decl).Of(u.nodes...)
		}
	}
	c.checkFloor(a)
	if n := len(a.Sizes); n > 0 && a.Engine != "mpi" && a.Sizes[n-1] < 1<<30 {
		c.add("validation.sizes", place(a.Ranges, "sizes", a.Decl), "Sizes that measure latency", "The largest size is %s: below 1GiB an all-reduce of GPUs is bound by latency, and its bandwidth says little about the links. Write sizes = [\"8GiB\"].", a.Sizes[n-1]).In(a.Decl).Of(c.nodes()...).Warn()
	}
}

// checkFloor compares the floor with what good fabrics carry.
func (c *check) checkFloor(a *inventory.CollectiveTest) {
	part := collective
	for _, u := range c.users {
		if p := shareOf(u.hardware); p.percent < part.percent {
			part = p
		}
	}
	if a.Floor > 0 && float64(a.Floor) < float64(part.percent) {
		c.add("limit.looser", place(a.Ranges, "floor", a.Decl), "Limit that faulty hardware keeps", "Good fabrics carry %d%% of their links in an all-reduce (%s), and the floor is %s. Write floor = \"%d%%\".", part.percent, part.source, a.Floor, part.percent).In(a.Decl).Of(c.nodes()...).Warn()
	}
}

// engines are the vendors of GPUs by the engine that runs on them.
var engines = map[string]string{"nccl": "nvidia", "rccl": "amd"}

// checkEngine asks that the engine runs on the GPUs.
func (c *check) checkEngine(a *inventory.CollectiveTest, u *user) {
	want, gpus := engines[a.Engine], u.hardware.GPUs
	if want == "" {
		return
	}
	at := place(a.Ranges, "engine", a.Decl)
	if len(gpus) == 0 {
		c.add("validation.engine", at, "Engine without GPUs", "Engine %q runs on GPUs, and hardware %q has none. Write engine = \"mpi\", which tests host memory.", a.Engine, u.hardware.Name).In(a.Decl).Also("the hardware", u.hardware.Decl).Of(u.nodes...)
		return
	}
	for _, g := range gpus {
		if g.Vendor == want {
			return
		}
	}
	right := "nccl"
	if want == "nvidia" {
		right = "rccl"
	}
	c.add("validation.engine", at, "Engine of another vendor's GPUs", "Engine %q runs on GPUs of %s, and those of hardware %q are %s. Write engine = %q, or leave it out.", a.Engine, strings.ToUpper(want), u.hardware.Name, gpus[0].Model, right).
		In(a.Decl).Also("the GPUs", gpus[0].Decl).Of(u.nodes...)
}
