// SPDX-License-Identifier: Apache-2.0

package traits_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/gate/traits"
)

// TestTraits: what is each node's own is not among them, and parts are named only
// where they tell one from another.
func TestTraits(t *testing.T) {
	t.Parallel()
	clock, limit := 1980.0, 700.0
	gpu := func(i int, vbios string) nvidiasmi.GPU {
		g := nvidiasmi.GPU{Index: i, BusID: fmt.Sprintf("0000:%d9:00.0", i), Serial: "S", UUID: "GPU-1", VBIOS: vbios, GSPFirmware: "580"}
		g.MaxClocks.SM, g.Power.Limit = &clock, &limit
		return g
	}
	items := []wire.Item{
		{Kind: wire.ItemKernel, Name: "release", Value: "6.8.0-1"},
		{Kind: wire.ItemKernel, Name: "arguments", Value: "root=UUID=1 iommu=pt console=ttyS1 hostname=n1 console=tty0 BOOT_IMAGE=/vmlinuz"},
		{Kind: wire.ItemFirmware, Part: "BIOS", Name: "version", Value: "2.1"},
		{Kind: wire.ItemHardware, Part: "0000:18:00.0", Name: "HCA", Value: "MT4129 MT_0838"}, {Kind: wire.ItemHardware, Part: "0000:3b:00.0", Name: "HCA", Value: "MT4129 MT_0838"},
		{Kind: wire.ItemFirmware, Part: "0000:18:00.0", Name: "HCA", Value: "28.43.1014"}, {Kind: wire.ItemFirmware, Part: "0000:3b:00.0", Name: "HCA", Value: "28.39.1002"},
		{Kind: wire.ItemHardware, Part: "disk S1", Name: "model", Value: "PM9A3 3840755982336"}, {Kind: wire.ItemFirmware, Part: "disk S1", Name: "version", Value: "GDC7"},
		{Kind: wire.ItemHardware, Part: "", Name: "serial", Value: "SN1"}, {Kind: wire.ItemDrivers, Part: "mlx5_core", Name: "version", Value: "24.10"},
		{Kind: wire.ItemDrivers, Part: "gdrdrv", Name: "version", Value: "2.4"},
	}
	var got []string
	for _, x := range traits.Common("n1", look.Seen{NVIDIA: &nvidiasmi.Log{Driver: "580", GPUs: []nvidiasmi.GPU{gpu(0, "96.1"), gpu(1, "96.1"), gpu(2, "96.0")}}}, items) {
		got = append(got, strings.TrimRight(fmt.Sprintf("%s/%s=%s %s", x.Key, x.Of, x.Value, strings.Join(x.Parts, "+")), " "))
	}
	want := strings.Join([]string{
		"GPU driver/=580", "GPU VBIOS/=96.0 GPU 2 at 0000:29:00.0, serial S", "GPU VBIOS/=96.1 GPU 0 at 0000:09:00.0, serial S+GPU 1 at 0000:19:00.0, serial S",
		"GPU GSP firmware/=580",
		"GPU highest clock/=1980 MHz", "GPU power limit/=700 W", "NICs/=2 x MT4129 MT_0838",
		"NIC firmware/MT4129 MT_0838=28.39.1002 NIC at 0000:3b:00.0", "NIC firmware/MT4129 MT_0838=28.43.1014 NIC at 0000:18:00.0",
		"disk firmware/PM9A3=GDC7 disk S1", "kernel/=6.8.0-1", "kernel arguments/=console=ttyS1 console=tty0 iommu=pt", "BIOS/=2.1", "NIC driver/mlx5_core=24.10",
	}, "\n")
	if g := strings.Join(got, "\n"); g != want {
		t.Errorf("got\n%s\nwant\n%s", g, want)
	}
}

// TestPlaces: parts are named by what nodes have in common, and each is counted; RDMA ports that
// are down are left out, and so are disks of the BMC.
func TestPlaces(t *testing.T) {
	t.Parallel()
	one, acs := 1, 0x1d
	h := wire.Health{CPU: wire.CPU{NUMA: 2}, PeerMem: true,
		PCI: []wire.PCILink{{Address: "0000:19:00.0", Class: "030200", Vendor: "10de", NUMA: new(int), Above: []string{"0000:15:01.0", "0000:16:00.0"}}, {Address: "0000:3b:00.0", Class: "020000", NUMA: &one, Above: []string{"0000:3a:00.0"}},
			{Address: "0000:03:00.0", Class: "030000", Vendor: "1a03", NUMA: new(int)}},
		Bridges: []wire.PCIBridge{{Address: "0000:15:01.0", Port: "root", ACS: &acs}, {Address: "0000:16:00.0", Port: "downstream"}},
		Drives:  []wire.Disk{{Name: "sda", ByPath: "pci-0000:00:17.0-ata-1", Type: "ssd", Sector: 512, Size: 1 << 40}, {Name: "sdb", ByPath: "pci-0000:00:14.0-usb-0:1", Type: "hdd", Sector: 512}},
		Ports:   []wire.InfiniBandPort{{PCI: "0000:3b:00.0", Number: 1, Layer: "Ethernet", State: "ACTIVE", Physical: "LinkUp", Rate: "400 Gb/sec (4X NDR)"}, {PCI: "0000:3c:00.0", Number: 1, State: "DOWN", Physical: "Disabled"}}}
	links := &nvidiasmi.NVLinks{GPUs: []nvidiasmi.NVLinkGPU{{Index: 0, MIGDevices: 1}}}
	var got []string
	for _, x := range traits.Common("n1", look.Seen{Health: h, Links: links}, nil) {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s/%s=%s %d %s", x.Key, x.Of, x.Value, x.Count, strings.Join(x.Parts, "+"))))
	}
	for _, want := range []string{"nearest NUMA node/hosts with 2=0 1 GPU at 0000:19:00.0", "nearest NUMA node/hosts with 2=1 1 NIC at 0000:3b:00.0", "PCIe path/=2 bridges 1 GPU at 0000:19:00.0", "PCIe path/=1 bridges 1 NIC at 0000:3b:00.0", "PCIe bridges/=2 1",
		"ACS control/=0x001d 1 root port at 0000:15:01.0", "disks/=1 1", "disk type/=ssd 1 disk at pci-0000:00:17.0-ata-1", "disk sector/=512 bytes 1 disk at pci-0000:00:17.0-ata-1",
		"RDMA port/=Ethernet, LinkUp, 400 Gb/sec (4X NDR) 1 port 1 of NIC at 0000:3b:00.0", "nvidia_peermem/=loaded 1", "GPU MIG devices/=1 1 GPU 0"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
}

// TestChassis: fans are counted, those that the BMC finds failed among them; power supplies only where the hardware block does not say how many there are.
func TestChassis(t *testing.T) {
	t.Parallel()
	turns := 5400.
	parts := []chassis.Part{{Kind: chassis.Fan, Speed: &turns}, {Kind: chassis.Fan}, {Kind: chassis.Fan, Speed: new(float64)}, {Kind: chassis.Fan, Speed: new(float64), Failed: true}, {Kind: chassis.Fan, Absent: true}, {Kind: chassis.Supply}, {Kind: chassis.Inlet}}
	if got := fmt.Sprint(traits.Chassis(&inventory.Hardware{}, parts)); got != "[{fans  3 [] 1} {power supplies  1 [] 1}]" {
		t.Error(got)
	}
	if got := fmt.Sprint(traits.Chassis(&inventory.Hardware{Power: inventory.Power{Supplies: 2}}, parts)); got != "[{fans  3 [] 1}]" {
		t.Error(got)
	}
}
