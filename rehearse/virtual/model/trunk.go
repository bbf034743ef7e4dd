// SPDX-License-Identifier: Apache-2.0

package model

import (
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// SwitchPort is a port of a switch as the site's cables name it.
type SwitchPort struct {
	Switch string // scoped, such as net/leaf-1
	Number int
	Lane   int // from 1, of a port that is split; 0: the whole port
}

// SwitchCounters are what a port of a switch has counted. Errors are of what arrived.
type SwitchCounters struct {
	XmitBytes, RcvBytes     int64
	SymbolError, RcvErrors  int64
	XmitPackets, RcvPackets int64
	Down                    bool // the port has no link
}

// The ends of a trunk, as indices of its arrays.
const (
	lowerEnd = 0
	upperEnd = 1
)

// trunk is a cable between two switches. Model.mu guards what can change.
type trunk struct {
	ends     [2]SwitchPort // the leaf's and the spine's
	share    float64       // of what a flow brings that it passes
	down     bool          // it has no link: flows go over the others
	ber      [2]float64    // errors a bit of what arrives at each end
	counters [2]SwitchCounters
}

// crossing is a trunk on the way of a flow; to is the end that it leaves by.
type crossing struct {
	*trunk
	to int
}

// network is the switches and the trunks between them.
type network struct {
	upper  map[string][]string    // switches above one, sorted
	common map[[2]string][]string // those above two, as they were asked for; Model.mu guards it
	trunks map[[2]string][]*trunk
	ends   map[SwitchPort]crossing // of each end its trunk
}

// newNetwork reads the cables between switches.
func newNetwork(inv *inventory.Inventory) network {
	n := network{map[string][]string{}, map[[2]string][]string{}, map[[2]string][]*trunk{}, map[SwitchPort]crossing{}}
	for _, c := range inv.Cables {
		low, high := c.From, c.To
		if low.Switch == nil || high.Switch == nil {
			continue
		}
		if low.Switch.Tier.Height() > high.Switch.Tier.Height() {
			low, high = high, low
		}
		if low.Switch.Tier.Height() == high.Switch.Tier.Height() {
			continue // between equals, such as two managed switches: no way up
		}
		t := &trunk{ends: [2]SwitchPort{switchPort(low), switchPort(high)}, share: 1}
		between := [2]string{low.Switch.Name, high.Switch.Name}
		if n.trunks[between] == nil {
			n.upper[between[0]] = append(n.upper[between[0]], between[1])
		}
		n.trunks[between] = append(n.trunks[between], t)
		n.ends[t.ends[lowerEnd]], n.ends[t.ends[upperEnd]] = crossing{t, lowerEnd}, crossing{t, upperEnd}
	}
	for _, list := range n.upper {
		slices.Sort(list)
	}
	return n
}

func switchPort(e inventory.CableEnd) SwitchPort {
	return SwitchPort{Switch: e.Switch.Name, Number: e.Port, Lane: e.Lane}
}

// mostLevels bounds how far up a way goes: leaf, spine, core.
const mostLevels = 3

// way returns the trunks from one switch to another. Where several switches lie above
// both, the key says which is taken, and which of the cables to it. It is empty where
// the site has no cables between them.
func (n network) way(from, to string, key uint64) []crossing {
	var up, down []crossing
	for range mostLevels {
		if from == to {
			break
		}
		var above, beyond string
		switch both := n.above(from, to); {
		case len(both) > 0:
			above = choose(both, key)
			beyond = above
		case len(n.upper[from]) > 0 && len(n.upper[to]) > 0:
			above, beyond = choose(n.upper[from], key), choose(n.upper[to], key)
		default:
			return nil
		}
		rest := key / uint64(len(n.upper[from]))
		up = append(up, crossing{choose(live(n.trunks[[2]string{from, above}]), rest), upperEnd})
		down = append(down, crossing{choose(live(n.trunks[[2]string{to, beyond}]), rest), lowerEnd})
		from, to = above, beyond
	}
	slices.Reverse(down)
	return append(up, down...)
}

// above lists the switches above both of two.
func (n network) above(a, b string) []string {
	list, known := n.common[[2]string{a, b}]
	if !known {
		list = slices.DeleteFunc(slices.Clone(n.upper[a]), func(s string) bool { return !slices.Contains(n.upper[b], s) })
		n.common[[2]string{a, b}] = list
	}
	return list
}

func choose[T any](list []T, key uint64) T { return list[key%uint64(len(list))] }

// routes are the ways of so many flows from one port to another; m.mu is held. InfiniBand
// routes by the destination: all flows to a port come down the same way, and the ports of
// a leaf have ways of their own as long as there are some (ftree). Ethernet spreads flows
// by a hash of what distinguishes them (ECMP).
func (m *Model) routes(from, to *port, flows int) [][]crossing {
	if to.Medium == InfiniBand {
		flows = 1
	}
	all := make([][]crossing, 0, max(flows, 1))
	for i := range max(flows, 1) {
		key := uint64(to.order)
		if to.Medium != InfiniBand {
			key = m.hash(from.ID, to.ID, i)
		}
		all = append(all, m.network.way(from.at.leaf, to.at.leaf, key))
	}
	return all
}

// hash is what a switch makes of the addresses and the UDP source port of a flow.
func (m *Model) hash(from, to PortID, flow int) uint64 {
	h := fnv.New64a()
	for _, s := range []string{strconv.FormatUint(m.seed, 10), from.String(), to.String(), strconv.Itoa(flow)} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	x := h.Sum64()
	return x ^ x>>29 // its low bits alone differ too little
}

// quality is what the trunks of a way do to a flow: the share that they pass, and the
// share of packets that they lose. m.mu is held.
func (m *Model) quality(way []crossing, mtu int) (share, loss float64) {
	share = 1
	for _, c := range way {
		share = min(share, c.share)
		if s, cut := m.cross[c.ends[upperEnd].Switch]; cut {
			share = min(share, s)
		}
		loss = 1 - (1-loss)*(1-lossOf(c.ber[c.to], mtu))
	}
	return share, loss
}

// carry counts bytes on a way: sent at one end of each trunk, received at the other,
// and the errors of who receives.
func carry(way []crossing, bytes int64) {
	packets := (bytes + rdmaMTU - 1) / rdmaMTU
	for _, c := range way {
		lost := int64(0)
		if ber := c.ber[c.to]; ber > 0 {
			lost = min(roundUp(float64(packets)*lossOf(ber, rdmaMTU)), packets)
			c.counters[c.to].SymbolError += roundUp(float64(bytes) * 8 * ber)
			c.counters[c.to].RcvErrors += lost
		}
		c.counters[1-c.to].XmitBytes += bytes
		c.counters[1-c.to].XmitPackets += packets
		c.counters[c.to].RcvBytes += bytes
		c.counters[c.to].RcvPackets += packets - lost
	}
}

// SwitchCounters returns what a port of a switch has counted that a cable to another
// switch is in; false for any other.
func (m *Model) SwitchCounters(at SwitchPort) (SwitchCounters, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.network.ends[at]
	if !ok {
		return SwitchCounters{}, false
	}
	counted := c.counters[c.to]
	counted.Down = c.down
	return counted, true
}

// changeTrunk does something to the trunk that one end is of.
func (m *Model) changeTrunk(at SwitchPort, do func(crossing)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.network.ends[at]
	if !ok {
		return errkind.New(errkind.NotFound, "there is no cable to another switch in %s/%d", at.Switch, at.Number)
	}
	do(c)
	return nil
}

// SetTrunkShare sets the share that a cable between two switches passes of what each
// flow brings, above 0 and at most 1.
func (m *Model) SetTrunkShare(at SwitchPort, share float64) error {
	if !(share > 0 && share <= 1) {
		return errkind.New(errkind.Invalid, "share %g of what %s/%d passes", share, at.Switch, at.Number)
	}
	return m.changeTrunk(at, func(c crossing) { c.trunk.share = share })
}

// SetTrunkDown takes the link of a cable between two switches away, or gives it back. It is refused where no
// other cable connects the two.
func (m *Model) SetTrunkDown(at SwitchPort, down bool) error {
	var alone bool
	err := m.changeTrunk(at, func(c crossing) {
		between := m.network.trunks[[2]string{c.ends[lowerEnd].Switch, c.ends[upperEnd].Switch}]
		if alone = down && len(live(between)) < 2 && !c.down; !alone {
			c.trunk.down = down
		}
	})
	if err == nil && alone {
		err = errkind.New(errkind.Unsupported, "the cable in %s/%d is the last one between its switches: what a fabric does then is not simulated", at.Switch, at.Number)
	}
	return err
}

// live are the trunks that have a link.
func live(list []*trunk) []*trunk {
	if !slices.ContainsFunc(list, func(t *trunk) bool { return t.down }) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(t *trunk) bool { return t.down })
}

// SetTrunkErrors sets the share of bits that arrive wrong at one end of a cable between
// two switches, after error correction; what goes the other way is as it was.
func (m *Model) SetTrunkErrors(at SwitchPort, rate float64) error {
	if !(rate >= 0 && rate <= 1) {
		return errkind.New(errkind.Invalid, "error rate %g at %s/%d", rate, at.Switch, at.Number)
	}
	return m.changeTrunk(at, func(c crossing) { c.trunk.ber[c.to] = rate })
}
