// SPDX-License-Identifier: Apache-2.0

package lldp

import (
	"context"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/mdlayher/packet"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestPackets hears a real frame over a veth pair in a network namespace of its
// own, on an end that is down at first.
func TestPackets(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test, and the namespace with it
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip(err)
	}
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "node0"}, PeerName: "swp1"}); err != nil {
		t.Skip(err)
	}
	peer, err := netlink.LinkByName("swp1")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(peer); err != nil {
		t.Fatal(err)
	}
	c, err := open("node0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ifi, err := net.InterfaceByName("swp1")
	if err != nil {
		t.Fatal(err)
	}
	speaker, err := packet.Listen(ifi, packet.Raw, etherType, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer speaker.Close()
	buf, n := make([]byte, maxFrame), 0
	for range 50 { // the kernel passes frames some time after the link is up
		if _, err := speaker.WriteTo(frame(chassis, port, ttl), &packet.Addr{HardwareAddr: nearest[:6]}); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if n, _, err = c.ReadFrom(buf); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if p, err := ParseFrame(buf[:n]); err != nil || p.PortID != "etp17" {
		t.Errorf("%+v, %v", p, err)
	}
	if err := (Packets{}).Listen(context.Background(), []string{"no-such-nic"}, nil); err == nil {
		t.Error("a NIC that is not there was listened on")
	}
}
