// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// Heat is how warm a GPU is, and what it draws.
type Heat struct {
	Address      string  // PCI
	Core, Memory float64 // degrees Celsius: the hottest place of the chip, and the HBM
	Limit        float64 // where heat begins to hold the clocks down
	Power        float64 // watts
	Clock        float64 // MHz, of the compute units
	Slowed       bool    // heat holds the clocks down
	Capped       bool    // the power limit holds the clocks down
	Pace         float64 // what it computes, as a share of what its model does under load
	Wrong        bool    // a bit of what it computes is wrong
}

// heatRow is how a vendor's GPU behaves: what it draws at rest and at its limit,
// and how it is cooled. Idle figures are those of public outputs of nvidia-smi and
// amd-smi; loads of H100 in air are shown between 60 and 75 degrees, of MI300X
// around 80. What a chip is warmer by is its power times the resistance of its
// heat sink.
type heatRow struct {
	vendor      string
	air         float64 // that comes to the heat sink, degrees
	rest, limit float64 // watts
	resistance  float64 // degrees for each watt
	hbm         float64 // by how much the HBM is warmer than the chip, degrees
	slow        float64 // where heat begins to hold the clocks down, degrees
	idle, boost float64 // MHz
}

var heatRows = []heatRow{
	{vendor: "10de", air: 27, rest: 70.52, limit: 700, resistance: 0.0567, hbm: 9, slow: 87, idle: 345, boost: 1980},
	{vendor: "1002", air: 29, rest: 133, limit: 750, resistance: 0.0677, hbm: -5, slow: 100, idle: 132, boost: 2100},
}

// usualClock is the share of its highest clock that a GPU makes at its power limit, and
// powerClock by how much less it would make without any power. Belief.
const usualClock, powerClock = 0.9, 0.35

// heatLimit is where heat begins to hold the clocks of a vendor's GPUs down.
func heatLimit(vendor string) float64 { return heatOf(vendor).slow }

// warming is how long a heat sink takes to be two thirds as warm as it gets.
const warming = 75 * time.Second

// rowOf is how the GPU that a function is behaves.
func (n *Node) rowOf(i int) heatRow {
	f := n.shape.functions[i]
	r := heatOf(f.vendor)
	if !n.scales.Changed() {
		return r
	}
	for name, v := range map[quantity.Name]*float64{quantity.GPUAir: &r.air, quantity.GPURest: &r.rest, quantity.GPULimit: &r.limit, quantity.GPUResistance: &r.resistance, quantity.GPUMemoryHeat: &r.hbm,
		quantity.GPUSlow: &r.slow, quantity.GPUIdle: &r.idle, quantity.GPUBoost: &r.boost} {
		*v *= n.scales.Of(name, f.address)
	}
	return r
}

func heatOf(vendor string) heatRow {
	for _, r := range heatRows {
		if r.vendor == vendor {
			return r
		}
	}
	return heatRows[0]
}

// LoadGPUs puts load on all GPUs of the node, or takes it off.
func (n *Node) LoadGPUs(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.loaded == on {
		return
	}
	now := n.options.Clock.Now()
	from := map[int]float64{}
	for i, f := range n.shape.functions {
		if isGPU(f) {
			from[i] = n.warmth(i, now)
		}
	}
	if n.loaded {
		n.corrects.before += now.Sub(n.since)
	}
	n.loaded, n.since, n.from = on, now, from
}

// Loaded reports whether there is load on the GPUs.
func (n *Node) Loaded() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.loaded
}

// InsulateGPU makes the heat sink of the GPU at an address worse by a factor;
// false if there is none.
func (n *Node) InsulateGPU(address string, by float64) bool {
	return n.setOfGPU(&n.insulated, address, by)
}

// WarmAir makes the air at the heat sinks of all GPUs warmer, by so many degrees.
func (n *Node) WarmAir(degrees float64) {
	for _, f := range n.shape.functions {
		if isGPU(f) {
			air := heatOf(f.vendor).air
			n.scales.Set(quantity.GPUAir, f.address, (air+degrees)/air)
		}
	}
}

// SlowGPU lets the compute units of the GPU at an address make only a share of the clock
// that they should, under load; false if there is none. Nothing on the node says why.
func (n *Node) SlowGPU(address string, share float64) bool {
	return n.setOfGPU(&n.sluggish, address, share)
}

// IdleUnits lets a share of the compute units of the GPU at an address do no work; false if
// there is none. Its clock and its power are as before.
func (n *Node) IdleUnits(address string, share float64) bool {
	return n.setOfGPU(&n.idle, address, share)
}

// StickBit lets a bit of what the GPU at an address computes be wrong, always the same one;
// false if there is none. Nothing on the node counts it.
func (n *Node) StickBit(address string) bool {
	return n.setOfGPU(&n.wrong, address, 1)
}

// setOfGPU sets the value of the GPU at an address; false if there is none.
func (n *Node) setOfGPU(values *map[int]float64, address string, v float64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.function(address)
	if i < 0 || !isGPU(n.shape.functions[i]) {
		return false
	}
	if *values == nil {
		*values = map[int]float64{}
	}
	(*values)[i] = v
	return true
}

// resistance is that of the heat sink of a GPU. Called with mu held.
func (n *Node) resistance(i int) float64 {
	r := n.rowOf(i).resistance
	if by, bad := n.insulated[i]; bad {
		r *= by
	}
	return r
}

// unlike is by how much a GPU under load differs from others of its slot, between
// -1 and 1.
func (n *Node) unlike(i int) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.name + "\x00heat\x00" + n.shape.functions[i].address)) // never fails
	return float64(h.Sum32()%2001)/1000 - 1
}

// goal is how warm a GPU gets in the end, without anything that holds it down.
// Called with mu held.
func (n *Node) goal(i int) float64 {
	row := n.rowOf(i)
	if !n.loaded {
		return row.air + row.resistance*row.rest
	}
	return row.air + n.resistance(i)*row.limit + n.unlike(i)
}

// warmth is how warm a GPU is. A chip that reaches its limit stays there. Called
// with mu held.
func (n *Node) warmth(i int, now time.Time) float64 {
	row, goal := n.rowOf(i), n.goal(i)
	from, known := n.from[i]
	if !known {
		return goal
	}
	part := math.Exp(-now.Sub(n.since).Seconds() / (warming.Seconds() * n.scales.Of(quantity.GPUWarming, n.shape.functions[i].address)))
	return math.Min(goal+(from-goal)*part, row.slow)
}

// Heat is how the GPU at an address is now.
func (k *Kernel) Heat(address string) Heat {
	n := k.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := n.function(address); i >= 0 {
		return n.heat(i, n.options.Clock.Now())
	}
	return Heat{}
}

// Heats are those of all GPUs that are on the bus, in their order.
func (k *Kernel) Heats() (list []Heat) {
	n := k.node
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.options.Clock.Now()
	for i, f := range n.shape.functions {
		if isGPU(f) && !n.removed[i] {
			list = append(list, n.heat(i, now))
		}
	}
	return list
}

// heat is how a GPU is now. At its limit of heat a chip draws what its heat sink
// takes away. Called with mu held.
func (n *Node) heat(i int, now time.Time) Heat {
	f := n.shape.functions[i]
	row := n.rowOf(i)
	h := Heat{Address: f.address, Core: n.warmth(i, now), Limit: row.slow, Power: row.rest, Clock: row.idle}
	h.Memory, h.Wrong = h.Core+row.hbm, n.wrong[i] > 0
	if n.loaded {
		h.Power, h.Capped = row.limit*(1-0.002*(1+n.unlike(i))), true
		if h.Core >= row.slow {
			h.Power, h.Slowed, h.Capped = (row.slow-row.air)/n.resistance(i), true, false
		}
		h.Clock = row.boost * (usualClock - powerClock*(1-h.Power/row.limit))
		if share, slow := n.sluggish[i]; slow {
			h.Clock, h.Power, h.Capped = share*h.Clock, share*h.Power, false
		}
		h.Pace = h.Clock / (heatOf(f.vendor).boost * usualClock) * (1 - n.idle[i])
	}
	return h
}

// addHeat adds the sensors of amdgpu (Documentation/gpu/amdgpu/thermal.rst).
func (s *shape) addHeat(b branch, i int, f function) {
	if f.class != classProcessing || f.vendor != "1002" {
		return
	}
	mon := b.at("hwmon/hwmon" + strconv.Itoa(i))
	thousandths := func(v float64) string { return strconv.Itoa(int(math.Round(v)) * 1000) }
	mon.text("name", "amdgpu")
	mon.text("temp2_label", "junction")
	mon.text("temp3_label", "mem")
	mon.text("temp2_crit", thousandths(heatLimit(f.vendor)))
	mon.text("temp3_crit", "105000")
	mon.live("temp2_input", func(k *Kernel) string { return thousandths(k.Heat(f.address).Core) })
	mon.live("temp3_input", func(k *Kernel) string { return thousandths(k.Heat(f.address).Memory) })
	mon.live("power1_input", func(k *Kernel) string { return strconv.Itoa(int(k.Heat(f.address).Power) * 1e6) })
	mon.live("freq1_input", func(k *Kernel) string { return strconv.Itoa(int(k.Heat(f.address).Clock) * 1e6) })
}

// addKFD adds a GPU to the topology of amdkfd, which numbers GPUs.
func (s *shape) addKFD(t *tree, i, nth int, f function) {
	b := branch{t, "sys/class/kfd/kfd/topology/nodes/" + strconv.Itoa(s.sockets+nth), isPresent(i)}
	b.text("gpu_id", strconv.Itoa(KFDNumber(nth)))
	var domain, bus, device, fn int64
	if parts := strings.FieldsFunc(f.address, func(r rune) bool { return r == ':' || r == '.' }); len(parts) == 4 {
		domain, _ = strconv.ParseInt(parts[0], 16, 64)
		bus, _ = strconv.ParseInt(parts[1], 16, 64)
		device, _ = strconv.ParseInt(parts[2], 16, 64)
		fn, _ = strconv.ParseInt(parts[3], 16, 64)
	}
	b.text("properties", "location_id "+strconv.FormatInt(bus<<8|device<<3|fn, 10)+"\ndomain "+strconv.FormatInt(domain, 10))
}

// KFDNumber returns the number by which ROCm's programs call the nth GPU of a node.
func KFDNumber(nth int) int { return 10000 + nth }
