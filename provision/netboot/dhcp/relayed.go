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

// send sends one reply as a plain datagram, or says why it cannot.
func (r *relayed) send(p Path, dst netip.Addr, _ net.HardwareAddr, b []byte) error {
	port := r.client
	switch p {
	case ToRelay:
		port = r.port
	case ToAddress:
	default:
		return errDirect
	}
	to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(dst, port))
	if _, err := r.conn.WriteTo(b, to); err != nil {
		return fmt.Errorf("send to %s: %w", to, err)
	}
	return nil
}

// receiveEach is receive on a socket that reads one packet at a time. It waits
// where a queue is full instead of dropping: what is lost must not depend on how
// busy the controller of a rehearsal is.
func (s *Server) receiveEach(ctx context.Context) error {
	d := s.free.Get().(*datagram)
	for {
		_, err := s.next(ctx, s.conn, d)
		if err != nil {
			return err
		}
		d.from = netip.AddrPort{}
		select {
		case s.queueOf(d) <- d:
			d = s.free.Get().(*datagram)
		case <-ctx.Done():
			return nil
		}
	}
}

// next reads the next packet that may be a request, and returns whom it is from. An error: the
// socket was closed, or ctx ended.
func (s *Server) next(ctx context.Context, conn net.PacketConn, d *datagram) (net.Addr, error) {
	for {
		n, from, err := conn.ReadFrom(d.b[:])
		switch {
		case errors.Is(err, net.ErrClosed) || ctx.Err() != nil:
			return nil, fmt.Errorf("dhcp: socket closed: %w", net.ErrClosed)
		case err != nil:
			if !pauseFor(ctx, 100*time.Millisecond) {
				return nil, context.Cause(ctx)
			}
			continue
		}
		s.received.Add(1)
		if d.n = n; n >= chaddrEnd {
			return from, nil
		}
		s.malformed.Add(1)
	}
}

// plain reports whether the server's network is not the operating system's.
func (c Config) plain() bool { return !network.IsOS(c.Network) }
