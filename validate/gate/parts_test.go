// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/gate/traits"
)

// TestPartsInCommon: what a node is made of, as nodes of a role are compared by it. The
// display of the BMC and a USB stick are no parts of it, and places of disks are named, not
// their serial numbers; nor is the MTU of InfiniBand ports.
func TestPartsInCommon(t *testing.T) {
	t.Parallel()
	var s look.Seen
	s.Health = wire.Health{
		CPU:   wire.CPU{Model: "Xeon 8480C", Sockets: 2, Cores: 112, NUMA: 2, SMT: ptr(true)},
		DIMMs: []wire.Module{{Slot: "A1", Size: 64 << 30, Speed: 4800}, {Slot: "A2", Size: 64 << 30, Speed: 4800}, {Slot: "A3", Size: 32 << 30}, {Slot: "B1"}},
		Drives: []wire.Disk{{Name: "nvme0n1", Type: "nvme", PCI: "0000:5e:00.0", ByPath: "pci-0000:5e:00.0-nvme-1", Bay: "2", Model: "PM9A3", Serial: "S1", Size: 3840755982336},
			{Name: "sda", Type: "ssd", ByPath: "pci-0000:00:14.0-usb-0:1:1.0-scsi-0:0:0:0", Model: "STICK", Size: 1 << 30}},
		PCI: []wire.PCILink{
			{Address: "0000:03:00.0", Class: "030000", Vendor: "1a03", Device: "2000"},
			{Address: "0000:18:00.0", Class: "020000", Vendor: "15b3", Device: "1021", MaxWidth: ptr(16), MaxSpeed: ptr(32.), MTU: ptr(int64(9000)), Transceiver: &wire.Transceiver{Maker: "NVIDIA", Part: "MMA1Z00-NS400", Serial: "MT1"}},
			{Address: "0000:1a:00.0", Class: "020700", Vendor: "15b3", Device: "1021", MTU: ptr(int64(2044))},
			{Address: "0000:19:00.0", Class: "030200", Vendor: "10de", Device: "2330", MaxWidth: ptr(16), MaxSpeed: ptr(32.)},
			{Address: "0000:5e:00.0", Class: "010802", Vendor: "144d", Device: "a80a", Width: ptr(4), Speed: ptr(16.), MaxWidth: ptr(4), MaxSpeed: ptr(16.)},
		},
	}
	total := 81559.
	s.NVIDIA = &nvidiasmi.Log{GPUs: []nvidiasmi.GPU{{BusID: "0000:19:00.0", Name: "NVIDIA H100 80GB HBM3", Serial: "165", Memory: nvidiasmi.Memory{Total: &total}}}}
	var got []string
	for _, x := range traits.Common("n1", s, nil) {
		got = append(got, strings.TrimRight(fmt.Sprintf("%s=%s %s", x.Key, x.Value, strings.Join(x.Parts, "+")), " "))
	}
	want := strings.Join([]string{
		"CPU model=Xeon 8480C", "CPU cores=112 in 2 sockets", "SMT=on", "NUMA nodes=2", "DIMM=32GiB DIMM A3", "DIMM=64GiB at 4800 MT/s DIMM A1+DIMM A2", "DIMMs=3 in 4 slots; empty: B1",
		"NIC model=PCI 15b3:1021", "NIC PCIe link=x16 at 32 GT/s NIC at 0000:18:00.0", "transceiver=NVIDIA MMA1Z00-NS400 NIC at 0000:18:00.0", "MTU=9000 NIC at 0000:18:00.0",
		"GPU PCI id=10de:2330 GPU 0 at 0000:19:00.0, serial 165", "GPU PCIe link=x16 at 32 GT/s GPU 0 at 0000:19:00.0, serial 165",
		"disk type=nvme disk at pci-0000:5e:00.0-nvme-1 (bay 2)", "disk size=3840755982336 bytes disk at pci-0000:5e:00.0-nvme-1 (bay 2)", "disk model=PM9A3 disk at pci-0000:5e:00.0-nvme-1 (bay 2)", "disk PCIe link=x4 at 16 GT/s disk at pci-0000:5e:00.0-nvme-1 (bay 2)", "disks=1",
		"GPU model=NVIDIA H100 80GB HBM3 GPU 0 at 0000:19:00.0, serial 165", "GPU memory=81559 MiB GPU 0 at 0000:19:00.0, serial 165",
	}, "\n")
	if g := strings.Join(got, "\n"); g != want {
		t.Errorf("got\n%s\nwant\n%s", g, want)
	}
}

// TestGPUSpeed: a link between rest and full speed is a fault where most of the node's run at
// full speed and the driver saw it too; a GPU at rest is none.
func TestGPUSpeed(t *testing.T) {
	t.Parallel()
	h := &inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "nvidia", Count: 4}}}
	for name, c := range map[string]struct {
		speeds []float64
		driver int64 // generation of the first GPU; 0: no driver
		want   string
	}{
		"full":                 {[]float64{32, 32, 32, 32}, 0, ""},
		"one slow":             {[]float64{16, 32, 32, 32}, 0, "GPU at 0000:19:00.0: its PCIe link runs at 16 GT/s and can 32 GT/s, as those of 3 other GPUs do"},
		"and by the driver":    {[]float64{16, 32, 32, 32}, 4, "GPU 0 at 0000:19:00.0: its PCIe link runs at 16 GT/s"},
		"the driver found it":  {[]float64{16, 32, 32, 32}, 5, ""},
		"at rest":              {[]float64{2.5, 32, 32, 32}, 0, ""},
		"all at rest":          {[]float64{2.5, 2.5, 2.5, 2.5}, 0, ""},
		"two of four are slow": {[]float64{16, 16, 32, 32}, 0, ""},
		"only one at speed":    {[]float64{16, 2.5, 2.5, 32}, 0, ""},
	} {
		var s look.Seen
		for i, v := range c.speeds {
			s.Health.PCI = append(s.Health.PCI, wire.PCILink{Address: fmt.Sprintf("0000:%d9:00.0", i+1), Class: "030200", Vendor: "10de", Speed: ptr(v), MaxSpeed: ptr(32.)})
		}
		if c.driver > 0 {
			s.NVIDIA = &nvidiasmi.Log{}
			for i, l := range s.Health.PCI {
				s.NVIDIA.GPUs = append(s.NVIDIA.GPUs, nvidiasmi.GPU{Index: i, BusID: l.Address, PCIe: nvidiasmi.PCIe{Generation: ptr(c.driver), MaxGeneration: ptr(int64(5))}})
			}
		}
		faults, _ := gate.Judge(h, nil, s)
		got := ""
		for _, f := range faults {
			if strings.Contains(f.Cause, "PCIe") {
				got += f.Cause
			}
		}
		if !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
