// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Bounds of a pool. Its leases are short, so that a machine that was entered into the
// inventory gets its own address soon.
const (
	poolLease = 10 * time.Minute
	// perPort is how many machines behind one port of a relay agent (its circuit and
	// remote ids, RFC 3046) hold an address: a BMC and three NICs.
	perPort = 4
	// mostPool is how many addresses of a pool are used at most; it bounds the memory.
	mostPool = 4096
)

// Pool leases addresses to machines that are not in the inventory, so that they can be
// found. What it holds is in memory only: a machine that asks for the address that it had
// gets it again where it is free. An offer takes nothing; a lease takes a turn, of which
// there is a quarter of the pool at once and another within the time of a lease, so that
// who asks under many MACs holds half of it at most. Behind a relay agent that names
// ports, each port has its share instead. It is safe for concurrent use.
type Pool struct {
	first  netip.Addr
	size   int
	spared func(netip.Addr) bool // addresses that are somebody's

	mu     sync.Mutex // guards what follows
	byMAC  map[addr.MAC]*poolEntry
	byAddr map[netip.Addr]*poolEntry
	bad    map[netip.Addr]time.Time // in use by others, until then
	turns  float64
	filled time.Time // when turns was counted
}

type poolEntry struct {
	mac   addr.MAC
	addr  netip.Addr
	port  string // of a relay agent; "": not named
	until time.Time
}

// NewPool makes the pool of a range of IPv4 addresses. spared are left out.
func NewPool(first, last netip.Addr, spared func(netip.Addr) bool) *Pool {
	size := 0
	for a := first; a.Compare(last) <= 0 && size < mostPool; a = a.Next() {
		size++
	}
	return &Pool{first: first, size: size, spared: spared, byMAC: map[addr.MAC]*poolEntry{}, byAddr: map[netip.Addr]*poolEntry{},
		bad: map[netip.Addr]time.Time{}, turns: float64(max(1, size/4))}
}

// contains reports whether an address is one of the pool's to give.
func (p *Pool) contains(a netip.Addr) bool {
	if !a.Is4() || a.Compare(p.first) < 0 || p.spared(a) {
		return false
	}
	b, first := a.As4(), p.first.As4()
	return binary.BigEndian.Uint32(b[:])-binary.BigEndian.Uint32(first[:]) < uint32(p.size)
}

// at is the i-th address.
func (p *Pool) at(i int) netip.Addr {
	b := p.first.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(i))
	return netip.AddrFrom4(b)
}

// held is the lease of a machine; nil: it has none.
func (p *Pool) held(m addr.MAC, now time.Time) *poolEntry {
	if e := p.byMAC[m]; e != nil && now.Before(e.until) {
		return e
	}
	return nil
}

// free reports whether a machine may have an address of the pool.
func (p *Pool) free(a netip.Addr, m addr.MAC, now time.Time) bool {
	if !p.contains(a) || now.Before(p.bad[a]) {
		return false
	}
	e := p.byAddr[a]
	return e == nil || e.mac == m || !now.Before(e.until)
}

// Offer chooses an address for a machine: the one that it has, the one that it asks for, or
// one by its MAC, so that the same machine is offered the same. fresh: it has no lease of
// it. An error says why it gets none.
func (p *Pool) Offer(m addr.MAC, port string, requested netip.Addr, now time.Time) (a netip.Addr, fresh bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.held(m, now); e != nil && p.free(e.addr, m, now) {
		return e.addr, false, nil
	}
	if err := p.mayTake(m, port, now); err != nil {
		return a, false, err
	}
	if p.free(requested, m, now) {
		return requested, true, nil
	}
	h := fnv.New32a()
	h.Write(m[:])
	for i := range p.size {
		if a := p.at((int(h.Sum32()%uint32(p.size)) + i) % p.size); p.free(a, m, now) {
			return a, true, nil
		}
	}
	return a, false, fmt.Errorf("no address of the pool is free")
}

// mayTake reports why a machine without a lease gets none now.
func (p *Pool) mayTake(m addr.MAC, port string, now time.Time) error {
	if port != "" {
		n := 0
		for _, e := range p.byMAC {
			if e.port == port && e.mac != m && now.Before(e.until) {
				n++
			}
		}
		if n >= perPort {
			return fmt.Errorf("%d machines at its port hold addresses of the pool, and no more may", n)
		}
		return nil
	}
	burst := float64(max(1, p.size/4))
	p.turns = min(burst, p.turns+burst*float64(now.Sub(p.filled))/float64(poolLease))
	p.filled = now
	if p.turns < 1 {
		return fmt.Errorf("more machines have asked for addresses of the pool than get one within %v", poolLease)
	}
	return nil
}

// Take leases an address to a machine, or does not: false with an error where it may have
// none now, and without one where somebody else has the address.
func (p *Pool) Take(m addr.MAC, port string, a netip.Addr, now time.Time) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.free(a, m, now) {
		return false, nil
	}
	if e := p.held(m, now); e == nil {
		if err := p.mayTake(m, port, now); err != nil {
			return false, err
		}
		if port == "" {
			p.turns--
		}
	}
	p.drop(m)
	if old := p.byAddr[a]; old != nil {
		p.drop(old.mac)
	}
	e := &poolEntry{m, a, port, now.Add(poolLease)}
	p.byMAC[m], p.byAddr[a] = e, e
	return true, nil
}

// Release takes an address back from the machine that has it.
func (p *Pool) Release(m addr.MAC) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(m)
}

// Conflict keeps an address from being given for the time of a lease: somebody else has it.
func (p *Pool) Conflict(a netip.Addr, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.byAddr[a]; e != nil {
		p.drop(e.mac)
	}
	if p.contains(a) {
		p.bad[a] = now.Add(poolLease)
	}
}

// Decline is Conflict, by the word of the machine that has the address of us.
func (p *Pool) Decline(m addr.MAC, a netip.Addr, now time.Time) bool {
	p.mu.Lock()
	e := p.held(m, now)
	own := e != nil && e.addr == a
	p.mu.Unlock()
	if own {
		p.Conflict(a, now)
	}
	return own
}

func (p *Pool) drop(m addr.MAC) {
	if e := p.byMAC[m]; e != nil {
		delete(p.byMAC, m)
		if p.byAddr[e.addr] == e {
			delete(p.byAddr, e.addr)
		}
	}
}

// decideUnknown answers a machine that is not in the inventory from the pool of its network.
func (p Policy) decideUnknown(d Decision, in *dhcpv4.DHCPv4, now time.Time) Decision {
	relay := toAddr(in.GatewayIPAddr)
	n := p.networkOf(in)
	if n == nil || n.Pool == nil || !relay.IsUnspecified() && !n.speaks(relay) && !p.AnyRelay {
		return d
	}
	d.What, d.Detail, d.Refused = "", "", false
	sid := in.ServerIdentifier()
	if sid != nil && !sid.Equal(serverID(p, in)) {
		return d // the client of another server
	}
	switch in.MessageType() {
	case dhcpv4.MessageTypeDiscover:
		a, fresh, err := n.Pool.Offer(d.MAC, portOf(in), requestedAddr(in), now)
		if err != nil {
			return d.refuse(eventPool, "%s is not in the inventory, and gets no address of network %s: %v", machineText(in, d), n.Name, err)
		}
		d.Reply = p.poolReply(in, dhcpv4.MessageTypeOffer, n, a)
		if fresh {
			d.probe, d.pool = a, n.Pool
		}
		return d
	case dhcpv4.MessageTypeRequest:
		return p.requestPool(d, in, n, now)
	case dhcpv4.MessageTypeRelease:
		n.Pool.Release(d.MAC)
	case dhcpv4.MessageTypeDecline:
		if a := requestedAddr(in); n.Pool.Decline(d.MAC, a, now) {
			return d.refuse(eventDecline, "declines %s of the pool: the client saw another owner of this address on the wire", a)
		}
	}
	return d
}

// requestPool is RFC 2131, section 4.3.2, for a machine of which nothing may be recorded any
// more: one that asks for an address of the pool that is free gets it, and one that asks
// for something else is left to others.
func (p Policy) requestPool(d Decision, in *dhcpv4.DHCPv4, n *Network, now time.Time) Decision {
	a := requestedAddr(in)
	if !n.Pool.contains(a) {
		return d
	}
	ok, err := n.Pool.Take(d.MAC, portOf(in), a, now)
	switch {
	case err != nil:
		return d.refuse(eventPool, "%s is not in the inventory, and gets no address of network %s: %v", machineText(in, d), n.Name, err)
	case !ok:
		d.Reply = p.nak(in)
		return d.withNote(eventNak, "asks for %s of the pool, which somebody else has", a)
	}
	d.Reply = p.poolReply(in, dhcpv4.MessageTypeAck, n, a)
	return d.withNote(EventPool, "%s is not in the inventory, and gets %s of network %s for %v, and nothing to boot", machineText(in, d), a, n.Name, poolLease)
}

// poolReply is an address of a pool with its network, and nothing to boot.
func (p Policy) poolReply(in *dhcpv4.DHCPv4, t dhcpv4.MessageType, n *Network, a netip.Addr) *dhcpv4.DHCPv4 {
	p.Lease = uint32(poolLease / time.Second)
	return p.reply(in, t, boot.Client{Address: netip.PrefixFrom(a, n.Prefix.Bits()), Gateway: n.Gateway, DNS: n.DNS, Domain: n.Domain}, Class{HTTP: Classify(in).HTTP}, "")
}

// speaks reports whether a relay agent is one of the network's.
func (n *Network) speaks(relay netip.Addr) bool {
	return slices.Contains(n.Relays, relay)
}

// portOf names the port of a relay agent that a packet came in by; "" where it does not.
func portOf(in *dhcpv4.DHCPv4) string {
	a, ok := askedOf(in)
	if !ok || !isSet(in.GatewayIPAddr) || len(a.Circuit) == 0 {
		return ""
	}
	return a.Relay.String() + " " + string(a.Remote) + " " + string(a.Circuit)
}

// machineText says what a machine tells of itself, so that it can be found. It is text from
// outside.
func machineText(in *dhcpv4.DHCPv4, d Decision) string {
	words := []string{"MAC " + d.MAC.String()}
	if v := in.ClassIdentifier(); v != "" {
		words = append(words, fmt.Sprintf("vendor class %q", v))
	}
	if h := in.HostName(); h != "" {
		words = append(words, fmt.Sprintf("host name %q", h))
	}
	if !unknownUUID(d.Class.UUID) {
		words = append(words, "UUID "+formatUUID(d.Class.UUID))
	}
	if relay := toAddr(in.GatewayIPAddr); !relay.IsUnspecified() {
		words = append(words, "relay "+relay.String())
	}
	a, _ := askedOf(in)
	if len(a.Circuit) > 0 {
		words = append(words, fmt.Sprintf("circuit id %q", a.Circuit))
	}
	if len(a.Remote) > 0 {
		words = append(words, fmt.Sprintf("remote id %q", a.Remote))
	}
	return "a machine (" + strings.Join(words, ", ") + ")"
}
