// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/internal/addr"
)

// outgoing is a reply on its way.
type outgoing struct {
	path Path
	dst  netip.Addr
	mac  addr.MAC
	b    []byte // room for the headers of a frame, and the message
	err  error  // why it could not be sent
}

// fill writes the message and chooses its path. It keeps nothing of in and r.
func (o *outgoing) fill(in, r *dhcpv4.DHCPv4, mac addr.MAC) {
	o.path, o.dst = PathOf(in, r)
	o.mac, o.err = mac, nil
	var heads [frameHeads]byte
	o.b = appendReply(append(o.b[:0], heads[:]...), r)
}

// message is the payload of UDP.
func (o *outgoing) message() []byte { return o.b[frameHeads:] }

// frame is the reply with the headers of UDP and IPv4, to a port of dst.
func (o *outgoing) frame(src netip.AddrPort, port uint16) []byte {
	putHeads(o.b, src, netip.AddrPortFrom(o.dst, port))
	return o.b
}

// answers are the replies to the packets of one batch, and what one reader uses again for each. It is
// used by one goroutine.
type answers struct {
	s       *Server
	policy  Policy        // of s, with room for one reply
	in      dhcpv4.DHCPv4 // the packet that is looked at
	waiting []answer      // to be sent
	out     []*outgoing   // of waiting, and spare ones behind them
	shares  map[addr.MAC]int
	drops   uint32 // that the kernel has counted
}

// answer is what becomes of a packet once its reply is sent.
type answer struct {
	dec Decision
	at  time.Time
}

func newAnswers(s *Server) *answers {
	a := &answers{s: s, policy: s.cfg.Policy, shares: map[addr.MAC]int{}}
	a.policy.room = &room{}
	return a
}

// add keeps a reply for flush. One to the boot server's port is sent at once.
func (a *answers) add(in *dhcpv4.DHCPv4, dec Decision, from netip.AddrPort, now time.Time) {
	if len(a.waiting) == len(a.out) {
		a.out = append(a.out, &outgoing{})
	}
	out := a.out[len(a.waiting)]
	out.fill(in, dec.Reply, dec.MAC)
	dec.Reply = nil     // it refers to in
	if from.IsValid() { // what came to the boot server's port is answered there (PXE 2.1, section 2.2.3)
		out.err = a.s.boots.send(out.message(), from)
		a.s.recordDecision(a.s.countSent(dec, out.err), now)
		return
	}
	a.waiting = append(a.waiting, answer{dec, now})
}

// flush sends what waits and records what became of it. A panic costs these replies, or what is
// recorded of them, and not the service.
func (a *answers) flush() {
	clear(a.shares)
	if len(a.waiting) == 0 {
		return
	}
	counted := 0
	defer func() {
		if v := recover(); v != nil {
			a.s.recordPanic(len(a.waiting)-counted, "%d replies could not be sent, or recorded: %v", len(a.waiting)-counted, v)
		}
		a.waiting = a.waiting[:0]
	}()
	a.s.wire.send(a.out[:len(a.waiting)])
	for i, w := range a.waiting {
		dec := a.s.countSent(w.dec, a.out[i].err)
		counted++
		a.s.recordDecision(dec, w.at)
	}
}

// countSent counts a reply, which was sent or not, and returns what is to be recorded.
func (s *Server) countSent(dec Decision, err error) Decision {
	if err != nil {
		s.failed.Add(1)
		return dec.refuse("unsent", "%v", err)
	}
	s.answered.Add(1)
	return dec
}

// admit counts a packet of a client, and reports whether it is within its share of the batch.
func (a *answers) admit(m addr.MAC) bool {
	a.shares[m]++
	return a.shares[m] <= share
}
