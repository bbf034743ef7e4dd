// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"

	"github.com/ironrail/ironrail/internal/addr"
)

// An address of a pool is offered when nobody answers for it (RFC 2131, section 2.2): by
// ARP on the server's own network, by ICMP behind a relay agent.
const (
	probeTime  = 600 * time.Millisecond // two questions by ARP; below the first time-out of clients, 1 s of iPXE
	mostProbes = 16                     // at once; a client whose turn does not come asks again
)

// prober says who has an address, and whether somebody has; the MAC is zero where it is not
// known.
type prober func(a netip.Addr, relayed bool) (owner addr.MAC, used bool)

// probeOn looks on an interface of the operating system; nil where there is none.
func probeOn(ifname string, self netip.Addr) prober {
	ifi, err := net.InterfaceByName(ifname)
	if err != nil {
		return nil
	}
	return func(a netip.Addr, relayed bool) (owner addr.MAC, used bool) {
		if relayed {
			return owner, ping(self, a)
		}
		ctx, cancel := context.WithTimeout(context.Background(), probeTime)
		defer cancel()
		owner = resolve(ctx, ifi, self, a)
		return owner, !owner.IsZero()
	}
}

// probers is how many addresses are looked at at once.
func (p Policy) probers() int {
	if slices.ContainsFunc(p.Networks, func(n Network) bool { return n.Pool != nil }) {
		return mostProbes
	}
	return 0
}

// ping reports whether an address answers an echo request (RFC 792). Where none can be sent
// nobody answers.
func ping(self, a netip.Addr) bool {
	conn, err := icmp.ListenPacket("ip4:icmp", self.String())
	if err != nil {
		return false
	}
	defer conn.Close()
	var id [2]byte
	rand.Read(id[:])
	n := int(binary.BigEndian.Uint16(id[:]))
	b, err := (&icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: n, Seq: 1}}).Marshal(nil)
	if err != nil {
		return false
	}
	if _, err := conn.WriteTo(b, &net.IPAddr{IP: a.AsSlice()}); err != nil {
		return false
	}
	_ = conn.SetReadDeadline(time.Now().Add(probeTime))
	in := make([]byte, packetSize)
	for {
		k, from, err := conn.ReadFrom(in)
		if err != nil {
			return false
		}
		m, err := icmp.ParseMessage(1, in[:k]) // protocol number of ICMP
		if err != nil || m.Type != ipv4.ICMPTypeEchoReply {
			continue
		}
		if e, ok := m.Body.(*icmp.Echo); ok && e.ID == n && from.String() == a.String() {
			return true
		}
	}
}

// offerProbed sends an offer once nobody has answered for its address. in is not kept.
func (s *Server) offerProbed(in *dhcpv4.DHCPv4, dec Decision, now time.Time) {
	out := &outgoing{}
	out.fill(in, dec.Reply, dec.MAC)
	dec.Reply = nil // it refers to in
	look := func() {
		owner, used := s.probe(dec.probe, out.path == ToRelay)
		switch {
		case used && owner != dec.MAC:
			dec.pool.Conflict(dec.probe, now)
			s.refused.Add(1)
			who := "MAC " + owner.String()
			if owner.IsZero() {
				who = "somebody"
			}
			dec = dec.refuse(eventConflict, "%s of the pool is not offered to MAC %s: %s answers for it, and it is nobody's by the files", dec.probe, dec.MAC, who)
		default:
			s.wire.send([]*outgoing{out})
			dec = s.countSent(dec, out.err)
		}
		s.recordDecision(dec, now)
	}
	select {
	case s.probes <- look:
	default: // enough are being looked for
	}
}
