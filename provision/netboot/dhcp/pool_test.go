// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/internal/addr"
)

var unknownMAC = addr.MAC{2, 9, 9, 9, 9, 9}

func machine(i int) addr.MAC { return addr.MAC{2, 8, 0, 0, byte(i >> 8), byte(i)} }

// newPool has ten addresses, of which the third is somebody's.
func newPool() *Pool {
	return NewPool(netip.MustParseAddr("10.0.0.100"), netip.MustParseAddr("10.0.0.109"), func(a netip.Addr) bool { return a.String() == "10.0.0.102" })
}

// pooled has a network of the server with a pool, one behind a relay with a pool, and one
// behind a relay without.
func pooled() Policy {
	p := rules()
	p.Networks = []Network{
		{Name: "boot", Prefix: netip.MustParsePrefix("10.0.0.0/24"), Local: true, Relays: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Pool: newPool(), Gateway: netip.MustParseAddr("10.0.0.1")},
		{Name: "oob", Prefix: netip.MustParsePrefix("10.0.1.0/24"), Relays: []netip.Addr{netip.MustParseAddr("10.0.1.1")},
			Pool: NewPool(netip.MustParseAddr("10.0.1.200"), netip.MustParseAddr("10.0.1.239"), func(netip.Addr) bool { return false })},
		{Name: "other", Prefix: netip.MustParsePrefix("10.0.2.0/24"), Relays: []netip.Addr{netip.MustParseAddr("10.0.2.1")}},
	}
	return p
}

func behind(relay string, mods ...dhcpv4.Modifier) dhcpv4.Modifier {
	return func(p *dhcpv4.DHCPv4) {
		dhcpv4.WithRelay(net.ParseIP(relay))(p)
		for _, m := range mods {
			m(p)
		}
	}
}

// circuit is option 82 with a circuit id.
func circuit(id string) dhcpv4.Modifier { return opt(82, append([]byte{1, byte(len(id))}, id...)...) }

// TestPool: a machine that nobody knows gets an address of the pool of the network that it
// asks from, and nothing to boot; what a node has is never given.
func TestPool(t *testing.T) {
	t.Parallel()
	const discover, request = dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest
	tests := []struct {
		name   string
		in     *dhcpv4.DHCPv4
		reply  dhcpv4.MessageType
		gets   string // begin of the address
		what   string
		detail string
	}{
		{"discover", ask(discover, unknownMAC, vendor(pxeVendor), arch(7)), dhcpv4.MessageTypeOffer, "10.0.0.10", "", ""},
		{"discover with a request", ask(discover, unknownMAC, wants("10.0.0.107")), dhcpv4.MessageTypeOffer, "10.0.0.107", "", ""},
		{"a request outside", ask(discover, unknownMAC, wants("10.0.0.11")), dhcpv4.MessageTypeOffer, "10.0.0.10", "", ""},
		{"request", ask(request, unknownMAC, wants("10.0.0.105"), from("10.0.0.2"), vendor("SMCI"), opt(12, []byte("bmc-77")...)), dhcpv4.MessageTypeAck, "10.0.0.105", EventPool, `vendor class "SMCI", host name "bmc-77") is not in the inventory, and gets 10.0.0.105 of network boot for 10m0s, and nothing to boot`},
		{"request of what is somebody's", ask(request, unknownMAC, wants("10.0.0.102"), from("10.0.0.2")), 0, "", "", ""},
		{"request of a node's address", ask(request, unknownMAC, wants("10.0.0.11"), from("10.0.0.2")), 0, "", "", ""},
		{"request to another server", ask(request, unknownMAC, wants("10.0.0.105"), from("10.0.0.9")), 0, "", "", ""},
		{"after a restart", ask(request, unknownMAC, dhcpv4.WithClientIP(net.IP{10, 0, 0, 105})), dhcpv4.MessageTypeAck, "10.0.0.105", EventPool, ""},
		{"through a relay", ask(discover, unknownMAC, behind("10.0.1.1")), dhcpv4.MessageTypeOffer, "10.0.1.2", "", ""},
		{"request through a relay", ask(request, unknownMAC, wants("10.0.1.201"), from("10.0.0.2"), behind("10.0.1.1", circuit("Ethernet4"))), dhcpv4.MessageTypeAck, "10.0.1.201", EventPool, `relay 10.0.1.1, circuit id "Ethernet4"`},
		{"renewal of another network", ask(request, unknownMAC, dhcpv4.WithClientIP(net.IP{10, 0, 1, 201})), dhcpv4.MessageTypeAck, "10.0.1.201", EventPool, "network oob"},
		{"link selection", ask(discover, unknownMAC, behind("10.0.0.1", opt(82, 5, 4, 10, 0, 1, 0))), 0, "", eventUnknown, ""},
		{"an unknown relay", ask(discover, unknownMAC, behind("10.0.1.66")), 0, "", eventUnknown, ""},
		{"a network without a pool", ask(discover, unknownMAC, behind("10.0.2.1")), 0, "", eventUnknown, ""},
		{"an unknown network", ask(discover, unknownMAC, behind("10.9.9.1")), 0, "", eventUnknown, ""},
		{"a node", ask(discover, n2mac), dhcpv4.MessageTypeOffer, "10.0.0.12", EventOffer, ""},
		{"a BMC", ask(discover, bmcMAC, behind("10.0.1.1")), dhcpv4.MessageTypeOffer, "10.0.1.11", EventOffer, ""},
		{"a node in another VLAN", ask(discover, n1mac, behind("10.0.1.1")), 0, "", eventNetwork, "asks on network oob, through the relay agent 10.0.1.1, and its address 10.0.0.11 is on another"},
		{"a BMC in the VLAN of nodes", ask(discover, bmcMAC, behind("10.0.0.1")), 0, "", eventNetwork, ""},
		{"inform", ask(dhcpv4.MessageTypeInform, unknownMAC, dhcpv4.WithClientIP(net.IP{10, 0, 0, 105})), 0, "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := pooled().Decide(site(), tt.in, now)
			if d.Reply == nil {
				if tt.reply != 0 || d.What != tt.what || !strings.Contains(d.Detail, tt.detail) {
					t.Fatalf("no reply; %q %s", d.What, d.Detail)
				}
				return
			}
			r := d.Reply
			if r.MessageType() != tt.reply || !strings.HasPrefix(r.YourIPAddr.String(), tt.gets) || d.What != tt.what || !strings.Contains(d.Detail, tt.detail) {
				t.Errorf("got %s of %s, %q, %q", r.MessageType(), r.YourIPAddr, d.What, d.Detail)
			}
			if d.Client.Node != "" {
				return
			}
			if r.BootFileName != "" || r.Options.Has(dhcpv4.OptionBootfileName) || isSet(r.ServerIPAddr) || r.IPAddressLeaseTime(0) != poolLease || d.probe.IsValid() != (r.MessageType() == dhcpv4.MessageTypeOffer) {
				t.Errorf("%+v: %s", d, r.Summary())
			}
		})
	}
}

// TestPoolLeases: leases are kept, renewed, given back, and end; what is taken or in use is
// not given to another.
func TestPoolLeases(t *testing.T) {
	t.Parallel()
	p, a := newPool(), netip.MustParseAddr("10.0.0.105")
	take := func(i int, at time.Time) bool {
		ok, err := p.Take(machine(i), "", a, at)
		return ok && err == nil
	}
	if !take(1, now) || take(2, now) || !take(1, now.Add(9*time.Minute)) || take(2, now.Add(11*time.Minute)) {
		t.Error("a lease that is renewed is another's")
	}
	if b, fresh, err := p.Offer(machine(1), "", netip.Addr{}, now.Add(12*time.Minute)); b != a || fresh || err != nil {
		t.Errorf("who has %s is offered %s (fresh %t), %v", a, b, fresh, err)
	}
	if p.Release(machine(1)); !take(2, now.Add(12*time.Minute)) || !take(3, now.Add(23*time.Minute)) {
		t.Error("given back, or over, and not free")
	}
	if p.Decline(machine(2), a, now.Add(24*time.Minute)) || !p.Decline(machine(3), a, now.Add(24*time.Minute)) {
		t.Error("who has no lease of an address can decline it, or who has cannot")
	}
	if take(3, now.Add(24*time.Minute)) || !take(3, now.Add(35*time.Minute)) {
		t.Error("an address in conflict is given, or never again")
	}
	p.Conflict(netip.MustParseAddr("10.0.0.11"), now)
	if len(p.bad) != 1 {
		t.Errorf("kept in mind: %v", p.bad)
	}
}

// TestPoolFlood: who asks under many MACs holds half of a pool at most, behind a relay that
// names ports a share of one port; others get addresses, and nodes are answered.
func TestPoolFlood(t *testing.T) {
	t.Parallel()
	p := pooled()
	grab := func(relay string, from, count int, mods ...dhcpv4.Modifier) (got int) {
		for i := range count {
			at := now.Add(time.Duration(i) * poolLease / time.Duration(count))
			d := p.Decide(site(), ask(dhcpv4.MessageTypeDiscover, machine(from+i), append(mods, behind(relay))...), at)
			if d.Reply == nil {
				if d.What != eventPool || !d.Refused {
					t.Fatalf("%+v", d)
				}
				continue
			}
			d = p.Decide(site(), ask(dhcpv4.MessageTypeRequest, machine(from+i), append(mods, behind(relay), wants(d.Reply.YourIPAddr.String()))...), at)
			if d.Reply != nil && d.Reply.MessageType() == dhcpv4.MessageTypeAck {
				got++
			}
		}
		return got
	}
	if got := grab("10.0.1.1", 0, 1000); got < 15 || got > 20 {
		t.Errorf("%d of 40 addresses for a flood without ports", got)
	}
	if got := grab("10.0.1.1", 2000, 1000, circuit("Ethernet0")); got != perPort {
		t.Errorf("%d addresses for a flood at one port", got)
	}
	if got := grab("10.0.1.1", 4000, 3, circuit("Ethernet4")); got != 3 {
		t.Errorf("%d addresses for three machines at another port", got)
	}
	if len(p.Networks[1].Pool.byMAC) > 40 {
		t.Errorf("%d entries", len(p.Networks[1].Pool.byMAC))
	}
	if d := p.Decide(site(), ask(dhcpv4.MessageTypeDiscover, n2mac), now); d.What != EventOffer {
		t.Errorf("a node: %+v", d)
	}
	full := NewPool(netip.MustParseAddr("10.0.1.200"), netip.MustParseAddr("10.0.1.201"), func(netip.Addr) bool { return false })
	for i, a := range []string{"10.0.1.200", "10.0.1.201"} {
		if ok, err := full.Take(machine(i), "port "+a, netip.MustParseAddr(a), now); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if _, _, err := full.Offer(unknownMAC, "port", netip.Addr{}, now); err == nil {
		t.Error("an offer of a pool that is full")
	}
}

// TestBMCEvidence: what a BMC asks is not recorded as its node's.
func TestBMCEvidence(t *testing.T) {
	t.Parallel()
	d := pooled().Decide(site(), ask(dhcpv4.MessageTypeRequest, bmcMAC, wants("10.0.1.11"), behind("10.0.1.1")), now)
	if e := d.Evidence(now); e.Node != "" || !strings.HasPrefix(e.Detail, "the BMC of n1: ") || e.What != EventAck {
		t.Errorf("%+v", e)
	}
}

// TestProbe: an address that somebody answers for is not offered; another is then.
func TestProbe(t *testing.T) {
	t.Parallel()
	n, pol := newNotes(), pooled()
	pol.Address = netip.MustParseAddr("127.0.0.1")
	s, err := Open(t.Context(), Config{Port: freePort(t), Policy: pol, Source: site(), Recorder: n})
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan []byte, 10)
	s.wire = fakeWire(sent)
	var taken netip.Addr
	s.probe = func(a netip.Addr, relayed bool) (addr.MAC, bool) {
		if relayed {
			t.Error("behind a relay")
		}
		if !taken.IsValid() {
			taken = a
		}
		return n1mac, a == taken
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	c, err := net.Dial("udp4", s.conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write(ask(dhcpv4.MessageTypeDiscover, unknownMAC).ToBytes())
	if e := n.await(t, eventConflict); !strings.Contains(e.Detail, n1mac.String()) || !e.Refused {
		t.Errorf("%+v", e)
	}
	_, _ = c.Write(ask(dhcpv4.MessageTypeDiscover, unknownMAC).ToBytes())
	r, err := dhcpv4.FromBytes(<-sent)
	if err != nil || toAddr(r.YourIPAddr) == taken {
		t.Errorf("%v, %v", r, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

type fakeWire chan []byte

func (w fakeWire) send(replies []*outgoing) {
	for _, out := range replies {
		w <- bytes.Clone(out.message())
	}
}
