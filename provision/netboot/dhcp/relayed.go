// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
)

// errDirect is why a client that did not ask through a relay gets nothing on a
// network without broadcasts and raw frames.
var errDirect = errors.New("this network carries no broadcast and no raw frame: only clients behind a relay are answered")

// openOn opens a server on a network that is not the operating system's. There
// is one socket, on the server's own address; clients ask through a relay.
func openOn(ctx context.Context, cfg Config) (*Server, error) {
	at := netip.AddrPortFrom(cfg.Policy.Address, cfg.Port)
	conn, err := cfg.Network.ListenPacket(ctx, "udp4", at.String())
	if err != nil {
		return nil, errkind.New(errkind.Refused, "dhcp: listen on %s: %w", at, err).
			Do("Check that nothing else listens there, and that the controller's address of the inventory is on this network.")
	}
	s := newServer(cfg, conn)
	s.wire = &relayed{conn: conn, port: cfg.Port, client: cfg.Port + 1}
	return s, nil
}

// relayed sends replies to relays, and to clients that have an address already.
// Its methods may be called from many goroutines.
type relayed struct {
	conn         net.PacketConn
	port, client uint16 // of relays, of clients
}

// send sends replies as plain datagrams, or says why it cannot.
func (r *relayed) send(replies []*outgoing) {
	for _, out := range replies {
		out.err = r.sendOne(out)
	}
}

func (r *relayed) sendOne(out *outgoing) error {
	port := r.client
	switch out.path {
	case ToRelay:
		port = r.port
	case ToAddress:
	default:
		return errDirect
	}
	to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(out.dst, port))
	if _, err := r.conn.WriteTo(out.message(), to); err != nil {
		return fmt.Errorf("send to %s: %w", to, err)
	}
	return nil
}

// receiveEach is receive on a socket that reads one packet at a time.
func (s *Server) receiveEach(ctx context.Context) error {
	b, a := make([]byte, packetSize), newAnswers(s)
	for {
		n, _, err := s.next(ctx, s.conn, b)
		if err != nil {
			return err
		}
		s.answer(b[:n], netip.AddrPort{}, a)
		a.flush()
	}
}

// next reads the next packet that may be a request into b, and returns its size and whom it is
// from. An error: the socket was closed, or ctx ended.
func (s *Server) next(ctx context.Context, conn net.PacketConn, b []byte) (int, net.Addr, error) {
	for {
		n, from, err := conn.ReadFrom(b)
		switch {
		case errors.Is(err, net.ErrClosed) || ctx.Err() != nil:
			return 0, nil, fmt.Errorf("dhcp: socket closed: %w", net.ErrClosed)
		case err != nil:
			if !pauseFor(ctx, 100*time.Millisecond) {
				return 0, nil, context.Cause(ctx)
			}
			continue
		}
		s.received.Add(1)
		if n >= chaddrEnd {
			return n, from, nil
		}
		s.malformed.Add(1)
	}
}

// plain reports whether the server's network is not the operating system's.
func (c Config) plain() bool { return !network.IsOS(c.Network) }
