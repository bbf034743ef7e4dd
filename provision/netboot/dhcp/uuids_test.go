// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/provision/netboot/boot"
)

const (
	otherUUID   = "a0b1c2d3-4455-6677-8899-001122334455"
	swappedUUID = "d3c2b1a0-5544-7766-8899-001122334455"
	thirdUUID   = "0f0e0d0c-4455-6677-8899-001122334455"
)

// TestTwoUUIDs: one program that says two UUIDs in one attempt is two machines. What
// different programs say, other byte orders and UUIDs that name nothing are not.
func TestTwoUUIDs(t *testing.T) {
	t.Parallel()
	pxe := func(u string) *dhcpv4.DHCPv4 {
		return ask(dhcpv4.MessageTypeDiscover, n2mac, vendor(pxeVendor), arch(7), uuid(u))
	}
	with := func(u string, mods ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
		return ask(dhcpv4.MessageTypeDiscover, n2mac, append(mods, uuid(u))...)
	}
	type packet struct {
		attempt string
		p       *dhcpv4.DHCPv4
	}
	const zero, all = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
	for _, tt := range []struct {
		name string
		in   []packet
		want []string // second UUIDs that are told
	}{
		{"one machine", []packet{{"a", pxe(otherUUID)}, {"a", pxe(otherUUID)}}, nil},
		{"two machines, told once", []packet{{"a", pxe(otherUUID)}, {"a", pxe(thirdUUID)}, {"a", pxe(otherUUID)}, {"a", pxe(n1UUID)}}, []string{"0c0d0e0f-5544-7766-8899-001122334455"}},
		{"the other byte order", []packet{{"a", pxe(otherUUID)}, {"a", pxe(swappedUUID)}}, nil},
		{"a UUID that is not set, or not present", []packet{{"a", pxe(zero)}, {"a", pxe(otherUUID)}, {"a", pxe(all)}, {"a", pxe(zero)}}, nil},
		{"no option 97", []packet{{"a", pxe(otherUUID)}, {"a", ask(dhcpv4.MessageTypeDiscover, n2mac, vendor(pxeVendor), arch(7))}}, nil},
		{"iPXE says another than the firmware", []packet{{"a", pxe(otherUUID)}, {"a", with(thirdUUID, vendor(pxeVendor), arch(7), opt(77, []byte("iPXE")...))}}, nil},
		{"HTTP boot says another than PXE", []packet{{"a", pxe(otherUUID)}, {"a", with(thirdUUID, vendor(httpVendor), arch(16))}}, nil},
		{"a system that runs says another", []packet{{"a", pxe(otherUUID)}, {"a", with(thirdUUID)}}, nil},
		{"another attempt, with another board", []packet{{"a", pxe(otherUUID)}, {"b", pxe(thirdUUID)}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var u UUIDs
			var got []string
			for _, x := range tt.in {
				if two, yes := u.Observe(boot.Client{Node: "n2"}, n2mac, x.attempt, Classify(x.p), now); yes {
					got = append(got, two.Second)
				}
			}
			if len(got) != len(tt.want) || len(got) > 0 && got[0] != tt.want[0] {
				t.Errorf("told %v, want %v", got, tt.want)
			}
		})
	}
}

// TestTwoUUIDsAndInventory: which of both the inventory has is said, whichever came
// first, and unknown architectures do not fill the memory.
func TestTwoUUIDsAndInventory(t *testing.T) {
	t.Parallel()
	class := func(s string) Class {
		return Classify(ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(pxeVendor), arch(7), uuid(s)))
	}
	for _, order := range [][2]string{{n1UUID, otherUUID}, {otherUUID, n1UUID}} {
		var u UUIDs
		u.Observe(site()[0], n1mac, "a", class(order[0]), now)
		two, yes := u.Observe(site()[0], n1mac, "a", class(order[1]), now.Add(time.Second))
		if !yes || two.Inventory != "33221100-5544-7766-8899-aabbccddeeff" || two.FirstAt != now || two.Attempt != "a" {
			t.Errorf("%v: %+v, %v", order, two, yes)
		}
	}
	var u UUIDs
	for i := range 1000 {
		c := class(otherUUID)
		c.Arch = Arch(i)
		u.Observe(site()[1], n2mac, "a", c, now)
	}
	if n := len(u.seen[n2mac].first); n > len(archNames) {
		t.Errorf("%d programs are remembered", n)
	}
}

// TestCapturesHaveOneUUID: real firmware that boots through PXE, HTTP, iPXE and GRUB is
// one machine for each MAC.
func TestCapturesHaveOneUUID(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../../../../shared/samples/pcap/*.pcap")
	said := 0
	for _, file := range files {
		var u UUIDs
		for _, in := range requestsOf(t, file) {
			mac, err := clientMAC(in)
			if err != nil {
				continue
			}
			said++
			if two, yes := u.Observe(boot.Client{Node: mac.String()}, mac, "a", Classify(in), now); yes {
				t.Errorf("%s: %+v", file, two)
			}
		}
	}
	if said == 0 {
		t.Skip("needs the captures")
	}
}

// armed is a source in which n1 has an open attempt.
type armed struct{ clients }

func (armed) Attempt(node string) (boot.Attempt, bool) {
	return boot.Attempt{ID: "n1-a", Node: "n1"}, node == "n1"
}

// TestServerTellsTwoUUIDs: the packet that the inventory's UUID refuses counts too, and
// is refused still.
func TestServerTellsTwoUUIDs(t *testing.T) {
	t.Parallel()
	n, told := newNotes(), make(chan TwoUUIDs, 10)
	p := rules()
	p.Address = netip.MustParseAddr("127.0.0.1")
	s, err := Open(t.Context(), Config{Port: freePort(t), Policy: p, Source: armed{site()}, Recorder: n, TwoUUIDs: func(two TwoUUIDs) { told <- two }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	c, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IP{127, 0, 0, 1}, Port: int(s.Addr().Port())})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, u := range []string{n1UUID, otherUUID} {
		if _, err := c.Write(ask(dhcpv4.MessageTypeDiscover, n1mac, vendor(pxeVendor), arch(7), uuid(u)).ToBytes()); err != nil {
			t.Fatal(err)
		}
	}
	e := n.await(t, EventTwoUUIDs)
	two := <-told
	if e.Node != "n1" || e.MAC != n1mac || two.Client.Node != "n1" || two.Attempt != "n1-a" || two.Inventory != two.First {
		t.Errorf("told %+v, evidence %+v", two, e)
	}
	if e := n.await(t, eventUUID); !e.Refused {
		t.Errorf("the other machine: %+v", e)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
