// SPDX-License-Identifier: Apache-2.0

package throughput

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/wire"
)

const (
	mostPacket = 65535 // bytes, of IPv4
	tries      = 4     // of a packet: one that is lost by chance is no limit
	answerTime = 150 * time.Millisecond
)

// probe is the head of a packet: the token, a number, the size that the answer is to have as a
// packet (0: of an answer), and the size that the packet came with (of a receipt).
const probeHead = tokenBytes + 4 + 2 + 2

// headers is what IP and UDP add to what a packet carries.
func (s Session) headers() int {
	if s.Local.Is4() {
		return 20 + 8
	}
	return 40 + 8
}

// least is the size of packets that every path carries (RFC 791, RFC 8200).
func (s Session) least() int {
	if s.Local.Is4() {
		return 576
	}
	return 1280
}

// newPacket is a packet of a size, in bytes with its headers.
func (s Session) newPacket(size int, number uint32, want, came int) []byte {
	b := make([]byte, max(size-s.headers(), probeHead))
	copy(b, s.Token[:])
	binary.BigEndian.PutUint32(b[tokenBytes:], number)
	binary.BigEndian.PutUint16(b[tokenBytes+4:], uint16(want))
	binary.BigEndian.PutUint16(b[tokenBytes+6:], uint16(came))
	return b
}

// parsePacket reads the head of a packet, and whether it is of this measurement.
func (s Session) parsePacket(b []byte) (number uint32, want, came int, ok bool) {
	if len(b) < probeHead || subtle.ConstantTimeCompare(b[:tokenBytes], s.Token[:]) != 1 {
		return 0, 0, 0, false
	}
	return binary.BigEndian.Uint32(b[tokenBytes:]), int(binary.BigEndian.Uint16(b[tokenBytes+4:])), int(binary.BigEndian.Uint16(b[tokenBytes+6:])), true
}

// listenEcho opens the UDP socket of the end that listens.
func (s Session) listenEcho(ctx context.Context) (*net.UDPConn, uint16, error) {
	conn, err := (&net.ListenConfig{Control: forbidFragments}).ListenPacket(ctx, "udp", netip.AddrPortFrom(s.Local, 0).String())
	if err != nil {
		return nil, 0, err
	}
	c := conn.(*net.UDPConn) // of udp
	return c, c.LocalAddr().(*net.UDPAddr).AddrPort().Port(), nil
}

// forbidFragments lets a socket send packets up to the MTU of the interface with the flag "do not
// fragment", whatever the kernel believes of the path (IP_PMTUDISC_PROBE of ip(7)).
func forbidFragments(network, _ string, c syscall.RawConn) error {
	var err error
	asked := c.Control(func(fd uintptr) {
		if network == "udp4" {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
			return
		}
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
	})
	if asked != nil {
		return asked
	}
	return err
}

// answerProbes answers packets that know the token, until the socket is closed: with a receipt,
// which is small, and with a packet of the size that was asked for.
func (s Session) answerProbes(c *net.UDPConn) {
	block := make([]byte, mostPacket)
	for {
		n, from, err := c.ReadFromUDPAddrPort(block)
		if err != nil {
			return
		}
		number, want, _, ok := s.parsePacket(block[:n])
		if !ok || want == 0 {
			continue
		}
		// What cannot be sent does not arrive: that is the answer.
		_, _ = c.WriteToUDPAddrPort(s.newPacket(0, number, 0, n+s.headers()), from)
		_, _ = c.WriteToUDPAddrPort(s.newPacket(want, number, 0, 0), from)
	}
}

// prober looks for the largest packets that pass.
type prober struct {
	s      Session
	conn   *net.UDPConn
	number uint32
}

// probe finds the largest packets that pass each way; nil where nothing could be sent.
func (s Session) probe(ctx context.Context) *wire.PathMTU {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	d := net.Dialer{Timeout: dialTime, LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.Local, 0)), Control: forbidFragments}
	conn, err := d.DialContext(ctx, "udp", netip.AddrPortFrom(s.Peer.Addr(), s.Echo).String())
	if err != nil {
		return nil
	}
	defer conn.Close()
	p := &prober{s: s, conn: conn.(*net.UDPConn)}
	full, least := min(s.MTU, mostPacket), s.least()
	found := &wire.PathMTU{Asked: full}
	found.Sent = largest(ctx, least, full, func(size int) bool { there, _ := p.pass(ctx, size, least); return there })
	found.Received = largest(ctx, least, full, func(size int) bool { _, back := p.pass(ctx, least, size); return back })
	return found
}

// largest finds the largest size that passes, of those up to full; 0 where not even the least does.
func largest(ctx context.Context, least, full int, passes func(int) bool) int {
	if passes(full) {
		return full
	}
	if !passes(least) {
		return 0
	}
	good, bad := least, full
	for bad-good > 1 && ctx.Err() == nil {
		if middle := (good + bad) / 2; passes(middle) {
			good = middle
		} else {
			bad = middle
		}
	}
	return good
}

// pass reports whether a packet of one size reaches the other end, and one of another size comes
// back from it.
func (p *prober) pass(ctx context.Context, out, back int) (there, came bool) {
	for range tries {
		if ctx.Err() != nil {
			break
		}
		p.number++
		if _, err := p.conn.Write(p.s.newPacket(out, p.number, back, 0)); err != nil {
			continue // one that is too large for the interface, or an ICMP error of the one before
		}
		a, b := p.read(back)
		if there, came = there || a, came || b; there && came {
			break
		}
	}
	return there, came
}

// read waits for the receipt and the answer of the last packet.
func (p *prober) read(back int) (there, came bool) {
	block := make([]byte, mostPacket)
	_ = p.conn.SetReadDeadline(wall.Now().Add(answerTime))
	for !there || !came {
		n, err := p.conn.Read(block)
		if err != nil {
			break
		}
		number, _, size, ok := p.s.parsePacket(block[:n])
		switch {
		case !ok || number != p.number:
		case size > 0:
			there = true
		case n+p.s.headers() == back:
			came = true
		}
	}
	return there, came
}
