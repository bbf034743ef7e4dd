// SPDX-License-Identifier: Apache-2.0

package throughput

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Host has the sockets of this very system. Its clock is the wall's: what it measures is real.
type Host struct{}

var _ Machine = Host{}

const (
	dialTime  = 5 * time.Second // to connect and to be let in
	probeTime = 15 * time.Second
	grace     = 5 * time.Second // for what was under way at the end of a direction
)

// wall is what the measurements are timed by.
var wall = clock.Wall{}

// limit is how long a measurement takes at most, from its first connection on.
func (s Session) limit() time.Duration { return probeTime + 2*(dialTime+s.Long+grace) }

// Find implements Machine.
func (Host) Find(network netip.Prefix, want netip.Addr) (netip.Addr, string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return netip.Addr{}, "", errkind.New(errkind.Internal, "%w", err)
	}
	for _, i := range all {
		list, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		for _, a := range list {
			n, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			if ip, ok := netip.AddrFromSlice(n.IP); ok && (ip.Unmap() == want || !want.IsValid() && network.Contains(ip.Unmap())) {
				return ip.Unmap(), i.Name, nil
			}
		}
	}
	if want.IsValid() {
		return netip.Addr{}, "", errkind.New(errkind.NotFound, "no interface that is up has the address %s", want)
	}
	return netip.Addr{}, "", errkind.New(errkind.NotFound, "no interface that is up has an address in %s", network)
}

// What a connection is for, as its first message says after the token.
const (
	control = 'C' // it stays open as long as the measurement lasts
	toPeer  = 'S' // who connected sends
	toSelf  = 'R' // who connected receives
	letIn   = 'k' // the answer
)

// Measure implements Machine.
func (Host) Measure(ctx context.Context, s Session) (seen Seen, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit())
	defer cancel()
	first, err := s.dial(ctx, control)
	if err != nil {
		return seen, err
	}
	defer first.Close()
	if s.MTU > 0 {
		seen.Path = s.probe(ctx)
	}
	out, err := s.dialAll(ctx, toPeer)
	if err != nil {
		return seen, err
	}
	sent := newSender(s.Long)
	each(out, func(c *net.TCPConn) { sent.send(ctx, c) })
	seen.Sent = sent.total()
	in, err := s.dialAll(ctx, toSelf)
	if err != nil {
		return seen, err
	}
	got := newMeter(s.Long)
	each(in, func(c *net.TCPConn) { got.receive(ctx, c) })
	seen.Received = got.total()
	if err := ctx.Err(); err != nil {
		return seen, errkind.New(errkind.Timeout, "the measurement did not end in %s: %w", s.limit(), err)
	}
	return seen, nil
}

// each works on all connections at once, and closes them.
func each(list []*net.TCPConn, work func(*net.TCPConn)) {
	var g errgroup.Group
	for _, c := range list {
		g.Go(func() error {
			defer c.Close()
			work(c)
			return nil
		})
	}
	_ = g.Wait() // none of them fails
}

// dial connects to the other end, which lets in whoever knows the token.
func (s Session) dial(ctx context.Context, what byte) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: dialTime, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(s.Local, 0))}
	conn, err := d.DialContext(ctx, "tcp", s.Peer.String())
	if err != nil {
		return nil, errkind.New(errkind.Unreachable, "%w: %w", errNoPeer, err)
	}
	c := conn.(*net.TCPConn) // of a dial of tcp
	_ = c.SetDeadline(wall.Now().Add(dialTime))
	answer := []byte{0}
	if _, err = c.Write(append(s.Token[:], what)); err == nil {
		_, err = io.ReadFull(c, answer)
	}
	if err == nil && answer[0] != letIn {
		err = fmt.Errorf("it answers %q", answer)
	}
	if err != nil {
		_ = c.Close()
		return nil, errkind.New(errkind.Unreachable, "%w: %s does not let it in: %w", errNoPeer, s.Peer, err)
	}
	_ = c.SetDeadline(time.Time{})
	return c, nil
}

// dialAll opens the connections of one direction.
func (s Session) dialAll(ctx context.Context, what byte) (list []*net.TCPConn, err error) {
	for range s.Streams {
		c, err := s.dial(ctx, what)
		if err != nil {
			each(list, func(*net.TCPConn) {})
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}
