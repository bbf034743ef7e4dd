// SPDX-License-Identifier: Apache-2.0

package topology

import "math"

// tries is how many numbers of uplinks above the least are looked at for one that
// needs fewer switches; a power of two is always near.
const tries = 64

// maxCables is the most cables of one fabric, with all their halves: ten times
// what 12,500 nodes of eight rails take.
const maxCables = 3_000_000

// need is what a tree must hold, in the numbers of one plane.
type need struct {
	leaves      int   // of all units
	perUnit     int   // leaves that one unit has; they stay in one pod
	ups         []int // numbers of uplink ports that a leaf may use, ascending
	levels      int   // 2 or 3, or 0: as few as do
	leaf        class
	spine, core class
}

// Shape is the arithmetic of a tree of switches, in the numbers of one plane.
type Shape struct {
	Levels  int
	Leaves  int
	Up      int  // uplink ports of a leaf
	Lanes   bool // links between switches are lanes of split ports; else whole ports
	Links   int  // uplinks of a leaf: Up, or Up times the split
	Spines  int  // of a pod; of two levels: all
	PodSize int  // leaves that a pod has room for; of two levels: Leaves
	Pods    int  // 1 of two levels
	SpineUp int  // uplinks of a spine; 0 of two levels
	Cores   int  // of each group: those that spine j of every pod is linked to; 0 of two levels
}

// perPair is the number of links between a leaf and each spine of its pod.
func (s Shape) perPair() int {
	if s.Spines == 0 {
		return 0
	}
	return s.Links / s.Spines
}

// spines is the number of all spines of the plane.
func (s Shape) spines() int { return s.Spines * s.Pods }

// cores is the number of all cores of the plane.
func (s Shape) cores() int { return s.Spines * s.Cores }

// switches is what a shape costs.
func (s Shape) switches() int { return s.spines() + s.cores() }

// solveShape finds the tree: as few levels as do; whole ports before lanes, because a
// link of a whole port is one cable and takes the least of a routing table; the
// fewest switches; then the fewest cables. false: there is none.
func solveShape(n need) (Shape, bool) {
	if n.leaves == 1 && n.levels <= 1 {
		return Shape{Levels: 1, Leaves: 1, PodSize: 1, Pods: 1}, true
	}
	split := n.leaf.split > 1 && n.spine.split == n.leaf.split
	for _, levels := range []int{2, 3} {
		if n.levels != 0 && n.levels != levels {
			continue
		}
		for _, lanes := range []bool{false, true} {
			if lanes && !split {
				continue
			}
			if s, ok := bestShape(n, levels, lanes); ok {
				return s, true
			}
		}
	}
	return Shape{}, false
}

// bestShape tries every number of uplinks.
func bestShape(n need, levels int, lanes bool) (found Shape, ok bool) {
	for _, up := range n.ups {
		var s Shape
		var fits bool
		if levels == 2 {
			s, fits = twoTiers(n, up, lanes)
		} else {
			s, fits = threeTiers(n, up, lanes)
		}
		if fits && (!ok || s.switches() < found.switches()) {
			found, ok = s, true
		}
	}
	return found, ok
}

func radixOf(c class, lanes bool) int {
	if lanes {
		return c.lanes()
	}
	return c.ports
}

// twoTiers returns a tree of leaves and spines: the fewest spines that have the ports for
// all uplinks and divide the uplinks of a leaf, so that each leaf has as many
// links to each spine.
func twoTiers(n need, up int, lanes bool) (Shape, bool) {
	s := Shape{Levels: 2, Leaves: n.leaves, PodSize: n.leaves, Pods: 1, Up: up, Lanes: lanes, Links: up}
	if lanes {
		s.Links *= n.leaf.split
	}
	s.Spines = largestDivisor(s.Links, n.leaves*s.Links, radixOf(n.spine, lanes))
	return s, s.Spines > 0
}

// threeTiers returns a tree of pods: in each, leaves and spines, of which half the ports go
// down and half up. A pod holds whole units as long as one fits. All pods are
// built alike: a pod with fewer spines would halve what the others can send to
// it. Spine j of every pod is linked to the cores of group j, equally to each.
func threeTiers(n need, up int, lanes bool) (Shape, bool) {
	s := Shape{Levels: 3, Leaves: n.leaves, Up: up, Lanes: lanes, Links: up}
	if lanes {
		s.Links *= n.leaf.split
	}
	ports, down := radixOf(n.spine, lanes), n.spine.down(lanes)
	s.PodSize = down
	if n.perUnit > 0 && n.perUnit <= down {
		s.PodSize = down / n.perUnit * n.perUnit
	}
	s.PodSize = min(s.PodSize, n.leaves)
	if s.PodSize == 0 {
		return s, false
	}
	s.Pods = (n.leaves + s.PodSize - 1) / s.PodSize
	if s.Spines = largestDivisor(s.Links, s.PodSize*s.Links, down); s.Spines == 0 {
		return s, false
	}
	least := s.PodSize * s.Links / s.Spines // as much up as down
	for u := least; u <= min(ports-down, least+tries); u++ {
		if g := largestDivisor(u, s.Pods*u, radixOf(n.core, lanes)); g > 0 && (s.Cores == 0 || g < s.Cores) {
			s.SpineUp, s.Cores = u, g
		}
	}
	return s, s.Cores > 0
}

// largestDivisor returns the smallest divisor d of links so that d switches of so many ports
// have at least total; 0: none.
func largestDivisor(links, total, ports int) int {
	if links <= 0 || ports <= 0 {
		return 0
	}
	for d := (total + ports - 1) / ports; d <= links; d++ {
		if d > 0 && links%d == 0 {
			return d
		}
	}
	return 0
}

// mostEndpoints returns the largest number of leaves that a tree of these classes holds.
func mostEndpoints(n need) int {
	split := n.leaf.split > 1 && n.spine.split == n.leaf.split
	found := 0
	for _, lanes := range []bool{false, true} {
		if lanes && !split {
			continue
		}
		r := radixOf(n.spine, lanes)
		if n.levels != 3 {
			found = max(found, r)
		}
		if n.levels != 2 {
			pod := n.spine.down(lanes)
			if n.perUnit > 0 && n.perUnit <= pod {
				pod = pod / n.perUnit * n.perUnit
			}
			found = max(found, pod*radixOf(n.core, lanes))
		}
	}
	return found
}

// uplinkCounts lists the numbers of uplink ports that a leaf may use beside so many
// ports down. down and up are the speeds of such ports (equal when they are not
// known). With enough ports the leaf is not over-subscribed; else as little as
// the ports allow, within the limit. none: it cannot be.
func uplinkCounts(ports, used int, down, up, limit float64) []int {
	free := ports - used
	want := ceilInt(float64(used) * down / up)
	if want > free {
		want = ceilInt(float64(used) * down / (up * limit))
	}
	var list []int
	for u := max(want, 1); u <= free && len(list) < tries; u++ {
		list = append(list, u)
	}
	return list
}

// ceilInt rounds up, forgiving what floating point adds.
func ceilInt(x float64) int { return int(math.Ceil(x - 1e-9)) }

// halfPorts returns the number of ports that a leaf has for nodes: half of them, and more
// only as far as the limit of over-subscription allows.
func halfPorts(ports int, down, up, limit float64) int {
	d := ports / 2
	for limit > 1 && d+1 < ports && float64(d+1)*down <= float64(ports-d-1)*up*limit+1e-9 {
		d++
	}
	return d
}
