// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// sysTree makes a tree of one disk: its real path below sys/devices, and attributes.
func sysTree(t *testing.T, real string, files map[string]string) sysfs.FS {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			rel, err := filepath.Rel(filepath.Dir(path), filepath.Join(dir, to))
			if err == nil {
				err = os.Symlink(rel, path)
			}
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(real, "size"), "2048")
	write(filepath.Join("sys/block", filepath.Base(real)), "-> "+real)
	for name, text := range files {
		write(name, text)
	}
	return sysfs.Dir(dir)
}

// TestByPath: the names are those that udev gives on servers with such a path; the
// paths are as the kernel lays them out.
func TestByPath(t *testing.T) {
	t.Parallel()
	const sas = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block/sda"
	const expander = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/host0/port-0:0/expander-0:0/port-0:0:7/end_device-0:0:7/target0:0:7/0:0:7:0/block/sdh"
	for _, c := range []struct {
		name, real string
		files      map[string]string
		want       string
	}{
		{"virtio-blk", "sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda", nil, "pci-0000:00:04.0"},
		{"virtio-blk below a root port", "sys/devices/pci0000:00/0000:00:02.1/0000:02:00.0/virtio3/block/vda", nil, "pci-0000:02:00.0"},
		{"virtio-scsi", "sys/devices/pci0000:00/0000:00:05.0/virtio2/host6/target6:0:1/6:0:1:0/block/sda", nil, "pci-0000:00:05.0-scsi-0:0:1:0"},
		{"NVMe", "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/nvme/nvme0/nvme0n1",
			map[string]string{"sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/nvme/nvme0/nvme0n1/nsid": "1"}, "pci-0000:3b:00.0-nvme-1"},
		{"NVMe behind VMD", "sys/devices/pci0000:5d/0000:5d:05.5/pci10000:00/10000:00:02.0/10000:01:00.0/nvme/nvme3/nvme3n1",
			map[string]string{"sys/devices/pci0000:5d/0000:5d:05.5/pci10000:00/10000:00:02.0/10000:01:00.0/nvme/nvme3/nvme3n1/nsid": "1"}, "pci-0000:5d:05.5-pci-10000:01:00.0-nvme-1"},
		{"NVMe head of several paths", "sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1", nil, ""},
		{"AHCI", "sys/devices/pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0/block/sda",
			map[string]string{"sys/class/ata_port/ata3/port_no": "3"}, "pci-0000:00:1f.2-ata-3.0"},
		{"AHCI, second controller", "sys/devices/pci0000:00/0000:00:17.0/ata9/host8/target8:0:0/8:0:0:0/block/sdi",
			map[string]string{"sys/class/ata_port/ata9/port_no": "1"}, "pci-0000:00:17.0-ata-1.0"},
		{"behind a port multiplier", "sys/devices/pci0000:00/0000:00:17.0/ata9/host8/target8:2:0/8:2:0:0/block/sdi",
			map[string]string{"sys/class/ata_port/ata9/port_no": "1"}, "pci-0000:00:17.0-ata-1.2.0"},
		{"SAS, direct", sas, map[string]string{
			"sys/class/sas_port/port-0:0/num_phys": "1", "sys/class/sas_device/end_device-0:0/phy_identifier": "3", "sys/class/sas_device/end_device-0:0/sas_address": "0x5000c50012345678",
		}, "pci-0000:3b:00.0-sas-phy3-lun-0"},
		{"SAS, wide port", sas, map[string]string{
			"sys/class/sas_port/port-0:0/num_phys": "4", "sys/class/sas_device/end_device-0:0/sas_address": "0x5000c50012345678",
		}, "pci-0000:3b:00.0-sas-0x5000c50012345678-lun-0"},
		{"SAS, expander", expander, map[string]string{
			"sys/class/sas_port/port-0:0:7/num_phys": "1", "sys/class/sas_device/end_device-0:0:7/phy_identifier": "11", "sys/class/sas_device/expander-0:0/sas_address": "0x500304801f5f003f",
		}, "pci-0000:3b:00.0-sas-exp0x500304801f5f003f-phy11-lun-0"},
		{"RAID controller", "sys/devices/pci0000:16/0000:16:02.0/0000:18:00.0/host0/target0:2:1/0:2:1:0/block/sdb", nil, "pci-0000:18:00.0-scsi-0:2:1:0"},
		{"second host of a controller", "sys/devices/pci0000:00/0000:00:07.1/host5/target5:0:0/5:0:0:0/block/sdc",
			map[string]string{"sys/devices/pci0000:00/0000:00:07.1/host4/x": ""}, "pci-0000:00:07.1-scsi-1:0:0:0"},
		{"USB", "sys/devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1.2/1-1.2:1.0/host7/target7:0:0/7:0:0:0/block/sdd", nil, "pci-0000:00:14.0-usb-0:1.2:1.0-scsi-0:0:0:0"},
		{"Fibre Channel", "sys/devices/pci0000:00/0000:00:03.0/0000:04:00.0/host9/rport-9:0-2/target9:0:2/9:0:2:300/block/sde",
			map[string]string{"sys/class/fc_transport/target9:0:2/port_name": "0x500a09838650cf14"}, "pci-0000:04:00.0-fc-0x500a09838650cf14-lun-0x012c000000000000"},
		{"iSCSI", "sys/devices/platform/host10/session1/target10:0:0/10:0:0:1/block/sdf", nil, ""},
		{"no transport that is known", "sys/devices/pci0000:00/0000:00:09.0/block/xda", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := byPath(sysTree(t, c.real, c.files), filepath.Base(c.real)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestPeerByPathOfThisNode: udev itself names the disks of this machine.
func TestPeerByPathOfThisNode(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "udevadm")
	i := Inspector{FS: sysfs.Dir("/")}
	judged := 0
	for _, name := range i.FS.Names("sys/block") {
		d, ok := i.disk(name)
		out, err := exec.CommandContext(t.Context(), "udevadm", "test-builtin", "path_id", "/sys/block/"+name).Output()
		if !ok || err != nil {
			continue
		}
		judged++
		want := ""
		for line := range strings.Lines(string(out)) {
			if id, ok := strings.CutPrefix(line, "ID_PATH="); ok {
				want = strings.TrimSpace(id)
			}
		}
		if d.ByPath != want {
			t.Errorf("%s: got %q, udev says %q", name, d.ByPath, want)
		}
	}
	if judged == 0 {
		t.Skip("there is no disk here")
	}
}

func TestBay(t *testing.T) {
	t.Parallel()
	const (
		sata = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0"
		nvme = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/nvme/nvme0/nvme0n1"
		ses  = "sys/class/enclosure/0:0:24:0/"
	)
	slots := map[string]string{"sys/bus/pci/slots/12/address": "0000:3b:00", "sys/bus/pci/slots/13/address": "0000:3b:01"}
	for _, c := range []struct {
		name, real string
		files      map[string]string
		want       string
	}{
		{"SES", sata + "/block/sda", map[string]string{
			ses + "Slot 01/slot": "1", ses + "Slot 01/device": "-> sys/devices", ses + "Slot 07/slot": "7", ses + "Slot 07/device": "-> " + sata,
		}, "7"},
		{"SES without numbers", sata + "/block/sda", map[string]string{ses + "ArrayDevice03/device": "-> " + sata}, "ArrayDevice03"},
		{"empty SES slot", sata + "/block/sda", map[string]string{ses + "Slot 01/slot": "1"}, ""},
		{"PCIe slot of an NVMe disk", nvme, slots, "12"},
		{"PCIe slot of the controller", sata + "/block/sda", slots, ""},
		{"virtio", "sys/devices/pci0000:3a/0000:3b:00.0/virtio1/block/vda", slots, "12"},
		{"no slots", nvme, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := bay(sysTree(t, c.real, c.files), filepath.Base(c.real)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestFindPlace: a disk that moved to another slot, or has other sectors, is
// another disk, though its name, size and serial are the same.
func TestFindPlace(t *testing.T) {
	t.Parallel()
	const real = "sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda"
	i := Inspector{FS: sysTree(t, real, map[string]string{real + "/serial": "S1", real + "/queue/logical_block_size": "4096", "sys/bus/pci/slots/4/address": "0000:00:04"}), Open: below(t.TempDir())}
	is := wire.Disk{Path: "/dev/vda", Size: 1 << 20, Serial: "S1", ByPath: "pci-0000:00:04.0", Bay: "4", Sector: 4096}
	got, err := i.Find(is)
	if err != nil || got.ByPath != is.ByPath || got.Bay != is.Bay || got.Sector != is.Sector {
		t.Fatalf("got %+v, %v", got, err)
	}
	for want, change := range map[string]func(*wire.Disk){
		"is at pci-0000:00:04.0, expected pci-0000:00:05.0": func(d *wire.Disk) { d.ByPath = "pci-0000:00:05.0" },
		`is in bay "4", expected "5"`:                       func(d *wire.Disk) { d.Bay = "5" },
		"has sectors of 4096 bytes, expected 512":           func(d *wire.Disk) { d.Sector = 512 },
	} {
		d := is
		change(&d)
		if _, err := i.Find(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
