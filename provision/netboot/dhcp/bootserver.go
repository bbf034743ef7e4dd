// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"

	"github.com/ironrail/ironrail/internal/errkind"
)

// bootServer is the socket of the boot server's port.
type bootServer struct {
	conn   net.PacketConn
	packet *ipv4.PacketConn // of conn; nil where it is no socket of the operating system
	source netip.Addr
}

func openBootServer(ctx context.Context, cfg Config) (*bootServer, error) {
	port := cmp.Or(cfg.BootPort, bootServerPort)
	if !cfg.plain() {
		conn, err := listenUDP(ctx, cfg.Kept, cfg.Interface, port)
		if err != nil {
			return nil, err
		}
		return &bootServer{conn, ipv4.NewPacketConn(conn), cfg.Policy.Address}, nil
	}
	at := netip.AddrPortFrom(cfg.Policy.Address, port)
	conn, err := cfg.Network.ListenPacket(ctx, "udp4", at.String())
	if err != nil {
		return nil, errkind.New(errkind.Refused, "dhcp: listen on %s: %w", at, err).Do("Check that nothing else listens there.")
	}
	return &bootServer{conn, nil, cfg.Policy.Address}, nil
}

// send answers from the address that the offer named.
func (b *bootServer) send(p []byte, to netip.AddrPort) (err error) {
	dst := net.UDPAddrFromAddrPort(to)
	if b.packet != nil {
		_, err = b.packet.WriteTo(p, &ipv4.ControlMessage{Src: b.source.AsSlice()}, dst)
	} else {
		_, err = b.conn.WriteTo(p, dst)
	}
	if err != nil {
		return fmt.Errorf("send to %s: %w", to, err)
	}
	return nil
}

// receiveBoots reads and answers the boot server's port until it is closed.
func (s *Server) receiveBoots(ctx context.Context) {
	b, answers := make([]byte, packetSize), newAnswers(s)
	for {
		n, from, err := s.next(ctx, s.boots.conn, b)
		if err != nil {
			return
		}
		u, ok := from.(*net.UDPAddr)
		if !ok {
			s.malformed.Add(1)
			continue
		}
		a := u.AddrPort()
		s.answer(b[:n], netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), answers)
		answers.flush()
	}
}
