// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
)

// Ports of RFC 2131 section 4.1; a relay has the server's port on both sides.
const serverPort = 67

// Places in a DHCP packet (RFC 2131 section 2).
const (
	atHops    = 3
	atXID     = 4
	atGateway = 24
	atMAC     = 28
	atOptions = 240 // behind the magic cookie
)

// maxPacket is larger than what any client here announces (1472 bytes).
const maxPacket = 2048

// waiting is how many replies a client has time for; more are lost.
const waiting = 8

// RelayConfig is where a relay stands.
type RelayConfig struct {
	Net     network.Network     // at the relay's address
	Address netip.Addr          // the relay's, sent as giaddr
	Beside  *AddressServer      // in the relay's broadcast domain; nil: none
	Server  netip.Addr          // the DHCP server's
	Loss    func(addr.MAC) bool // asked for each packet of a client, either way; true: it is lost. Nil: none. Must not block
}

// Relay is the DHCP relay agent of a network, and its broadcast domain: it takes
// the broadcasts of all nodes, and hands each reply to the node with its MAC
// (RFC 1542, section 4). It is safe for concurrent use. It costs one goroutine.
type Relay struct {
	cfg RelayConfig

	mu    sync.Mutex // guards what follows; never held across a wait
	conn  net.PacketConn
	ports map[addr.MAC]chan []byte
	other func(packet []byte) (answer []byte) // a DHCP server in the broadcast domain; nil: none
}

// NewRelay makes a relay; before Run all packets are lost.
func NewRelay(cfg RelayConfig) *Relay { return &Relay{cfg: cfg, ports: map[addr.MAC]chan []byte{}} }

// Run relays until ctx is done, and then returns nil with its socket closed. An
// address that cannot be listened on is an error of kind Refused.
func (r *Relay) Run(ctx context.Context) error {
	at := netip.AddrPortFrom(r.cfg.Address, serverPort)
	conn, err := r.cfg.Net.ListenPacket(ctx, "udp4", at.String())
	if err != nil {
		return errkind.New(errkind.Refused, "dhcp relay: listen on %s: %w", at, err)
	}
	r.use(conn)
	defer r.use(nil)
	return receivePackets(ctx, conn, "dhcp relay", r.hand)
}

// receivePackets hands every packet of conn to handle, and closes conn when ctx is done; then
// it returns nil. name begins the error of a socket that somebody else closed.
func receivePackets(ctx context.Context, conn net.PacketConn, name string, handle func(packet []byte)) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	b := make([]byte, maxPacket)
	for {
		n, _, err := conn.ReadFrom(b)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return errkind.New(errkind.Internal, "%s: %w", name, err)
		case err != nil:
			if sleepFor(ctx, 100*time.Millisecond) != nil {
				return nil
			}
			continue
		}
		handle(b[:n])
	}
}

func (r *Relay) use(conn net.PacketConn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn = conn
}

// hand gives a reply to its client, if it is for our network and somebody waits.
func (r *Relay) hand(p []byte) {
	const reply = 2
	if len(p) < atOptions || p[0] != reply || netip.AddrFrom4([4]byte(p[atGateway:])) != r.cfg.Address {
		return
	}
	mac := addr.MAC(p[atMAC : atMAC+6])
	if r.isLost(mac) {
		return
	}
	r.deliver(mac, append([]byte(nil), p...))
}

// deliver gives a packet to a client, if it waits.
func (r *Relay) deliver(mac addr.MAC, p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case r.ports[mac] <- p: // a nil channel takes nothing
	default:
	}
}

// join puts a DHCP server into the broadcast domain, which answers at once; nil takes
// it out.
func (r *Relay) join(answer func([]byte) []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.other = answer
}

// forward shows a client's broadcast to the server of the domain, before a relayed one can
// be faster.
func (r *Relay) forward(mac addr.MAC, p []byte) {
	r.mu.Lock()
	other := r.other
	r.mu.Unlock()
	if s := r.cfg.Beside; s != nil {
		if a := s.answer(p); a != nil {
			r.deliver(mac, a)
		}
	}
	if other == nil {
		return
	}
	if a := other(p); a != nil {
		r.deliver(mac, a)
	}
}

// broadcast passes a client's packet on to the server, with giaddr set.
func (r *Relay) broadcast(mac addr.MAC, p []byte) {
	if r.isLost(mac) {
		return
	}
	r.forward(mac, p)
	gateway := r.cfg.Address.As4()
	copy(p[atGateway:], gateway[:])
	p[atHops]++
	r.mu.Lock()
	conn := r.conn
	r.mu.Unlock()
	if conn != nil {
		_, _ = conn.WriteTo(p, net.UDPAddrFromAddrPort(netip.AddrPortFrom(r.cfg.Server, serverPort))) // lost, and sent again
	}
}

func (r *Relay) isLost(mac addr.MAC) bool { return r.cfg.Loss != nil && r.cfg.Loss(mac) }

// plug lets a client hear; unplug it when it has done.
func (r *Relay) plug(mac addr.MAC) <-chan []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	port := make(chan []byte, waiting)
	r.ports[mac] = port
	return port
}

func (r *Relay) unplug(mac addr.MAC) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ports, mac)
}

// sleepFor waits on the wall clock, for I/O.
func sleepFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
