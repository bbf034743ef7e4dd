// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/evidence"
)

var relayAt = netip.MustParseAddr("10.0.0.1")

// onMemory serves in a bubble and gives the test the relay's socket.
func onMemory(t *testing.T, src boot.Source, test func(*testing.T, *network.Memory, *Server, *notes, net.PacketConn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, n := network.NewMemory(), newNotes()
		s, err := Open(t.Context(), Config{Network: m.At(controller), Interface: "none", Policy: rules(), Source: src, Recorder: evidence.NewLimiter(n)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx) }()
		relay, err := m.At(relayAt).ListenPacket(t.Context(), "udp", ":67")
		if err != nil {
			t.Fatal(err)
		}
		test(t, m, s, n, relay)
		_ = relay.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// reply reads one reply, nil when none comes within a second.
func reply(t *testing.T, c net.PacketConn) *dhcpv4.DHCPv4 {
	t.Helper()
	b := make([]byte, packetSize)
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	n, from, err := c.ReadFrom(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	p, perr := dhcpv4.FromBytes(b[:n])
	if err != nil || perr != nil || from.String() != "10.0.0.2:67" {
		t.Fatalf("from %v: %v %v", from, err, perr)
	}
	return p
}

func TestRelayed(t *testing.T) {
	onMemory(t, site(), func(t *testing.T, m *network.Memory, s *Server, n *notes, relay net.PacketConn) {
		if got := s.Addr().String(); got != "10.0.0.2:67" {
			t.Errorf("listens on %s", got)
		}
		behind := func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = relayAt.AsSlice() }
		to := net.UDPAddrFromAddrPort(s.Addr())
		for _, tt := range []struct {
			name string
			ask  *dhcpv4.DHCPv4
			want dhcpv4.MessageType // none: no reply
			what string
		}{
			{"discover", ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(pxeVendor), arch(7), behind), dhcpv4.MessageTypeOffer, EventOffer},
			{"request", ask(dhcpv4.MessageTypeRequest, n1mac, vendor(pxeVendor), arch(7), wants("10.0.0.11"), from("10.0.0.2"), behind), dhcpv4.MessageTypeAck, EventAck},
			{"nobody's MAC", ask(dhcpv4.MessageTypeDiscover, addr.MAC{2, 9}, vendor(pxeVendor), arch(7), behind), dhcpv4.MessageTypeNone, eventUnknown},
			{"without a relay, to broadcast", ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(pxeVendor), arch(7), dhcpv4.WithBroadcast(true)), dhcpv4.MessageTypeNone, "unsent"},
			{"without a relay, to a frame", ask(dhcpv4.MessageTypeDiscover, n2mac, vendor(pxeVendor), arch(0)), dhcpv4.MessageTypeNone, "unsent"},
		} {
			_, _ = relay.WriteTo(tt.ask.ToBytes(), to)
			got := reply(t, relay)
			if got == nil != (tt.want == dhcpv4.MessageTypeNone) || got != nil && got.MessageType() != tt.want {
				t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
			}
			e := n.await(t, tt.what)
			if tt.what == "unsent" && (!e.Refused || !strings.Contains(e.Detail, "only clients behind a relay")) {
				t.Errorf("%s: evidence %+v", tt.name, e)
			}
		}
		node, err := m.At(netip.MustParseAddr("10.0.0.11")).ListenPacket(t.Context(), "udp", ":68")
		if err != nil {
			t.Fatal(err)
		}
		renew := ask(dhcpv4.MessageTypeRequest, n1mac, func(p *dhcpv4.DHCPv4) { p.ClientIPAddr = net.IP{10, 0, 0, 11} })
		_, _ = node.WriteTo(renew.ToBytes(), to)
		if got := reply(t, node); got == nil || got.MessageType() != dhcpv4.MessageTypeAck {
			t.Errorf("a renewal: %v", got)
		}
	})
}

// TestRelayedStorm: what comes in one moment is answered, however much it is, and
// rubbish costs nothing but itself.
func TestRelayedStorm(t *testing.T) {
	const nodes = 6000
	onMemory(t, site(), func(t *testing.T, _ *network.Memory, s *Server, _ *notes, relay net.PacketConn) {
		to := net.UDPAddrFromAddrPort(s.Addr())
		p := ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(pxeVendor), arch(7), func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = relayAt.AsSlice() })
		b := p.ToBytes()
		for range nodes {
			_, _ = relay.WriteTo(b, to)
			_, _ = relay.WriteTo(b[:20], to)
		}
		got := 0
		for reply(t, relay) != nil {
			got++
		}
		if st := s.Stats(); got != nodes || st.Answered != nodes || st.Malformed != nodes || st.Dropped != 0 {
			t.Errorf("%d replies; %+v", got, st)
		}
	})
}

// TestRelayedTaken: a second server on the address is refused.
func TestRelayedTaken(t *testing.T) {
	onMemory(t, site(), func(t *testing.T, m *network.Memory, _ *Server, n *notes, _ net.PacketConn) {
		if s, err := Open(t.Context(), Config{Network: m.At(controller), Policy: rules(), Source: site(), Recorder: n}); err == nil {
			_ = s.Close()
			t.Error("two servers on one address")
		}
	})
}
