// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// The kernel itself, in a network namespace of the test's own.
func TestKernel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := netns.Get()
	if err != nil {
		t.Skip("no network namespaces here: ", err)
	}
	defer before.Close()
	inside, err := netns.New()
	if err != nil {
		t.Skip("no network namespaces here: ", err)
	}
	defer inside.Close()
	defer netns.Set(before)
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "rail0"}, PeerName: "peer0"}); err != nil {
		t.Skip("no veth here: ", err)
	}
	peer, err := netlink.LinkByName("peer0")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(peer); err != nil {
		t.Fatal(err)
	}
	var k Kernel
	old := Route{Address: netip.MustParsePrefix("10.77.16.11/24"), Table: 100}
	now := Route{Address: netip.MustParsePrefix("10.77.17.11/24"), Table: 100, Gateway: netip.MustParseAddr("10.77.17.1")}
	for _, r := range []Route{old, now} {
		for range 2 { // all of it is idempotent
			for _, err := range []error{k.SetLink("rail0", 4200), k.SetAddress("rail0", r.Address), k.SetRouting("rail0", r)} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if is, err := k.Routing("rail0", r); err != nil || !is {
			t.Errorf("routing %+v: %v, %v", r, is, err)
		}
	}
	if is, err := k.Routing("rail0", old); err != nil || is {
		t.Errorf("the old rule is still taken for right: %v, %v", is, err)
	}
	if err := k.DropAddress("rail0", old.Address); err != nil {
		t.Fatal(err)
	}
	if err := k.DropAddress("rail0", old.Address); err != nil {
		t.Errorf("dropping again: %v", err)
	}
	if got, err := k.Addresses("rail0"); err != nil || len(got) != 1 || got[0] != now.Address {
		t.Errorf("got addresses %v, %v", got, err)
	}
	if link, err := netlink.LinkByName("rail0"); err != nil || link.Attrs().MTU != 4200 {
		t.Errorf("got MTU %v, %v", link.Attrs().MTU, err)
	}
	if got := k.Device("rail0"); got != "" {
		t.Errorf("a veth has RDMA device %q", got)
	}
}
