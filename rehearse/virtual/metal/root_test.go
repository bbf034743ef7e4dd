// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"testing"

	"github.com/ironrail/ironrail/provision/agent/inspect"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
	"github.com/ironrail/ironrail/rehearse/virtual/metal/metaltest"
)

// TestRootDisk: a kernel shows which disk it has as /, whatever other disks hold.
func TestRootDisk(t *testing.T) {
	n := BuildNode(hgxNode(), Options{})
	if len(n.Disks()) < 2 {
		t.Fatal("the node has one disk")
	}
	for _, d := range n.Disks()[:2] {
		if err := d.Fill(0, metaltest.MakeImage(8<<20, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := (inspect.Inspector{FS: sysfs.Of(n.Boot("6.1", "", nil).FS())}).RootDisk(); ok {
		t.Error("the ramdisk runs from a disk")
	}
	for _, d := range n.Disks()[:2] {
		root, err := d.mounted()
		if err != nil {
			t.Fatal(err)
		}
		k := n.Boot("6.1", "", root)
		if got, ok := (inspect.Inspector{FS: sysfs.Of(k.FS())}).RootDisk(); !ok || got.Name != d.Name() || got.Serial != d.Serial() {
			t.Errorf("%s: got %+v, %v", d.Name(), got, ok)
		}
	}
}
