// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"slices"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// TestPlaces: the agent's own inspection finds every disk where its block says that
// it is, and a disk of which nothing is said has a bay and a name by path too.
func TestPlaces(t *testing.T) {
	t.Parallel()
	blocks := []inventory.Disk{
		{Name: "nvme", Type: "nvme", Count: 2},
		{Name: "bay", Type: "nvme", Bay: "1"},
		{Name: "named bay", Type: "sas", Bay: "Front/3"},
		{Name: "pci", Type: "nvme", PCI: "0000:3b:00.0"},
		{Name: "namespace", Type: "nvme", ByPath: "pci-0000:3c:00.0-nvme-2", Bay: "U2 4"},
		{Name: "VMD", Type: "nvme", ByPath: "pci-0000:5d:05.5-pci-10000:01:00.0-nvme-1"},
		{Name: "virtio", Type: "virtio", ByPath: "pci-0000:00:04.0"},
		{Name: "sata", Type: "sata"},
		{Name: "ata", Type: "sata", ByPath: "pci-0000:00:17.0-ata-3.0", Bay: "40"},
		{Name: "ata, same controller", Type: "sata", ByPath: "pci-0000:00:17.0-ata-4.0"},
		{Name: "ata, others of the controller", Type: "sata", PCI: "0000:00:17.0", Count: 5},
		{Name: "port multiplier", ByPath: "pci-0000:00:18.0-ata-1.2.0"},
		{Name: "sas", Type: "sas", Count: 2},
		{Name: "HBA", Type: "sas", PCI: "0000:b1:00.0", Count: 3},
		{Name: "phy", Type: "sas", ByPath: "pci-0000:b1:00.0-sas-phy1-lun-0"},
		{Name: "expander", Type: "sata", ByPath: "pci-0000:b2:00.0-sas-exp0x500304801f5f003f-phy11-lun-0"},
		{Name: "expander, other phy", Type: "sata", ByPath: "pci-0000:b2:00.0-sas-exp0x500304801f5f003f-phy12-lun-0"},
		{Name: "wide port", Type: "sas", ByPath: "pci-0000:b3:00.0-sas-0x5000c50012345678-lun-0"},
		{Name: "RAID", Type: "sas", ByPath: "pci-0000:18:00.0-scsi-0:2:1:0"},
		{Name: "RAID, second host", Type: "sas", ByPath: "pci-0000:18:00.0-scsi-1:0:3:0"},
		{Name: "not by any bus of a server", Type: "sas", ByPath: "pci-0000:c4:00.0-usb-0:1:1.0-scsi-0:0:0:0"},
	}
	h := hgx()
	h.Disks = blocks
	n := hgxNode()
	n.Hardware = h
	hw := inspected(BuildNode(n, Options{}))
	total, bays, paths := 0, map[string]bool{}, map[string]bool{}
	for _, d := range hw.Disks {
		if d.Bay == "" || bays[d.Bay] || d.ByPath == "" || paths[d.ByPath] || d.Serial == "" {
			t.Errorf("disk %s is in bay %q, by path %q, serial %q: it must have one of its own", d.Name, d.Bay, d.ByPath, d.Serial)
		}
		bays[d.Bay], paths[d.ByPath] = true, true
	}
	for _, b := range blocks {
		total += max(1, b.Count)
		fits := func(d wire.Disk) bool {
			return (b.Bay == "" || b.Bay == d.Bay) && (b.PCI == "" || b.PCI == d.PCI) && (b.ByPath == "" || b.ByPath == d.ByPath)
		}
		unmodelled := b.Name == "not by any bus of a server"
		if i := slices.IndexFunc(hw.Disks, fits); (i < 0) != unmodelled {
			t.Errorf("disk %q: one that is in bay %q, PCI %q, by path %q: %v", b.Name, b.Bay, b.PCI, b.ByPath, i >= 0)
		}
	}
	if len(hw.Disks) != total {
		t.Errorf("%d disks are seen of %d", len(hw.Disks), total)
	}
	for pci, want := range map[string]int{"0000:00:17.0": 7, "0000:b1:00.0": 4, "0000:c4:00.0": 1} {
		got := 0
		for _, d := range hw.Disks {
			if d.PCI == pci {
				got++
			}
		}
		if got != want {
			t.Errorf("%d disks at controller %s, want %d", got, pci, want)
		}
	}
}

// TestNamedDisks: the disks of a node have the serial number and WWN that the files
// say, and the disk of its layout the one that the node says.
func TestNamedDisks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ install, serial, wwn string }{
		{"", "", ""}, {"S6CKNE0X100132", "S6CKNE0X100132", ""}, {"eui.36434b3058100132", "", "eui.36434b3058100132"},
	} {
		n := hgxNode()
		n.Hardware.Disks = []inventory.Disk{
			{Name: "data", Type: "nvme", Serial: "DATA1", WWN: "0x36434b3058100999"},
			{Name: "os", Type: "nvme"},
		}
		n.Disks, n.InstallDisk = &inventory.DiskLayout{On: "os"}, c.install
		hw := inspected(BuildNode(n, Options{}))
		if d := hw.Disks[0]; d.Serial != "DATA1" || inventory.NormalWWN(d.WWN) != "36434b3058100999" {
			t.Errorf("data disk %+v", d)
		}
		d := hw.Disks[1]
		if d.Serial == "" || d.WWN == "" || c.serial != "" && d.Serial != c.serial || c.wwn != "" && d.WWN != c.wwn {
			t.Errorf("install_disk %q: %+v", c.install, d)
		}
	}
}
