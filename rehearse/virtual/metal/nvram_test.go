// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/nodecheck"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
	"github.com/ironrail/ironrail/rehearse/virtual/metal/metaltest"
)

// checked is what the agent says on the system that the firmware boots from a disk.
func checked(t *testing.T, n *Node) wire.NodeCheck {
	t.Helper()
	s, ok := n.System()
	if !ok {
		t.Fatal("no disk boots")
	}
	k := n.Boot("6.1", "", s.Root)
	return nodecheck.Checker{FS: sysfs.Of(k.FS()), Open: k.Opener(t.Context()),
		Kernel:    func() (string, string, error) { return "n1", "6.1", nil },
		Systemctl: func(context.Context, ...string) (string, error) { return "running", nil }}.Check(t.Context())
}

// TestBootOrder: with an older system on the first disk, the firmware boots the disk
// that was written, by the entry that the agent made for it, until it forgets its
// entries; what the agent says then names the other disk.
func TestBootOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, metaltest.MakeImage(8<<20, 1))
		n := BuildNode(hgxNode(), Options{})
		old, fresh := n.Disks()[0], n.Disks()[1]
		if err := old.Fill(0, metaltest.MakeImage(8<<20, 2)); err != nil {
			t.Fatal(err)
		}
		h := old.open(t.Context(), "/dev/"+old.Name(), disk.Shared)
		if err := disk.PutMarker(h, disk.Marker{Text: "n1 old", State: disk.Configured}); err != nil {
			t.Fatal(err)
		}
		var order *wire.BootOrder
		boot(t, c.ramdisk(n, nodeAddr), n, func() {
			var hw wire.Hardware
			if err := json.Unmarshal(c.do(wire.Inspect, nil).Output, &hw); err != nil {
				t.Fatal(err)
			}
			d := hw.Disks[1]
			if _, failed := c.write(d, "n1 new"); failed != nil {
				t.Fatalf("%+v", failed)
			}
			r := c.do(wire.Configure, wire.ConfigureParams{Disk: d, Hostname: "n1", BootNIC: n.Identity().BootMAC, Address: nodeAddr.String() + "/24", Timezone: "UTC",
				AuthorizedKeys: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKtAByEBe6HmoKRoUKWtRYqyUjvMO0QGXRMLGVDSBaVh"}, BootOrder: wire.BootDisk})
			var out wire.ConfigureResult
			if err := json.Unmarshal(r.Output, &out); err != nil || r.Error != nil {
				t.Fatalf("%+v, %v", r.Error, err)
			}
			order = out.BootOrder
			c.do(wire.Reboot, wire.RebootParams{})
		})
		if order == nil || order.Problem != "" || !order.Changed || len(order.Entries) != 2 || order.Entries[0].Name != "ironrail" || order.Entries[1].MAC != bootMAC.String() || order.Current != order.Entries[1].Number {
			t.Fatalf("order %+v", order)
		}
		r := checked(t, n)
		if r.Root == nil || r.Root.Serial != fresh.Serial() || r.Marker != "n1 new" || r.BootOrder == nil {
			t.Errorf("boots %+v, marker %q", r.Root, r.Marker)
		}
		if e, ok := r.BootOrder.Entry(r.BootOrder.Current); !ok || e.Name != "ironrail" || e.Partition != order.Entries[0].Partition {
			t.Errorf("started by %+v", e)
		}
		n.ResetNVRAM()
		r = checked(t, n)
		if r.Root == nil || r.Root.Serial != old.Serial() || r.Marker != "n1 old" {
			t.Errorf("without entries it boots %+v, marker %q", r.Root, r.Marker)
		}
		if e, ok := r.BootOrder.Entry(r.BootOrder.Current); !ok || e.Name != "UEFI OS" {
			t.Errorf("started by %+v", e)
		}
	})
}
