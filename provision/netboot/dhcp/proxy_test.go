// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
)

func proxyRules() Policy {
	p := rules()
	p.Proxy = true
	return p
}

// TestProxy: programs that boot are offered a file and never an address; what concerns
// addresses is the other server's.
func TestProxy(t *testing.T) {
	t.Parallel()
	const discover, request = dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest
	const biosVendor = "PXEClient:Arch:00000:UNDI:002001"
	tests := []struct {
		name   string
		in     *dhcpv4.DHCPv4
		what   string
		file   string // "": no reply
		class  string // option 60
		option []byte // 43
		detail string
	}{
		{"BIOS PXE", ask(discover, n1mac, vendor(biosVendor), arch(0)), EventOffer, "undionly.kpxe", "PXEClient", []byte{6, 1, 8, 255}, "another server"},
		{"UEFI PXE", ask(discover, n1mac, vendor(pxeVendor), arch(7)), EventOffer, "snponly.efi", "PXEClient", nil, ""},
		{"UEFI HTTP", ask(discover, n1mac, vendor(httpVendor), arch(16)), EventOffer, "http://10.0.0.2:80/loader/snponly.efi", "HTTPClient", nil, ""},
		{"iPXE", ask(discover, n1mac, vendor(biosVendor), arch(0), opt(77, []byte("iPXE")...)), EventOffer, scriptN1, "PXEClient", nil, ""},
		{"through a relay", ask(discover, n1mac, vendor(pxeVendor), arch(7), dhcpv4.WithRelay(net.IP{10, 0, 9, 1})), EventOffer, "snponly.efi", "PXEClient", nil, ""},
		{"an operating system", ask(discover, n1mac), "", "", "", nil, ""},
		{"an operating system asks", ask(request, n1mac, wants("10.0.0.50")), "", "", "", nil, ""},
		{"an unknown machine that boots", ask(discover, addr.MAC{2, 9, 9, 9, 9, 9}, vendor(pxeVendor), arch(7)), eventUnknown, "", "", nil, "02:09:09:09:09:09"},
		{"an unknown machine that does not", ask(discover, addr.MAC{2, 9, 9, 9, 9, 9}), "", "", "", nil, ""},
		{"a BMC", ask(discover, bmcMAC, vendor(pxeVendor), arch(7)), "", "", "", nil, ""},
		{"another UUID", ask(discover, n1mac, vendor(pxeVendor), arch(7), uuid("ffffffff-4455-6677-8899-aabbccddeeff")), eventUUID, "", "", nil, n1UUID},
		{"no architecture", ask(discover, n1mac, vendor("PXEClient")), eventNoFile, "", "", nil, "option 93"},
		{"takes its address", ask(request, n1mac, vendor(pxeVendor), arch(7), wants("10.0.0.11"), from("10.0.0.9")), EventLeased, "", "", nil, "takes 10.0.0.11 from the DHCP server 10.0.0.9"},
		{"takes another address", ask(request, n1mac, vendor(pxeVendor), arch(7), wants("10.0.0.77"), from("10.0.0.9")), EventOtherAddress, "", "", nil, "the DHCP server 10.0.0.9 gives it 10.0.0.77, and the files say 10.0.0.11: reserve 10.0.0.11 for MAC 02:00:00:00:00:01 there"},
		{"declines", ask(dhcpv4.MessageTypeDecline, n1mac, vendor(pxeVendor), wants("10.0.0.11")), eventDecline, "", "", nil, "another owner"},
		{"releases", ask(dhcpv4.MessageTypeRelease, n1mac, vendor(pxeVendor)), "", "", "", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := proxyRules().Decide(site(), tt.in, now)
			if d.What != tt.what || !strings.Contains(d.Detail, tt.detail) || (d.Reply != nil) != (tt.file != "") {
				t.Fatalf("got %q, %q, reply %v", d.What, d.Detail, d.Reply)
			}
			if d.Reply == nil {
				return
			}
			r := d.Reply
			if r.MessageType() != dhcpv4.MessageTypeOffer || isSet(r.YourIPAddr) || r.Options.Has(dhcpv4.OptionIPAddressLeaseTime) || r.Options.Has(dhcpv4.OptionSubnetMask) || !r.IsBroadcast() {
				t.Errorf("an offer without an address is broadcast: %s", r.Summary())
			}
			if r.BootFileName != tt.file || r.BootFileNameOption() != tt.file || toAddr(r.ServerIPAddr) != controller || r.ClassIdentifier() != tt.class || !bytes.Equal(r.Options.Get(dhcpv4.OptionVendorSpecificInformation), tt.option) {
				t.Errorf("offer %s", r.Summary())
			}
			if path, _ := PathOf(tt.in, r); path != ToBroadcast && path != ToRelay {
				t.Errorf("path %d", path)
			}
		})
	}
}

// TestBootServer: the boot server's port answers nodes that have their own address.
func TestBootServer(t *testing.T) {
	t.Parallel()
	self, other := netip.MustParseAddr("10.0.0.11"), netip.MustParseAddr("10.0.0.77")
	pxe := func(mods ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
		return ask(dhcpv4.MessageTypeRequest, n1mac, append(mods, vendor(pxeVendor), arch(7))...)
	}
	for _, tt := range []struct {
		name string
		in   *dhcpv4.DHCPv4
		from netip.Addr
		what string
	}{
		{"by ciaddr", pxe(dhcpv4.WithClientIP(net.IP{10, 0, 0, 11})), self, EventBootServer},
		{"by its source", pxe(), self, EventBootServer},
		{"inform", ask(dhcpv4.MessageTypeInform, n1mac, vendor(pxeVendor), arch(7)), self, EventBootServer},
		{"another source", pxe(), other, EventOtherAddress},
		{"another ciaddr", pxe(dhcpv4.WithClientIP(net.IP{10, 0, 0, 77})), self, EventOtherAddress},
		{"discover", ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(pxeVendor), arch(7)), self, eventMalformed},
		{"unknown", ask(dhcpv4.MessageTypeRequest, addr.MAC{2, 9}, vendor(pxeVendor), arch(7)), self, eventUnknown},
		{"no firmware", ask(dhcpv4.MessageTypeRequest, n1mac), self, ""},
		{"no loader", ask(dhcpv4.MessageTypeRequest, n1mac, vendor(pxeVendor), arch(6)), self, eventNoFile},
	} {
		d := proxyRules().DecideBoot(site(), tt.in, tt.from, now)
		if d.What != tt.what || (d.Reply != nil) != (tt.what == EventBootServer) {
			t.Errorf("%s: %+v", tt.name, d)
		}
		if r := d.Reply; r != nil && (r.MessageType() != dhcpv4.MessageTypeAck || isSet(r.YourIPAddr) || r.BootFileName != "snponly.efi" || r.ClassIdentifier() != "PXEClient") {
			t.Errorf("%s: reply %s", tt.name, r.Summary())
		}
	}
}

// TestBootServerPort: requests at port 4011 are answered from there, to where they came from.
func TestBootServerPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, n := network.NewMemory(), newNotes()
		s, err := Open(t.Context(), Config{Network: m.At(controller), Policy: proxyRules(), Source: site(), Recorder: n})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- s.Serve(t.Context()) }()
		c, err := m.At(netip.MustParseAddr("10.0.0.11")).ListenPacket(t.Context(), "udp", ":4011")
		if err != nil {
			t.Fatal(err)
		}
		to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(controller, 4011))
		_, _ = c.WriteTo([]byte("rubbish"), to)
		_, _ = c.WriteTo(ask(dhcpv4.MessageTypeRequest, n1mac, vendor(pxeVendor), arch(7)).ToBytes(), to)
		b := make([]byte, packetSize)
		k, from, err := c.ReadFrom(b)
		if err != nil || from.String() != "10.0.0.2:4011" {
			t.Fatalf("%v from %v", err, from)
		}
		if r, err := dhcpv4.FromBytes(b[:k]); err != nil || r.BootFileName != "snponly.efi" {
			t.Errorf("%v, %v", r, err)
		}
		n.await(t, EventBootServer)
		if st := s.Stats(); st.Answered != 1 || st.Malformed != 1 {
			t.Errorf("%+v", st)
		}
		_ = c.Close()
		_ = s.Close()
		if err := <-done; err == nil {
			t.Error("a server whose sockets were closed by others has ended well")
		}
	})
}
