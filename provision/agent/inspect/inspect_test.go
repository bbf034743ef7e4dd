// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// nodeTree is a two-socket node: a boot NIC, an HCA, a BMC's USB NIC, an NVMe
// disk, a SATA disk, a USB stick and a virtual CD.
var nodeTree = map[string]string{
	"sys/class/dmi/id/sys_vendor": "Example Corp. \n", "sys/class/dmi/id/product_name": "GX-8\n", "sys/class/dmi/id/product_serial": "S123\n",
	"sys/class/dmi/id/product_uuid": "6C616230-0000-4000-8000-000000000001\n", "sys/class/dmi/id/bios_vendor": "AMI\n", "sys/class/dmi/id/bios_version": "2.4\n",
	"sys/firmware/efi/fw_platform_size": "64\n",
	"proc/cpuinfo":                      "processor\t: 0\nmodel name\t: Example 9654\n", "proc/meminfo": "MemTotal:       1048576 kB\nMemFree: 1 kB\n",
	"sys/devices/system/cpu/cpu0/topology/physical_package_id": "0", "sys/devices/system/cpu/cpu0/topology/core_id": "0",
	"sys/devices/system/cpu/cpu1/topology/physical_package_id": "0", "sys/devices/system/cpu/cpu1/topology/core_id": "0",
	"sys/devices/system/cpu/cpu2/topology/physical_package_id": "1", "sys/devices/system/cpu/cpu2/topology/core_id": "0",
	"sys/devices/system/cpu/cpufreq/x":                     "",
	"sys/devices/pci0000:00/0000:00:03.0/net/eth0/address": "52:54:00:77:00:11\n", "sys/devices/pci0000:00/0000:00:03.0/net/eth0/carrier": "1\n",
	"sys/devices/pci0000:00/0000:00:03.0/net/eth0/speed": "25000\n", "sys/devices/pci0000:00/0000:00:03.0/class": "0x020000\n",
	"sys/devices/pci0000:00/0000:00:03.0/vendor": "0x15b3\n", "sys/devices/pci0000:00/0000:00:03.0/device": "0x1021\n",
	"sys/devices/pci0000:00/0000:00:04.0/net/ib0/address":                  "20:00:00:00:fe:80:00:00:00:00:00:00:50:6b:4b:03:00:5c:27:40\n",
	"sys/devices/pci0000:00/0000:00:14.0/usb1/1-1/net/usb0/address":        "02:00:00:00:00:01\n",
	"sys/devices/virtual/net/lo/address":                                   "00:00:00:00:00:00\n",
	"sys/devices/pci0000:00/0000:00:05.0/nvme/nvme0/nvme0n1/size":          "16384\n",
	"sys/devices/pci0000:00/0000:00:05.0/nvme/nvme0/nvme0n1/wwid":          "eui.0025\n",
	"sys/devices/pci0000:00/0000:00:05.0/nvme/nvme0/nvme0n1/device/serial": "NV1 \n",
	"sys/devices/pci0000:00/0000:00:05.0/nvme/nvme0/nvme0n1/device/model":  "PM9A3\n",
	"sys/devices/pci0000:00/0000:00:06.0/ata1/sda/size":                    "32768\n",
	"sys/devices/pci0000:00/0000:00:06.0/ata1/sda/queue/rotational":        "1\n",
	"sys/devices/pci0000:00/0000:00:06.0/ata1/sda/device/vpd_pg80":         "\x00\x80\x00\x04 WD7",
	"sys/devices/pci0000:00/0000:00:14.0/usb1/sdb/size":                    "1000\n",
	"sys/devices/pci0000:00/0000:00:14.0/usb1/sdb/removable":               "1\n",
	"sys/devices/virtual/block/loop0/size":                                 "8\n",
	"sys/devices/pci0000:00/0000:00:06.0/ata2/sr0/size":                    "8\n",
	"sys/devices/pci0000:00/0000:00:04.0/infiniband/mlx5_0/node_guid":      "506b:4b03:005c:2740\n",
	"dev/nvme0n1": "", "dev/sda": "somebody's data",
}

// links of the tree; targets are relative to sys.
var nodeLinks = map[string]string{
	"sys/class/net/eth0": "devices/pci0000:00/0000:00:03.0/net/eth0", "sys/devices/pci0000:00/0000:00:03.0/net/eth0/device": "devices/pci0000:00/0000:00:03.0",
	"sys/class/net/ib0": "devices/pci0000:00/0000:00:04.0/net/ib0", "sys/devices/pci0000:00/0000:00:04.0/net/ib0/device": "devices/pci0000:00/0000:00:04.0",
	"sys/class/net/usb0": "devices/pci0000:00/0000:00:14.0/usb1/1-1/net/usb0", "sys/devices/pci0000:00/0000:00:14.0/usb1/1-1/net/usb0/device": "devices/pci0000:00/0000:00:14.0/usb1/1-1",
	"sys/class/net/lo": "devices/virtual/net/lo", "sys/bus/pci/devices/0000:00:03.0": "devices/pci0000:00/0000:00:03.0",
	"sys/devices/pci0000:00/0000:00:03.0/driver": "bus/pci/drivers/mlx5_core",
	"sys/block/nvme0n1":                          "devices/pci0000:00/0000:00:05.0/nvme/nvme0/nvme0n1", "sys/block/sda": "devices/pci0000:00/0000:00:06.0/ata1/sda",
	"sys/block/sdb": "devices/pci0000:00/0000:00:14.0/usb1/sdb", "sys/block/loop0": "devices/virtual/block/loop0", "sys/block/sr0": "devices/pci0000:00/0000:00:06.0/ata2/sr0",
	"sys/class/infiniband/mlx5_0": "devices/pci0000:00/0000:00:04.0/infiniband/mlx5_0",
}

func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range nodeTree {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range nodeLinks {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		rel, err := filepath.Rel(filepath.Dir(path), filepath.Join(dir, "sys", to))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(rel, path); err != nil {
			t.Fatal(err)
		}
	}
	for name, size := range map[string]int64{"dev/nvme0n1": 8 << 20, "dev/sda": 16 << 20} {
		if err := os.Truncate(filepath.Join(dir, name), size); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// below opens the disks of a tree.
func below(dir string) disk.Opener {
	return func(path string, use disk.Use) (disk.Device, error) { return disk.Open(filepath.Join(dir, path), use) }
}

func TestHardware(t *testing.T) {
	t.Parallel()
	mac := addr.MAC{0x52, 0x54, 0, 0x77, 0, 0x11}
	dir := tree(t)
	i := Inspector{FS: sysfs.Dir(dir), Open: below(dir), BootMAC: mac, RDMA: func(netdev string) string {
		return map[string]string{"ib0": "mlx5_0"}[netdev]
	}}
	got := i.Hardware()
	want := wire.Hardware{
		Identity: wire.Identity{Vendor: "Example Corp.", Product: "GX-8", Serial: "S123", UUID: "6c616230-0000-4000-8000-000000000001", BootMAC: mac},
		BIOS:     "AMI 2.4", Firmware: "uefi",
		CPU:    wire.CPU{Model: "Example 9654", Sockets: 2, Cores: 2, Threads: 3},
		Memory: wire.Memory{Usable: 1 << 30},
		NICs: []wire.NIC{
			{Name: "eth0", MAC: mac, PCI: "0000:00:03.0", Driver: "mlx5_core", Link: true, Speed: 25e9},
			{Name: "ib0", PCI: "0000:00:04.0"},
		},
		Disks: []wire.Disk{
			{Name: "nvme0n1", Path: "/dev/nvme0n1", PCI: "0000:00:05.0", Type: "nvme", Model: "PM9A3", Serial: "NV1", WWN: "eui.0025", Size: 8 << 20},
			{Name: "sda", Path: "/dev/sda", PCI: "0000:00:06.0", Type: "hdd", Serial: "WD7", Size: 16 << 20, Content: "unknown data at byte 0"},
		},
		PCI:  []wire.PCI{{Address: "0000:00:03.0", Class: "020000", Vendor: "15b3", Device: "1021", Driver: "mlx5_core"}},
		RDMA: []wire.RDMADev{{Name: "mlx5_0", Netdev: "ib0", GUID: "0x506b4b03005c2740"}},
	}
	g, _ := json.MarshalIndent(got, "", " ")
	w, _ := json.MarshalIndent(want, "", " ")
	if string(g) != string(w) {
		t.Errorf("got %s\nwant %s", g, w)
	}
}

func TestEmptyNode(t *testing.T) {
	t.Parallel()
	got := Inspector{FS: sysfs.Dir(t.TempDir())}.Hardware()
	if got.Firmware != "bios" || len(got.Disks)+len(got.NICs)+len(got.PCI) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := tree(t)
	i := Inspector{FS: sysfs.Dir(dir), Open: below(dir)}
	disks := i.Disks()
	at := slices.IndexFunc(disks, func(d wire.Disk) bool { return d.Name == "sda" })
	for _, c := range []struct {
		name  string
		spoil func(*wire.Disk)
		want  string
	}{
		{"as inspected", func(*wire.Disk) {}, ""},
		{"another size", func(d *wire.Disk) { d.Size++ }, "has 16777216 bytes, expected 16777217"},
		{"another serial", func(d *wire.Disk) { d.Serial = "X" }, `has serial "WD7", expected "X"`},
		{"another WWN", func(d *wire.Disk) { d.WWN = "naa.5" }, "has WWN"},
		{"another slot", func(d *wire.Disk) { d.PCI = "0000:00:05.0" }, "is at PCI 0000:00:06.0"},
		{"gone", func(d *wire.Disk) { d.Path = "/dev/sdz" }, "there is no disk"},
		{"a removable disk", func(d *wire.Disk) { d.Path = "/dev/sdb" }, "there is no disk"},
		{"a path that climbs", func(d *wire.Disk) { d.Path = "/dev/../dev/sda" }, "there is no disk"},
		{"no path", func(d *wire.Disk) { d.Path = "" }, "there is no disk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := disks[at]
			c.spoil(&want)
			got, err := i.Find(want)
			if c.want == "" {
				if err != nil || got.Content != "unknown data at byte 0" {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if err == nil || errkind.Of(err) != errkind.Mismatch || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
