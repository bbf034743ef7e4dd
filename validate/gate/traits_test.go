// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// TestTraits: what is each node's own is not among them, and parts are named only
// where they tell one from another.
func TestTraits(t *testing.T) {
	t.Parallel()
	clock, limit := 1980.0, 700.0
	gpu := func(i int, vbios string) nvidiasmi.GPU {
		g := nvidiasmi.GPU{Index: i, BusID: fmt.Sprintf("0000:%d9:00.0", i), Serial: "S", UUID: "GPU-1", VBIOS: vbios}
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
	for _, x := range gate.CommonTraits("n1", look.Seen{NVIDIA: &nvidiasmi.Log{Driver: "580", GPUs: []nvidiasmi.GPU{gpu(0, "96.1"), gpu(1, "96.1"), gpu(2, "96.0")}}}, items) {
		got = append(got, strings.TrimRight(fmt.Sprintf("%s/%s=%s %s", x.Key, x.Of, x.Value, strings.Join(x.Parts, "+")), " "))
	}
	want := strings.Join([]string{
		"GPU driver/=580", "GPU VBIOS/=96.0 GPU 2 at 0000:29:00.0, serial S", "GPU VBIOS/=96.1 GPU 0 at 0000:09:00.0, serial S+GPU 1 at 0000:19:00.0, serial S",
		"GPU highest clock/=1980 MHz", "GPU power limit/=700 W", "NICs/=2 x MT4129 MT_0838",
		"NIC firmware/MT4129 MT_0838=28.39.1002 NIC at 0000:3b:00.0", "NIC firmware/MT4129 MT_0838=28.43.1014 NIC at 0000:18:00.0",
		"disk firmware/PM9A3=GDC7 disk S1", "kernel/=6.8.0-1", "kernel arguments/=console=ttyS1 console=tty0 iommu=pt", "BIOS/=2.1", "NIC driver/mlx5_core=24.10",
	}, "\n")
	if g := strings.Join(got, "\n"); g != want {
		t.Errorf("got\n%s\nwant\n%s", g, want)
	}
}
