// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"fmt"
	"math/bits"
	"net/netip"
	"sync"

	"github.com/ironrail/ironrail/internal/natural"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/lock"
)

// pointToPoint is the addressing in which every link is a network of its own.
const pointToPoint = "point-to-point"

// Links are the addresses of a fabric whose links are networks of their own, of
// two addresses each (RFC 3021; RFC 6164 for IPv6): every port of a node to its
// leaf, every leaf to its spines, every spine to its cores. The upper end of a
// link has the even address and the lower end the odd one, as in Juniper's
// validated design for GPU back-ends. Each switch has a loopback as well, for the
// routing protocol. It is read-only and safe for concurrent use.
type Links struct {
	Fabric     *inventory.Fabric
	Links      []Link
	Switches   []*inventory.Switch // with a loopback
	Pools      []lock.Pool         // of the rails, then of links between switches, then of loopbacks
	Wants      []lock.Want         // of Links, then of Switches
	Allocation lock.Allocation     // of Wants

	once   sync.Once // guards byPort
	byPort map[string]netip.Prefix
}

// Link is one cable of the fabric.
type Link struct {
	Cable *inventory.Cable
	Up    bool // Cable is written from the upper end
}

// Lower is the end nearer to the nodes.
func (l Link) Lower() inventory.CableEnd {
	if l.Up {
		return l.Cable.To
	}
	return l.Cable.From
}

// Upper is the other end.
func (l Link) Upper() inventory.CableEnd {
	if l.Up {
		return l.Cable.From
	}
	return l.Cable.To
}

// Link returns the addresses of both ends of Links[i], invalid when the CIDR has
// no room for them.
func (l *Links) Link(i int) (lower, upper netip.Prefix) {
	lower = l.Allocation.Prefixes[i]
	return lower, farEnd(lower)
}

// Loopback returns the address of Switches[i], invalid when the CIDR has no room
// for it.
func (l *Links) Loopback(i int) netip.Prefix { return l.Allocation.Prefixes[len(l.Links)+i] }

// farEnd returns the other end of a link.
func farEnd(lower netip.Prefix) netip.Prefix {
	if !lower.IsValid() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(lower.Masked().Addr(), lower.Bits())
}

// Split reports whether a node's port is several links.
func (l *Links) Split(n *inventory.Node, nic *inventory.NIC, port int) bool {
	if _, _, ok := l.Port(n, nic, port); !ok {
		return false
	}
	_, split := l.byPort[portName(inventory.CableEnd{Node: n, NIC: nic, Port: port, Lane: 1})]
	return split
}

// Port returns the address of a node's port and that of the leaf that it is
// connected to; false when no cable of the fabric ends there.
func (l *Links) Port(n *inventory.Node, nic *inventory.NIC, port int) (address netip.Prefix, leaf netip.Addr, ok bool) {
	if l == nil {
		return netip.Prefix{}, netip.Addr{}, false
	}
	l.once.Do(func() {
		l.byPort = make(map[string]netip.Prefix, len(l.Links))
		for i, k := range l.Links {
			if k.Lower().Node != nil {
				l.byPort[l.Wants[i].Owner] = l.Allocation.Prefixes[i]
			}
		}
	})
	name := inventory.CableEnd{Node: n, NIC: nic, Port: port}
	address, ok = l.byPort[name.String()]
	if !ok {
		name.Lane = 1 // the first of a port that is split
		address, ok = l.byPort[name.String()]
	}
	if !ok || !address.IsValid() {
		return netip.Prefix{}, netip.Addr{}, false
	}
	return address, farEnd(address).Addr(), true
}

// Addresses computes the links of all fabrics with point-to-point addressing:
// what is in the site's lock file as it is there, and the rest as `ironrail lock`
// would add it. Fabrics whose CIDR is not given or cannot be cut are left out.
func Addresses(inv *inventory.Inventory) []*Links {
	moves := make(lock.Moves, len(inv.Moves))
	for _, m := range inv.Moves {
		moves[m.From] = m.To
	}
	var all []*Links
	for _, f := range inv.Fabrics {
		if f.Kind != Name || f.Addressing != pointToPoint || !f.CIDR.IsValid() {
			continue
		}
		l := &Links{Fabric: f, Pools: cutPools(f, f.CIDR.Bits())}
		if l.Pools == nil {
			continue
		}
		l.gather(inv)
		l.Allocation = lock.Allocate(l.Pools, l.Wants, inv.Lock.Of(f.Name), moves)
		all = append(all, l)
	}
	return all
}

// gather lists who needs an address.
func (l *Links) gather(inv *inventory.Inventory) {
	count := 0
	for _, c := range inv.Cables {
		if belongsTo(c, l.Fabric) {
			count++
		}
	}
	l.Links = make([]Link, 0, count)
	l.Wants = make([]lock.Want, 0, count+len(inv.Switches))
	member := map[*inventory.Switch]bool{}
	for _, c := range inv.Cables {
		if !belongsTo(c, l.Fabric) {
			continue
		}
		k := Link{Cable: c, Up: isUpwards(c)}
		lower := k.Lower()
		pool := max(l.Fabric.Rails, 1) // between switches
		if lower.Node != nil {
			if pool = railOf(lower); pool < 0 || pool >= max(l.Fabric.Rails, 1) {
				continue // rail.range says so
			}
		}
		l.Links = append(l.Links, k)
		l.Wants = append(l.Wants, lock.Want{Owner: portName(lower), Pool: pool})
		for _, s := range []*inventory.Switch{c.From.Switch, c.To.Switch} {
			if s != nil && s.Fabric == nil {
				member[s] = true
			}
		}
	}
	for _, s := range inv.Switches {
		if s.Fabric == l.Fabric || member[s] {
			l.Switches = append(l.Switches, s)
			l.Wants = append(l.Wants, lock.Want{Owner: s.Name, Pool: max(l.Fabric.Rails, 1) + 1})
		}
	}
}

// portName is the name of a port in its one form, however a cable block writes it
// ("n1/s/00").
func portName(e inventory.CableEnd) string {
	e.Text = ""
	return e.String()
}

// railOf returns that of a node's port.
func railOf(e inventory.CableEnd) int {
	if e.NIC == nil || e.Port >= len(e.NIC.Ports) {
		return -1
	}
	return e.NIC.Ports[e.Port].Rail
}

// belongsTo reports whether a cable is one of the fabric: of a cable block by its ends.
func belongsTo(c *inventory.Cable, f *inventory.Fabric) bool {
	if c.Fabric != nil {
		return c.Fabric == f
	}
	for _, e := range []*inventory.CableEnd{&c.From, &c.To} {
		if e.NIC != nil {
			return e.NIC.Fabric == f
		}
	}
	for _, e := range []*inventory.CableEnd{&c.From, &c.To} {
		if e.Switch != nil && e.Switch.Fabric != nil {
			return e.Switch.Fabric == f
		}
	}
	return false
}

// isUpwards reports whether a cable is written from its upper end. Of two switches
// of one tier, or of none, the first by name counts as the lower one.
func isUpwards(c *inventory.Cable) bool {
	switch {
	case c.Computed() || c.From.Node != nil:
		return false
	case c.To.Node != nil:
		return true
	case c.From.Switch == nil || c.To.Switch == nil:
		return false
	}
	height := map[inventory.Tier]int{inventory.Leaf: 1, inventory.Spine: 2, inventory.Core: 3}
	from, to := height[c.From.Switch.Tier], height[c.To.Switch.Tier]
	if from != to && from > 0 && to > 0 {
		return from > to
	}
	return natural.Compare(c.From.String(), c.To.String()) > 0
}

// cutPools cuts a fabric's CIDR of the given length: into equal parts, as many as
// rails and one, rounded up to a power of two. Rail r has part r; the largest
// aligned block of parts at the end is that of the switches, the last eighth of it
// for their loopbacks. nil: there is nothing to cut.
func cutPools(f *inventory.Fabric, length int) []lock.Pool {
	rails := max(f.Rails, 1)
	base, err := f.CIDR.Addr().Prefix(length)
	if err != nil {
		return nil
	}
	cut := bits.Len(uint(rails)) // the parts are 1 << cut, more than rails
	free := bits.Len(uint(1<<cut-rails)) - 1
	part := func(n uint64, depth int) netip.Prefix {
		if p := length + depth; p <= base.Addr().BitLen() {
			if a, ok := addHost(base.Addr(), n, base.Addr().BitLen()-p); ok {
				return netip.PrefixFrom(a, p)
			}
		}
		return netip.Prefix{}
	}
	var list []lock.Pool
	for r := range rails {
		list = append(list, lock.Pool{What: fmt.Sprintf("rail %d", r), Prefix: part(uint64(r), cut), Link: true})
	}
	depth := cut - free
	switches, loopbacks := part(1<<depth-1, depth), part(1<<(depth+3)-1, depth+3)
	if !loopbacks.IsValid() || !list[0].Prefix.IsValid() || list[0].Prefix.IsSingleIP() {
		return nil
	}
	most := 7 * (uint64(1) << min(40, base.Addr().BitLen()-loopbacks.Bits())) / 2
	return append(list, lock.Pool{What: "links between switches", Prefix: switches, Link: true, Most: int(most)}, lock.Pool{What: "loopbacks", Prefix: loopbacks})
}

// Enough returns the length of the longest CIDR that has room for all that the
// fabric needs, the stale entries of its lock among it; 0: none has.
func (l *Links) Enough() int {
	need := make([]uint64, max(l.Fabric.Rails, 1)+2)
	for _, w := range l.Wants {
		need[w.Pool]++
	}
	for _, s := range l.Allocation.Shortages {
		for i, p := range l.Pools {
			if p.What == s.Pool.What {
				need[i] = uint64(s.Need)
			}
		}
	}
	return enoughLength(l.Fabric, l.Fabric.CIDR.Bits(), need)
}

func enoughLength(f *inventory.Fabric, from int, need []uint64) int {
	for length := from; length > 0; length-- {
		list := cutPools(f, length)
		fits := len(list) == len(need)
		for i := range list {
			fits = fits && need[i] <= list[i].Room()
		}
		if fits {
			return length
		}
	}
	return 0
}
