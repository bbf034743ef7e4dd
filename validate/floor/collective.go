// SPDX-License-Identifier: Apache-2.0

package floor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

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
		c.add("validation.quorum", inventory.PlaceOf(c.v.Ranges, "quorum", c.v.Decl), "Quorum of half or less", "With a quorum of %s a group is judged when half of it is missing, and what is left is compared with too few others to tell good from bad. Write 80%% or more.", c.v.Quorum).Of(nodes...).Warn()
	}
}

// checkCoverage asks for a test that loads each fabric of a chassis: a cable that carries
// nothing makes no error.
func (c *check) checkCoverage() {
	if c.v.Pair != nil {
		return
	}
	said := map[*inventory.Fabric]bool{}
	for _, u := range c.users {
		for _, nic := range u.hardware.NICs {
			f := nic.Fabric
			if f == nil || said[f] || nic.SoftwareRDMA != "" || c.v.AllReduce.BetweenGPUs() && f == MainFabric(u.hardware) {
				continue
			}
			said[f] = true
			c.add("validation.untested", c.v.Decl, "Fabric that no test loads", "Nodes of hardware %q are accepted without a byte over their ports of fabric %q: a bad cable or a wrong setting of it is not seen. Add pair {}, which writes over every port of every fabric.", u.hardware.Name, f.Name).Also("the fabric", f.Decl).Of(u.nodes...).Warn()
		}
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
			c.add("validation.scope", inventory.PlaceOf(a.Ranges, "scope", a.Decl), "Scope of units that nobody counts", "Scope \"unit\" tests each scalable unit by itself, and nothing says which node of hardware %q is in which. Give its fabric unit_size, the racks scalable_unit, or the nodes a domain.", u.hardware.Name).In(a.Decl).Also("the hardware", u.hardware.Decl).Of(u.nodes...)
		}
	}
	c.checkFloor(a)
	if n := len(a.Sizes); n > 0 && a.Engine != "mpi" && a.Sizes[n-1] < 1<<30 {
		c.add("validation.sizes", inventory.PlaceOf(a.Ranges, "sizes", a.Decl), "Sizes that measure latency", "The largest size is %s: below 1GiB an all-reduce of GPUs is bound by latency, and its bandwidth says little about the links. Write sizes = [\"8GiB\"].", a.Sizes[n-1]).In(a.Decl).Of(c.nodes()...).Warn()
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
		c.add("limit.looser", inventory.PlaceOf(a.Ranges, "floor", a.Decl), "Limit that faulty hardware keeps", "Good fabrics carry %d%% of their links in an all-reduce (%s), and the floor is %s. Write floor = \"%d%%\".", part.percent, part.source, a.Floor, part.percent).In(a.Decl).Of(c.nodes()...).Warn()
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
	at := inventory.PlaceOf(a.Ranges, "engine", a.Decl)
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

// Expected is what an all-reduce over all GPUs is held against.
type Expected struct {
	Wire   float64 // bytes per second that one GPU's rail carries; 0: within a node, or not known
	Least  float64 // bus bandwidth in bytes per second; 0: nothing is known
	Source string  // of Least
}

// ExpectCollective returns what an all-reduce over nodes of a chassis must show: within one
// node the published figure of its GPUs, between nodes the part of its line rate
// that good fabrics carry, or asked of it when that is not 0.
func ExpectCollective(h *inventory.Hardware, between bool, asked unit.Percent) Expected {
	if !between {
		for _, g := range h.GPUs {
			if f, ok := gpuFloorOf(g, AllReduceBandwidth); ok && g.Count == 8 {
				return Expected{Least: float64(f.least), Source: f.source}
			}
		}
		return Expected{}
	}
	wire, _ := railRate(h)
	gpus := h.GPUCount()
	if wire == 0 || gpus == 0 {
		return Expected{}
	}
	e := Expected{Wire: wire / 8 / float64(gpus)}
	part := shareOf(h)
	e.Source = fmt.Sprintf("%d%% of what its rails carry, %s; %s", part.percent, unit.BitRate(wire), part.source)
	if asked > 0 {
		part.percent, e.Source = int(asked), fmt.Sprintf("%s of what its rails carry, %s", asked, unit.BitRate(wire))
	}
	e.Least = wire / 8 * float64(part.percent) / 100
	return e
}
