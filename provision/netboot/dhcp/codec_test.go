// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// checkCodec compares what is decided of a packet, and what is sent, with what the library decodes
// and encodes. in has held other packets before.
func checkCodec(t *testing.T, src boot.Source, p Policy, b []byte, in *dhcpv4.DHCPv4) {
	t.Helper()
	want, err := dhcpv4.FromBytes(b)
	got := decode(b, in)
	if got != (err == nil) {
		t.Fatalf("decoded: %v; by the library: %v", got, err)
	}
	if err != nil {
		return
	}
	want.ServerHostName, want.BootFileName = "", ""
	if !reflect.DeepEqual(in, want) {
		t.Fatalf("decoded\n%v, by the library\n%v", in.Summary(), want.Summary())
	}
	p.Chain, p.room = &Chain{}, &room{}
	d := p.Decide(src, in, now)
	p.Chain, p.room = &Chain{}, nil
	w := p.Decide(src, want, now)
	if d.Reply == nil || w.Reply == nil {
		if d.Reply != w.Reply || d.What != w.What || d.Detail != w.Detail {
			t.Fatalf("decided %+v, by the library %+v", d, w)
		}
		return
	}
	var out outgoing
	out.fill(in, d.Reply, d.MAC)
	if !bytes.Equal(out.message(), w.Reply.ToBytes()) {
		t.Fatalf("wrote\n%x, the library\n%x", out.message(), w.Reply.ToBytes())
	}
	if path, dst := PathOf(want, w.Reply); path != out.path || dst != out.dst {
		t.Fatalf("to %v %v, by the library %v %v", out.path, out.dst, path, dst)
	}
}

// packets are requests of all kinds, with options that come twice, are empty, long or cut.
func packets() (list [][]byte) {
	long := bytes.Repeat([]byte("x"), 300)
	for _, p := range []*dhcpv4.DHCPv4{
		ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(pxeVendor), arch(7), uuid(n1UUID)),
		ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(httpVendor), arch(16), opt(61, 1, 2, 3)),
		ask(dhcpv4.MessageTypeRequest, n1mac, vendor(pxeVendor), arch(7), wants("10.0.0.11"), from("10.0.0.2"), opt(82, 1, 2, 'a', 'b')),
		ask(dhcpv4.MessageTypeRequest, n1mac, wants("10.0.0.99"), from("10.0.0.2"), opt(82)),
		ask(dhcpv4.MessageTypeRequest, n2mac, wants("10.0.0.12"), arch(0), opt(77, []byte("iPXE")...)),
		ask(dhcpv4.MessageTypeInform, n1mac, opt(61, long...), opt(82, long...)),
		ask(dhcpv4.MessageTypeDiscover, addr.MAC{2, 9}),
		ask(dhcpv4.MessageTypeDiscover, bmcMAC, func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = []byte{10, 0, 9, 1} }),
	} {
		list = append(list, p.ToBytes())
	}
	first := list[0]
	end := bytes.LastIndexByte(bytes.TrimRight(first, "\x00"), 255)
	return append(list, first[:end], append(bytes.Clone(first[:end]), 60, 0, 60, 3, 'a', 'b', 'c', 0, 0, 61, 0, 255), append(bytes.Clone(first[:end]), 60), append(bytes.Clone(first[:end]), 60, 9, 1, 255))
}

// TestCodec: requests are read, and replies are written, as the library does.
func TestCodec(t *testing.T) {
	t.Parallel()
	var in dhcpv4.DHCPv4
	for _, b := range packets() {
		checkCodec(t, site(), rules(), b, &in)
		for n := range len(b) {
			checkCodec(t, site(), rules(), b[:n], &in)
		}
	}
}

// FuzzCodec: the same, of any packet.
func FuzzCodec(f *testing.F) {
	for _, b := range packets() {
		f.Add(b)
	}
	var in dhcpv4.DHCPv4
	f.Fuzz(func(t *testing.T, b []byte) { checkCodec(t, site(), rules(), b, &in) })
}

// TestAnswerFollows: what is answered follows what the source says of a client from one packet
// to the next.
func TestAnswerFollows(t *testing.T) {
	t.Parallel()
	var in dhcpv4.DHCPv4
	var out outgoing
	src := site()
	b := ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(pxeVendor), arch(7)).ToBytes()
	offer := func() *dhcpv4.DHCPv4 {
		t.Helper()
		if !decode(b, &in) {
			t.Fatal("not decoded")
		}
		d := rules().Decide(src, &in, now)
		if d.Reply == nil {
			return nil
		}
		out.fill(&in, d.Reply, d.MAC)
		r, err := dhcpv4.FromBytes(out.message())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := offer(); r == nil || toAddr(r.YourIPAddr).String() != "10.0.0.11" || r.HostName() != "n1" || r.BootFileName != "snponly.efi" {
		t.Errorf("first: %v", r)
	}
	src[0].Address, src[0].Hostname, src[0].VLAN = src[1].Address, "n1-new", 0
	if r := offer(); r == nil || toAddr(r.YourIPAddr).String() != "10.0.0.12" || r.HostName() != "n1-new" {
		t.Errorf("with another address: %v", r)
	}
	src[0].Kind = boot.BMC
	if r := offer(); r == nil || r.BootFileName != "" {
		t.Errorf("as a BMC: %v", r)
	}
	src[0].MACs = nil
	if r := offer(); r != nil {
		t.Errorf("unknown: %v", r)
	}
}
