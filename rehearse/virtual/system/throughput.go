// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bufio"
	"context"
	"encoding/hex"
	"maps"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/throughput"
)

// runThroughput is agentProgram for measurements of networks.
func (c call) runThroughput(ctx context.Context) int {
	var p wire.ThroughputParams
	if status := c.params(ctx, &p); status != 0 {
		return status
	}
	r := throughput.Meter{FS: c.n.fs, Machine: sockets{c.n}, Lock: c.n.burning.lock, Ready: atOnce{c.Out}}.Run(ctx, p)
	return c.answer(r, r.Error)
}

// BootNetwork is what a node's boot NIC carries by TCP, bytes a second, and the largest packet that
// passes, bytes; 0: all that its interface sends.
type BootNetwork struct {
	Netdev          string
	Sends, Receives float64
	Packet          int
}

// sockets take part in the agent's measurements of the boot network: both ends find each other
// over it, take their time, and the figures are those of the hardware.
type sockets struct{ n *node }

var _ throughput.Machine = sockets{}

const (
	firstThroughputPort = 40000
	throughputPorts     = 10000
	// startOfTCP is the part of a direction that is not counted, as the agent has it.
	startOfTCP = 6
	segment    = 1448 // bytes
	againOf    = 50   // segments of a path that is held back, of which one is sent once more
	probing    = 100 * time.Millisecond
)

// ends is what both ends say to each other.
type ends struct {
	Token string
	BootNetwork
}

func (s sockets) self() (b BootNetwork) {
	if s.n.cfg.BootNetwork != nil {
		b = s.n.cfg.BootNetwork()
	}
	return b
}

// Find implements throughput.Machine.
func (s sockets) Find(net netip.Prefix, want netip.Addr) (netip.Addr, string, error) {
	b, a := s.self(), s.n.cfg.Address
	if on, name, ok := s.n.taggedIn(net, b.Netdev); ok && (!want.IsValid() || want == on) {
		return on, name, nil
	}
	if b.Netdev == "" || !net.Contains(a) || want.IsValid() && want != a {
		return a, "", errkind.New(errkind.NotFound, "no interface that is up has an address in %s", net)
	}
	return a, b.Netdev, nil
}

// Serve implements throughput.Machine.
func (s sockets) Serve(ctx context.Context, t throughput.Session, ready func(tcp, udp uint16) error) (seen throughput.Seen, err error) {
	port := uint16(firstThroughputPort + s.n.cfg.Site.measurements.Add(1)%throughputPorts)
	ln, err := s.n.cfg.Net.Listen(ctx, "tcp", netip.AddrPortFrom(s.n.cfg.Address, port).String())
	if err != nil {
		return seen, errkind.New(errkind.Internal, "%w", err)
	}
	defer ln.Close()
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	if err := ready(port, port); err != nil {
		return seen, err
	}
	conn, err := ln.Accept()
	if err != nil {
		return seen, errkind.New(errkind.Unreachable, "%w", err)
	}
	return s.exchange(ctx, t, conn)
}

// Measure implements throughput.Machine.
func (s sockets) Measure(ctx context.Context, t throughput.Session) (seen throughput.Seen, err error) {
	conn, err := s.n.cfg.Net.Dial(ctx, "tcp", netip.AddrPortFrom(s.n.cfg.Site.behind(t.Peer.Addr()), t.Peer.Port()).String())
	if err != nil {
		return seen, errkind.New(errkind.Unreachable, "%w", err)
	}
	return s.exchange(ctx, t, conn)
}

// taggedIn is the address that a VLAN interface on the boot NIC, or on a bond of it, has in a
// network, with its name.
func (n *node) taggedIn(net netip.Prefix, boot string) (a netip.Addr, name string, ok bool) {
	for _, name := range n.cfg.Kernel.VLANs() {
		_, over, _ := strings.Cut(n.fs.Text("proc/net/vlan", name), "Device: ")
		list, err := n.cfg.Kernel.Addresses(name)
		if err != nil || over != boot && n.cfg.Kernel.Carrying(over) == "" {
			continue
		}
		for _, a := range list {
			if net.Contains(a.Addr()) {
				return a.Addr(), name, true
			}
		}
	}
	return a, "", false
}

// behind is the address on the boot network of the node that has an address, there or on a VLAN
// interface; the address itself where no node is up that has it. Frames of VLANs take the cables of
// the boot network.
func (s *Site) behind(a netip.Addr) netip.Addr {
	if s.at(a) != nil {
		return a
	}
	s.mu.Lock()
	all := maps.Clone(s.up)
	s.mu.Unlock()
	for boot, n := range all {
		if _, _, ok := n.taggedIn(netip.PrefixFrom(a, a.BitLen()), n.bootNetdev()); ok {
			return boot
		}
	}
	return a
}

// bootNetdev is the interface of the boot NIC.
func (n *node) bootNetdev() string {
	if n.cfg.BootNetwork == nil {
		return ""
	}
	return n.cfg.BootNetwork().Netdev
}

// exchange sends the other end what this one carries, and works out what comes of both.
func (s sockets) exchange(ctx context.Context, t throughput.Session, conn net.Conn) (seen throughput.Seen, err error) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	mine, peer := ends{hex.EncodeToString(t.Token[:]), s.self()}, ends{}
	if err = sendMessage(conn, mine); err == nil {
		err = receiveMessage(bufio.NewReader(conn), &peer)
	}
	if err != nil || peer.Token != mine.Token {
		return seen, errkind.New(errkind.Unreachable, "the other end is another one (%w)", err)
	}
	if s.n.cfg.Clock.Sleep(ctx, probing+2*t.Long) != nil {
		return seen, ctx.Err()
	}
	counted := t.Long - t.Long/startOfTCP
	in, out := min(peer.Sends, mine.Receives), min(mine.Sends, peer.Receives)
	seen.Received = wire.Received{Bytes: int64(in * counted.Seconds()), Seconds: counted.Seconds()}
	seen.Sent.Segments = int64(out * t.Long.Seconds() / segment)
	if out < in/2 {
		seen.Sent.Again = seen.Sent.Segments / againOf
	}
	if t.Peer.IsValid() && t.MTU > 0 {
		passes := t.MTU
		for _, most := range []int{mine.Packet, peer.Packet} {
			if most > 0 {
				passes = min(passes, most)
			}
		}
		seen.Path = &wire.PathMTU{Asked: t.MTU, Sent: passes, Received: passes}
	}
	return seen, nil
}
