// SPDX-License-Identifier: Apache-2.0

package tftp

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/pin/tftp/v3"

	"github.com/ironrail/ironrail/internal/errkind"
)

// serveSingle serves a connection that is no socket of the operating system: all
// transfers go through it. It returns nil when ctx is done, with conn closed and
// all transfers ended.
func serveSingle(ctx context.Context, srv *tftp.Server, conn net.PacketConn) error {
	srv.SetBlockSizeNegotiation(false) // there is no interface whose MTU could be asked for
	srv.EnableSinglePort()
	conn = &dedupConn{PacketConn: conn}
	defer conn.Close()
	// The library must see the end before it sees a closed connection: reading
	// from that one it would spin until the last transfer has ended.
	stop := context.AfterFunc(ctx, srv.Shutdown)
	defer stop()
	for {
		err, broken := serveOnce(srv, conn)
		switch {
		case broken:
			continue
		case ctx.Err() != nil:
			return nil
		}
		return errkind.New(errkind.Internal, "tftp: serve %s: %w", conn.LocalAddr(), err)
	}
}

// serveOnce serves until the end or until the library panics: v3.2.0 sends into
// the channel of a transfer that may just have been closed. That costs the one
// datagram, and its sender repeats it.
func serveOnce(srv *tftp.Server, conn net.PacketConn) (err error, broken bool) {
	defer func() { broken = recover() != nil }()
	return srv.Serve(conn), false
}

// remembered is how many peers a sparing connection keeps in mind.
const remembered = 8192

// dedupConn drops an acknowledgement that comes again before anything was sent to
// its peer. In single-port mode the library begins to wait anew with every
// datagram, so that a client that repeats itself faster than the time-out would
// keep it from ever sending a lost block again.
type dedupConn struct {
	net.PacketConn

	mu   sync.Mutex // guards last; never held while waiting
	last map[netip.AddrPort][4]byte
}

// ReadFrom waits for a datagram that tells something.
func (s *dedupConn) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := s.PacketConn.ReadFrom(b)
		if u, ok := from.(*net.UDPAddr); err != nil || !ok || !s.again(u.AddrPort(), b[:n]) {
			return n, from, err
		}
	}
}

// again reports whether a datagram repeats an acknowledgement, and remembers it.
func (s *dedupConn) again(from netip.AddrPort, b []byte) bool {
	if len(b) != 4 || b[1] != 4 { // RFC 1350, 5: opcode 4, block
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ack := [4]byte(b)
	if s.last[from] == ack {
		return true
	}
	if s.last == nil || len(s.last) >= remembered {
		s.last = map[netip.AddrPort][4]byte{}
	}
	s.last[from] = ack
	return false
}

// WriteTo sends a datagram, after which the peer may say the same again.
func (s *dedupConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if u, ok := to.(*net.UDPAddr); ok {
		s.mu.Lock()
		delete(s.last, u.AddrPort())
		s.mu.Unlock()
	}
	return s.PacketConn.WriteTo(b, to)
}
