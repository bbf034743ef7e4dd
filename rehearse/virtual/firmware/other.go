// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
)

// pingTime is how long the server looks whether an address is in use before it offers
// it to a client that it has not seen before, as dnsmasq does.
const pingTime = 3 * time.Second

// OtherConfig is a DHCP server that somebody else runs on the boot network.
type OtherConfig struct {
	Net         network.Network // at the server's address
	Address     netip.Addr
	Relay       *Relay     // whose broadcast domain it is in
	Lease       netip.Addr // what it offers everybody
	File        string     // boot file that it names
	VendorClass string     // option 60 of its answers
}

// OtherDHCP is that server. It is not there before it is plugged in. It is safe for
// concurrent use, and costs one goroutine.
type OtherDHCP struct {
	cfg OtherConfig

	mu   sync.Mutex // guards what follows
	in   bool
	seen bool // a DISCOVER that was sent to all
}

// NewOtherDHCP makes a server that is not plugged in.
func NewOtherDHCP(cfg OtherConfig) *OtherDHCP { return &OtherDHCP{cfg: cfg} }

// Plug plugs the server in, or takes it out.
func (o *OtherDHCP) Plug(in bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.in, o.seen = in, false
	if in {
		o.cfg.Relay.join(o.answer)
	} else {
		o.cfg.Relay.join(nil)
	}
}

// Run hears what devices other than nodes send to all, until ctx is done. An address
// that cannot be listened on is an error of kind Refused.
func (o *OtherDHCP) Run(ctx context.Context) error {
	at := netip.AddrPortFrom(o.cfg.Address, serverPort)
	conn, err := o.cfg.Net.ListenPacket(ctx, "udp4", at.String())
	if err != nil {
		return errkind.New(errkind.Refused, "other DHCP server: listen on %s: %w", at, err)
	}
	return receivePackets(ctx, conn, "other DHCP server", func(packet []byte) {
		if !o.ready(ctx) {
			return
		}
		if a := o.answer(packet); a != nil {
			to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), serverPort+1)
			_, _ = conn.WriteTo(a, net.UDPAddrFromAddrPort(to)) // lost, and asked for again
		}
	})
}

// ready reports whether the server is plugged in, and waits as long as it looks whether
// an address is in use, the first time; what comes meanwhile waits too.
func (o *OtherDHCP) ready(ctx context.Context) bool {
	o.mu.Lock()
	in, seen := o.in, o.seen
	o.seen = in
	o.mu.Unlock()
	return in && (seen || sleepFor(ctx, pingTime) == nil)
}

// answer answers DISCOVER and REQUEST; nil for everything else.
func (o *OtherDHCP) answer(packet []byte) []byte {
	q, err := dhcpv4.FromBytes(packet)
	if err != nil || q.OpCode != dhcpv4.OpcodeBootRequest {
		return nil
	}
	kind, ok := leasing(q, o.cfg.Address)
	if !ok {
		return nil
	}
	a := leaseReply(q, kind, o.cfg.Address, o.cfg.Lease)
	a.ServerIPAddr, a.BootFileName = o.cfg.Address.AsSlice(), o.cfg.File
	if o.cfg.VendorClass != "" {
		a.Options[uint8(dhcpv4.OptionClassIdentifier)] = []byte(o.cfg.VendorClass)
	}
	return a.ToBytes()
}
