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
	d, problems := parse(t, tooltest.Sample(t, "lspci.numbers.txt"))
	tooltest.None(t, problems)
	if g := d[2]; g.Address != "0000:06:00.0" || g.Class != "3D controller" || g.ClassID != "0302" || g.Name != "NVIDIA Corporation GA102GL [A10]" || g.VendorID != "10de" || g.DeviceID != "2236" || g.Revision != "a1" {
		t.Errorf("%+v", g)
	}
	if n := d[3]; n.DeviceID != "a824" || n.Revision != "" || n.Name != "Samsung Electronics Co Ltd NVMe SSD Controller PM173X" {
		t.Errorf("%+v", n)
	}
	d, problems = parse(t, tooltest.Sample(t, "lspci.plain.txt"))
	tooltest.None(t, problems)
	if g := d[1]; g.Address != "0009:01:00.0" || g.VendorID != "" || g.Name != "NVIDIA Corporation Device 2941" {
		t.Errorf("%+v", g)
	}
	d, problems = parse(t, "00:00.0 0600: 8086:29c0 (rev 20)\n10000:e1:00.1 0108: 144d:a824\n")
	tooltest.None(t, problems)
	if d[0].ClassID != "0600" || d[0].VendorID != "8086" || d[0].Revision != "20" || d[1].Address != "10000:e1:00.1" || d[1].DeviceID != "a824" {
		t.Errorf("-n: %+v", d)
	}
}

func TestVerbose(t *testing.T) {
	t.Parallel()
	good := tooltest.Sample(t, "lspci.verbose.txt")
	d, problems := parse(t, good)
	tooltest.None(t, problems)
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
	tooltest.Wrong(t, Format, good, []tooltest.Case{
		{Name: "denied", From: "Capabilities: [60] Express (v2) Endpoint, MSI 00", To: "Capabilities: <access denied>", Kind: tool.Missing, Line: 24, Text: "1 of 2 devices"},
		{Name: "off the bus", From: "(rev a1)", To: "(rev ff)", Kind: tool.Failed, Line: 24, Text: "0000:18:00.0"},
		{Name: "unknown header", From: "Physical Slot: 7", To: "!!! Unknown header type 7f", Kind: tool.Failed, Line: 26, Text: "7f"},
		{Name: "too fast", From: "Speed 32GT/s (ok)", To: "Speed 64GT/s (ok)", Kind: tool.Inconsistent, Line: 1, Text: "64 GT/s"},
		{Name: "no status", From: "		LnkSta:	Speed 16GT/s (downgraded), Width x8 (downgraded)\n", Kind: tool.Missing, Line: 24, Text: "no LnkSta"},
		{Name: "torn link", From: "Speed 16GT/s (downgraded), Width x8 (downgraded)", To: "Speed 16GT", Kind: tool.Truncated, Line: 30, Text: "no speed"},
		{Name: "two nodes", From: "18:00.0 3D", To: "17:00.0 3D", Kind: tool.Inconsistent, Line: 24, Text: "line 1"},
	})
}

func TestTorn(t *testing.T) {
	t.Parallel()
	tooltest.Torn(t, Format, tooltest.Sample(t, "lspci.numbers.txt"), func(rest string) bool {
		rest = strings.TrimSpace(rest)
		return strings.HasSuffix(rest, "]") || strings.HasSuffix(rest, ")")
	})
	good := tooltest.Sample(t, "lspci.verbose.txt")
	tooltest.Torn(t, Format, good, func(rest string) bool {
		last := rest[strings.LastIndexByte(rest, '\n')+1:]
		return strings.TrimSpace(last) == "" || strings.Contains(last, "Kernel ") || strings.HasSuffix(strings.TrimSpace(last), ")") && !strings.HasPrefix(last, "\t")
	})
}

func TestPublicSamples(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"gpud-a10.txt": 20, "gpud-vvv.txt": 520} {
		d, problems := parse(t, tooltest.Public(t, "lspci/"+name))
		if len(problems) != 0 || len(d) < want/2 {
			t.Errorf("%s: %d devices, %v", name, len(d), problems)
		}
	}
}

func FuzzParse(f *testing.F) {
	tooltest.Fuzz(f, Format, "lspci.numbers.txt", "lspci.plain.txt", "lspci.verbose.txt", "lspci.machine.txt", "lspci.tree.txt")
}
