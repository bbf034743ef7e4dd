// SPDX-License-Identifier: Apache-2.0

package lspci

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func parse(t *testing.T, text string) ([]Device, tool.Problems) {
	t.Helper()
	d, problems, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d.Devices, problems
}

func TestHeads(t *testing.T) {
	t.Parallel()
	d, problems := parse(t, tooltest.ReadSample(t, "lspci.numbers.txt"))
	tooltest.WantNoProblems(t, problems)
	if g := d[2]; g.Address != "0000:06:00.0" || g.Class != "3D controller" || g.ClassID != "0302" || g.Name != "NVIDIA Corporation GA102GL [A10]" || g.VendorID != "10de" || g.DeviceID != "2236" || g.Revision != "a1" {
		t.Errorf("%+v", g)
	}
	if n := d[3]; n.DeviceID != "a824" || n.Revision != "" || n.Name != "Samsung Electronics Co Ltd NVMe SSD Controller PM173X" {
		t.Errorf("%+v", n)
	}
	d, problems = parse(t, tooltest.ReadSample(t, "lspci.plain.txt"))
	tooltest.WantNoProblems(t, problems)
	if g := d[1]; g.Address != "0009:01:00.0" || g.VendorID != "" || g.Name != "NVIDIA Corporation Device 2941" {
		t.Errorf("%+v", g)
	}
	d, problems = parse(t, "00:00.0 0600: 8086:29c0 (rev 20)\n10000:e1:00.1 0108: 144d:a824\n")
	tooltest.WantNoProblems(t, problems)
	if d[0].ClassID != "0600" || d[0].VendorID != "8086" || d[0].Revision != "20" || d[1].Address != "10000:e1:00.1" || d[1].DeviceID != "a824" {
		t.Errorf("-n: %+v", d)
	}
}

func TestVerbose(t *testing.T) {
	t.Parallel()
	good := tooltest.ReadSample(t, "lspci.verbose.txt")
	d, problems := parse(t, good)
	tooltest.WantNoProblems(t, problems)
	bridge, gpu := d[0], d[1]
	if *bridge.NUMA != 0 || *bridge.IOMMU != 12 || bridge.Driver != "pcieport" || *bridge.LinkStatus != (Link{32, 16, ""}) || bridge.Downgraded || bridge.MaxPayload != 512 || bridge.MaxReadRequest != 128 {
		t.Errorf("%+v", bridge)
	}
	if !bridge.ACS.Control["ReqRedir"] || bridge.ACS.Control["TransBlk"] || !bridge.ACS.Capability["TransBlk"] || len(bridge.AER.Uncorrectable) != 0 {
		t.Errorf("%+v %+v", bridge.ACS, bridge.AER)
	}
	if *gpu.NUMA != 1 || gpu.Slot != "7" || !gpu.Downgraded || *gpu.LinkCapability != (Link{32, 16, ""}) || *gpu.LinkStatus != (Link{16, 8, "speed downgraded, width downgraded"}) || gpu.Modules != "nvidia_drm, nvidia" {
		t.Errorf("%+v", gpu)
	}
	if !slices.Equal(gpu.AER.Uncorrectable, []string{"CmpltTO"}) || !slices.Equal(gpu.AER.Correctable, []string{"RxErr", "Timeout"}) || gpu.ACS != nil {
		t.Errorf("%+v", gpu.AER)
	}
	tooltest.CheckWrong(t, Format, good, []tooltest.Case{
		{Name: "denied", From: "Capabilities: [60] Express (v2) Endpoint, MSI 00", To: "Capabilities: <access denied>", Kind: tool.Missing, Line: 24, Text: "1 of 2 devices"},
		{Name: "off the bus", From: "(rev a1)", To: "(rev ff)", Kind: tool.Failed, Line: 24, Text: "0000:18:00.0"},
		{Name: "unknown header", From: "Physical Slot: 7", To: "!!! Unknown header type 7f", Kind: tool.Failed, Line: 26, Text: "7f"},
		{Name: "too fast", From: "Speed 32GT/s (ok)", To: "Speed 64GT/s (ok)", Kind: tool.Inconsistent, Line: 1, Text: "64 GT/s"},
		{Name: "no status", From: "		LnkSta:	Speed 16GT/s (downgraded), Width x8 (downgraded)\n", Kind: tool.Missing, Line: 24, Text: "no LnkSta"},
		{Name: "torn link", From: "Speed 16GT/s (downgraded), Width x8 (downgraded)", To: "Speed 16GT", Kind: tool.Truncated, Line: 30, Text: "no speed"},
		{Name: "two nodes", From: "18:00.0 3D", To: "17:00.0 3D", Kind: tool.Inconsistent, Line: 24, Text: "line 1"},
	})
}

// TestOld: pciutils 2 has other words for links, and a word before the number of a
// class.
func TestOld(t *testing.T) {
	t.Parallel()
	text := "04:00.0 InfiniBand: Vendor of HCAs MT25204 (rev 20)\n\tCapabilities: [60] Express Endpoint IRQ 0\n\t\tDevice: Supported: MaxPayload 256 bytes, PhantFunc 0, ExtTag+\n\t\tDevice: MaxPayload 128 bytes, MaxReadReq 512 bytes\n\t\tLink: Supported Speed 2.5Gb/s, Width x8, ASPM L0s, Port 8\n\t\tLink: Latency L0s unlimited, L1 unlimited\n\t\tLink: Speed 2.5Gb/s, Width x4\n"
	d, problems := parse(t, text)
	tooltest.WantNoProblems(t, problems)
	if h := d[0]; Format.Is([]byte(text)) == 0 || *h.LinkCapability != (Link{2.5, 8, ""}) || *h.LinkStatus != (Link{2.5, 4, ""}) || !h.Downgraded || h.MaxPayload != 128 || h.MaxReadRequest != 512 {
		t.Errorf("%+v", h)
	}
	d, problems = parse(t, "00:00.0 Class 0600: 8086:2774\n01:00.0 Class 0c06: 15b3:6274 (rev 20)\n")
	tooltest.WantNoProblems(t, problems)
	if d[0].Class != "" || d[0].ClassID != "0600" || d[1].ClassID != "0c06" || d[1].DeviceID != "6274" {
		t.Errorf("%+v", d)
	}
}

// TestNoLink: a port that nothing is connected to has a width of 0, and is not
// slower than it can.
func TestNoLink(t *testing.T) {
	t.Parallel()
	d, problems := parse(t, "00:01.0 PCI bridge: Vendor Root Port\n\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n\t\tLnkSta:\tSpeed 2.5GT/s, Width x0\n")
	tooltest.WantNoProblems(t, problems)
	if d[0].Downgraded || d[0].LinkStatus.Width != 0 {
		t.Errorf("%+v", d[0])
	}
}

// TestClasses: a search in the list leaves devices of one class.
func TestClasses(t *testing.T) {
	t.Parallel()
	for _, class := range []string{"Fibre Channel", "FireWire (IEEE 1394)", "InfiniBand", "Performance counters", "PIC", "SMBus"} {
		if Format.Is([]byte("0d:00.0 "+class+": Vendor of all\n")) == 0 {
			t.Errorf("%s is no class", class)
		}
	}
}

// TestPath: -PP has the way to a device before it, -P leaves the buses out.
func TestPath(t *testing.T) {
	t.Parallel()
	d, problems := parse(t, "00:01.1 PCI bridge: Vendor Root\n00:01.1/01:00.0 PCI bridge: Vendor Upstream\n00:01.1/01:00.0/02:04.0 3D controller: Vendor GPU (rev a1)\n0001:00:01.0/01:00.0 Infiniband controller: Vendor HCA\n")
	tooltest.WantNoProblems(t, problems)
	if len(d) != 4 || d[1].Address != "0000:01:00.0" || d[1].Parent != "0000:00:01.1" || d[2].Address != "0000:02:04.0" || d[2].Parent != "0000:01:00.0" || d[3].Address != "0001:01:00.0" || d[3].Parent != "0001:00:01.0" || d[0].Parent != "" {
		t.Errorf("%+v", d)
	}
	d, problems = parse(t, "00:01.1 PCI bridge: Vendor Root\n00:01.1/00.0 PCI bridge: Vendor Upstream\n")
	if len(d) != 1 {
		t.Errorf("%+v", d)
	}
	tooltest.WantProblem(t, problems, tool.Missing, 2, "00:01.1/00.0")
}

func TestTorn(t *testing.T) {
	t.Parallel()
	tooltest.CheckTorn(t, Format, tooltest.ReadSample(t, "lspci.numbers.txt"), func(rest string) bool {
		rest = strings.TrimSpace(rest)
		return strings.HasSuffix(rest, "]") || strings.HasSuffix(rest, ")")
	})
	good := tooltest.ReadSample(t, "lspci.verbose.txt")
	tooltest.CheckTorn(t, Format, good, func(rest string) bool {
		last := rest[strings.LastIndexByte(rest, '\n')+1:]
		return strings.TrimSpace(last) == "" || strings.Contains(last, "Kernel ") || strings.HasSuffix(strings.TrimSpace(last), ")") && !strings.HasPrefix(last, "\t")
	})
}

func TestPublicSamples(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"gpud-a10.txt": 20, "gpud-vvv.txt": 520} {
		d, problems := parse(t, tooltest.ReadPublic(t, "lspci/"+name))
		if len(problems) != 0 || len(d) < want/2 {
			t.Errorf("%s: %d devices, %v", name, len(d), problems)
		}
	}
}

func FuzzParse(f *testing.F) {
	tooltest.Fuzz(f, Format, "lspci.numbers.txt", "lspci.plain.txt", "lspci.verbose.txt", "lspci.machine.txt", "lspci.tree.txt")
}
