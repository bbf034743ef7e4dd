// SPDX-License-Identifier: Apache-2.0

// Package throughput measures what TCP carries between two installed nodes over one of their
// networks, each way, and how large a packet may be on the way. It judges nothing.
//
// One node listens on its own address in that network, on a port that the kernel chooses, and
// the other connects to it. Both know a token that the controller made for this measurement:
// a connection without it is closed. Every wait has an end, and nothing is left behind: there is
// no file, and what listens is gone with the process. The program that is usual for it, iperf3, is
// on few nodes.
package throughput

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// Bounds of what a caller may ask for.
const (
	tokenBytes  = 16
	mostStreams = 64
	mostSeconds = 60
	mostWait    = 120
)

// Session is one measurement between two nodes, as one of them knows it.
type Session struct {
	Local   netip.Addr
	Netdev  string // that has it
	Token   [tokenBytes]byte
	Streams int
	Long    time.Duration // that each direction is loaded
	Wait    time.Duration // for the other end
	// Peer is the end that listens, Echo its UDP port, and MTU the largest packet that both
	// interfaces send at once, bytes; of no meaning for the end that listens.
	Peer netip.AddrPort
	Echo uint16
	MTU  int
}

// Seen is what one end has seen.
type Seen struct {
	Received wire.Received
	Sent     wire.Sent
	Path     *wire.PathMTU
}

// Machine has the sockets.
type Machine interface {
	// Find finds an address of this node: the one that is wanted, or where that is not valid the
	// first in the network; and the interface that has it.
	Find(network netip.Prefix, want netip.Addr) (netip.Addr, string, error)
	// Serve listens, calls ready with the TCP and the UDP port, and takes part in one measurement.
	Serve(ctx context.Context, s Session, ready func(tcp, udp uint16) error) (Seen, error)
	// Measure connects, and measures both ways.
	Measure(ctx context.Context, s Session) (Seen, error)
}

// Meter is one end of a measurement.
type Meter struct {
	FS      sysfs.FS
	Machine Machine
	// Lock makes sure that nothing else of ours loads the node.
	Lock func(context.Context) (release func(), err error)
	// Ready takes the line that says where this end listens.
	Ready io.Writer
}

// Run takes part in one measurement.
func (m Meter) Run(ctx context.Context, p wire.ThroughputParams) wire.Throughput {
	s, err := newSession(p)
	if err != nil {
		return failed(err)
	}
	if s.Local, s.Netdev, err = m.Machine.Find(p.Network, p.Address); err != nil {
		return failed(err)
	}
	r := wire.Throughput{Link: m.link(s)}
	release, err := m.Lock(ctx)
	if err != nil {
		return failed(err)
	}
	defer release()
	var seen Seen
	if s.Peer.IsValid() {
		if s.MTU = r.Link.MTU; p.MTU > 0 {
			s.MTU = min(s.MTU, p.MTU)
		}
		seen, err = m.Machine.Measure(ctx, s)
	} else {
		seen, err = m.Machine.Serve(ctx, s, func(tcp, udp uint16) error {
			return json.NewEncoder(m.Ready).Encode(wire.ThroughputReady{Listening: netip.AddrPortFrom(s.Local, tcp).String(), Echo: udp, Link: r.Link})
		})
	}
	r.Received, r.Sent, r.Path = seen.Received, seen.Sent, seen.Path
	if err != nil {
		r.Error = failed(err).Error
	}
	return r
}

func failed(err error) wire.Throughput {
	return wire.Throughput{Error: &wire.TaskError{Kind: errkind.Of(err).String(), Text: err.Error(), Action: errkind.Action(err)}}
}

// newSession checks what a caller asks for.
func newSession(p wire.ThroughputParams) (s Session, err error) {
	token, err := hex.DecodeString(p.Token)
	if err != nil || len(token) != tokenBytes {
		return s, errkind.New(errkind.Invalid, "a measurement needs a token of %d hex digits", 2*tokenBytes)
	}
	copy(s.Token[:], token)
	if !p.Network.IsValid() || p.Streams < 1 || p.Streams > mostStreams || !(p.Seconds > 0 && p.Seconds <= mostSeconds) || !(p.Wait > 0 && p.Wait <= mostWait) {
		return s, errkind.New(errkind.Invalid, "a measurement needs a network, 1 to %d streams, up to %d seconds each way and up to %d seconds for the other end", mostStreams, mostSeconds, mostWait)
	}
	s.Streams, s.Long, s.Wait = p.Streams, seconds(p.Seconds), seconds(p.Wait)
	if p.Peer == "" {
		return s, nil
	}
	s.Echo = p.Echo
	if s.Peer, err = netip.ParseAddrPort(p.Peer); err != nil {
		return s, errkind.New(errkind.Invalid, "the other end: %w", err)
	}
	return s, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// link is the interface that has the address.
func (m Meter) link(s Session) wire.NetworkLink {
	l := wire.NetworkLink{Netdev: s.Netdev, PCI: m.FS.NetdevPCI(s.Netdev), Address: s.Local.String()}
	l.MTU = int(max(m.FS.Int("sys/class/net", s.Netdev, "mtu"), 0))
	l.Bits = max(m.FS.Int("sys/class/net", s.Netdev, "speed"), 0) * 1e6 // Mb/s; -1 where the driver does not know
	return l
}

// errNoPeer is a peer that did not come, or could not be reached.
var errNoPeer = errors.New("no TCP connection with the other node")
