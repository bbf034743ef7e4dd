// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// asBought is a node with two GPUs, a rail and a boot NIC, and its block.
func asBought() (*inventory.Hardware, look.Seen) {
	at := hcl.Range{Filename: "site.hcl", Start: hcl.Pos{Line: 12}}
	h := &inventory.Hardware{Name: "hgx", CPU: inventory.CPU{Model: "Xeon Platinum 8480C", Decl: at},
		GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100 SXM5 80GB", Count: 2, Decl: at}},
		NICs: []inventory.NIC{
			{Name: "rail", HCA: true, Model: "ConnectX-7", Fabric: &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "compute"}, MTU: 4200}, Ports: []inventory.NICPort{{PCI: "0000:18:00.0"}}, Decl: at},
			{Name: "mgmt", Model: "X710", Speed: unit.BitRate(10e9), Network: &inventory.Network{Name: "boot", MTU: 1500}, Ports: []inventory.NICPort{{PCI: "0000:3d:00.0", Rail: -1}}},
		}}
	var s look.Seen
	s.Fabrics = []string{"compute"}
	s.Health.CPU.Model = "Intel(R) Xeon(R) Platinum 8480C"
	s.NVIDIA = &nvidiasmi.Log{}
	for i := range 2 {
		bus := fmt.Sprintf("0000:%d9:00.0", i+1)
		s.Health.PCI = append(s.Health.PCI, wire.PCILink{Address: bus, Class: "030200", Vendor: "10de", Device: "2330", MaxSpeed: ptr(32.)})
		s.NVIDIA.GPUs = append(s.NVIDIA.GPUs, nvidiasmi.GPU{Index: i, BusID: bus, Name: "NVIDIA H100 80GB HBM3", Memory: nvidiasmi.Memory{Total: ptr(81559.)}})
	}
	s.Health.PCI = append(s.Health.PCI, wire.PCILink{Address: "0000:18:00.0", Class: "020000", Vendor: "15b3", Device: "1021", MTU: ptr(int64(4200))},
		wire.PCILink{Address: "0000:3d:00.0", Class: "020000", Vendor: "8086", Device: "1572", MTU: ptr(int64(1500)), Bits: ptr(int64(10e9))})
	return h, s
}

// TestBought: what a node is made of is compared with its block, by the tables of models; what
// they do not know says nothing.
func TestBought(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*inventory.Hardware, *look.Seen)
		want   string // PART: CAUSE, "+" before what may be the block's
	}{
		"as it is":      {func(*inventory.Hardware, *look.Seen) {}, ""},
		"CPU":           {func(_ *inventory.Hardware, s *look.Seen) { s.Health.CPU.Model = "Intel(R) Xeon(R) Gold 6430" }, "+CPU: it is Intel(R) Xeon(R) Gold 6430, and hardware.hgx says Xeon Platinum 8480C"},
		"CPU, unnamed":  {func(_ *inventory.Hardware, s *look.Seen) { s.Health.CPU.Model = "" }, ""},
		"one GPU":       {func(_ *inventory.Hardware, s *look.Seen) { s.NVIDIA.GPUs[1].Name = "NVIDIA H200" }, "+GPU 1 at 0000:29:00.0: its driver calls it NVIDIA H200, and hardware.hgx says H100 SXM5 80GB"},
		"one by its id": {func(_ *inventory.Hardware, s *look.Seen) { s.Health.PCI[1].Device = "2322" }, "+GPU 1 at 0000:29:00.0: its PCI id 10de:2322 is that of H800, and hardware.hgx says H100 SXM5 80GB"},
		"an unknown id": {func(_ *inventory.Hardware, s *look.Seen) { s.Health.PCI[1].Device = "ffff" }, ""},
		"both GPUs": {func(_ *inventory.Hardware, s *look.Seen) {
			s.NVIDIA.GPUs[0].Name, s.NVIDIA.GPUs[1].Name = "NVIDIA H200", "NVIDIA H200"
		}, "+GPUs: all 2 alike: its driver calls it NVIDIA H200, and hardware.hgx says H100 SXM5 80GB"},
		"memory":             {func(_ *inventory.Hardware, s *look.Seen) { s.NVIDIA.GPUs[0].Memory.Total = ptr(65247.) }, "+GPU 0 at 0000:19:00.0: it has 68.4 GB of memory, and its name says 80GB"},
		"memory of block":    {func(h *inventory.Hardware, _ *look.Seen) { h.GPUs[0].Memory = 96e9 }, "+GPUs: all 2 alike: it has 85.5 GB of memory, and hardware.hgx says 96GB"},
		"generation":         {func(_ *inventory.Hardware, s *look.Seen) { s.Health.PCI[0].MaxSpeed = ptr(16.) }, "+GPU 0 at 0000:19:00.0: its PCIe link can 16 GT/s, and that of H100 32 GT/s (its maker's data sheet)"},
		"NIC":                {func(_ *inventory.Hardware, s *look.Seen) { s.Health.PCI[2].Device = "101d" }, "+NIC at 0000:18:00.0: its PCI id 15b3:101d is that of connectx-6 dx, and hardware.hgx says ConnectX-7"},
		"an unknown NIC":     {func(_ *inventory.Hardware, s *look.Seen) { s.Health.PCI[2].Device = "ffff" }, ""},
		"speed of a network": {func(_ *inventory.Hardware, s *look.Seen) { s.Health.PCI[3].Bits = ptr(int64(1e9)) }, "nic mgmt/0: its link runs at 1Gbps, and hardware.hgx says 10Gbps"},
		"no link":            {func(_ *inventory.Hardware, s *look.Seen) { s.Health.PCI[3].Bits = nil }, ""},
		"MTU of a network":   {func(_ *inventory.Hardware, s *look.Seen) { s.Health.PCI[3].MTU = ptr(int64(1400)) }, "nic mgmt/0: its MTU is 1400, and network.boot says 1500"},
		"MTU of a rail":      {func(_ *inventory.Hardware, s *look.Seen) { s.Health.PCI[2].MTU = ptr(int64(1500)) }, "nic rail/0: its MTU is 1500, and fabric.compute says 4200"},
		"MTU of a fabric that is not up": {func(_ *inventory.Hardware, s *look.Seen) {
			s.Health.PCI[2].MTU, s.Fabrics = ptr(int64(1500)), nil
		}, ""},
	} {
		h, s := asBought()
		c.change(h, &s)
		faults, _, _ := gate.JudgeEach(h, nil, s)
		var got []string
		for _, f := range faults {
			if strings.Contains(f.Cause, " are on the PCI bus") {
				continue
			}
			text := f.Cause
			if f.Unlike {
				text = "+" + text
				if !strings.Contains(f.Action, "hardware.hgx at site.hcl:12") {
					t.Errorf("%s: %s", name, f.Action)
				}
			}
			got = append(got, text)
		}
		if g := strings.Join(got, "; "); g != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, g, c.want)
		}
	}
}
