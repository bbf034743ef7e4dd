// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/amdsmi"
	"github.com/ironrail/ironrail/tool/dmesg"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// Two GPUs of each vendor, as the fixtures of the parsers have them.
var (
	nvidia = &inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 2, Interconnect: "nvswitch"}}}
	amd    = &inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "amd", Model: "MI300X", Count: 2, Interconnect: "xgmi"}}}
)

func file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../tool/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func ptr[T any](v T) *T { return &v }

// link is a GPU's place on the bus.
func pciLink(address, vendor string) wire.PCILink {
	return wire.PCILink{Address: address, Class: "030200", Vendor: vendor, Width: ptr(16), MaxWidth: ptr(16), Speed: ptr(2.5), MaxSpeed: ptr(32.0), Fatal: ptr[int64](0)}
}

// good is a node on which everything is well: the second GPU of the fixture, which
// is not, is made so.
func good(t *testing.T) look.Seen {
	t.Helper()
	xml := file(t, "nvidiasmi/testdata/h100.xml")
	for old, new := range map[string]string{"<remapped_row_pending>Yes<": "<remapped_row_pending>No<", ">Reset<": ">None<", "<remapped_row_unc>2<": "<remapped_row_unc>0<",
		"<sram_uncorrectable_parity>2<": "<sram_uncorrectable_parity>0<", "<dram_uncorrectable>2<": "<dram_uncorrectable>0<", ">8x<": ">16x<"} {
		xml = strings.ReplaceAll(xml, old, new)
	}
	log, problems, err := nvidiasmi.ParseXML([]byte(xml))
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	var links strings.Builder
	for _, g := range log.GPUs {
		links.WriteString("GPU " + string(rune('0'+g.Index)) + ": NVIDIA H100 80GB HBM3 (UUID: " + g.UUID + ")\n")
		for i := range 18 {
			n := string(rune('0'+i/10)) + string(rune('0'+i%10))
			links.WriteString("\t Link " + strings.TrimPrefix(n, "0") + ": 26.562 GB/s\n")
			links.WriteString("\t Link " + strings.TrimPrefix(n, "0") + ": CRC Errors: 0\n")
		}
	}
	nvlinks, _, err := nvidiasmi.ParseNVLink([]byte(strings.ReplaceAll(links.String(), "Link :", "Link 0:")))
	if err != nil {
		t.Fatal(err)
	}
	return look.Seen{NVIDIA: &log, Links: &nvlinks, Kernel: &dmesg.Log{}, Health: wire.Health{
		PCI: []wire.PCILink{pciLink("0000:19:00.0", "10de"), pciLink("0000:3b:00.0", "10de"),
			{Address: "0000:1a:00.0", Class: "020700", Vendor: "15b3", Width: ptr(16), MaxWidth: ptr(16), Speed: ptr(32.0), MaxSpeed: ptr(32.0)}},
		Memory: []wire.MemoryErrors{{Controller: "mc0", Corrected: 3}}, Governors: map[string]int{"performance": 4}, Clock: "tsc"}}
}

func goodAMD(t *testing.T) look.Seen {
	t.Helper()
	var all []byte
	for _, name := range []string{"static.json", "metric.json", "bad-pages.json"} {
		text := file(t, "amdsmi/testdata/"+name)
		text = strings.ReplaceAll(text, `"total_uncorrectable_count": 4`, `"total_uncorrectable_count": 0`)
		if name == "bad-pages.json" {
			text = `[{"gpu": 0, "retired": "No bad pages found."}, {"gpu": 1, "retired": "No bad pages found.", "pending": "No bad pages found."}]`
		}
		all = append(all, text+"\n"...)
	}
	r, problems, err := amdsmi.Parse(all)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	r.Links = []amdsmi.Link{{From: 0, To: 1, FromBDF: "0000:0c:00.0", ToBDF: "0000:1c:00.0", Type: "XGMI", Access: "ENABLED"}}
	return look.Seen{AMD: &r, Health: wire.Health{PCI: []wire.PCILink{pciLink("0000:0c:00.0", "1002"), pciLink("0000:1c:00.0", "1002")}}}
}

func TestGood(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		h *inventory.Hardware
		s look.Seen
	}{"nvidia": {nvidia, good(t)}, "amd": {amd, goodAMD(t)}} {
		if faults, notes := gate.Judge(c.h, nil, c.s); len(faults) > 0 || len(notes) > 0 {
			t.Errorf("%s: %+v, %q", name, faults, notes)
		}
	}
}

const (
	first  = "GPU 0 at 0000:19:00.0, serial 1650000000000"
	second = "GPU 1 at 0000:3b:00.0, serial 1650000000001"
	mi300x = "GPU 1 at 0000:1c:00.0, serial 692344000001"
)

// TestGates breaks one thing of a good node: exactly that part is found.
func TestGates(t *testing.T) {
	t.Parallel()
	event := func(l dmesg.Level, kind, bus string, code int) dmesg.Event {
		return dmesg.Event{Level: l, Kind: kind, Bus: bus, Code: code, Meaning: "something broke", Action: "do it", Text: "the kernel's words"}
	}
	for _, c := range []struct {
		name  string
		do    func(s *look.Seen)
		part  string // "": no fault
		cause string
	}{
		{"one less on the bus", func(s *look.Seen) { s.Health.PCI = s.Health.PCI[1:] }, "GPUs", "1 of 2 are on the PCI bus"},
		{"fell off the bus", func(s *look.Seen) { s.NVIDIA.GPUs = s.NVIDIA.GPUs[:1] }, "GPU at 0000:3b:00.0", "nvidia-smi does not list it"},
		{"no answer", func(s *look.Seen) {
			s.Broken = []look.Broken{{Program: "nvidia-smi", Says: "exit status 9: driver not loaded"}}
		}, "GPU driver", "exit status 9"},
		{"ECC", func(s *look.Seen) { s.NVIDIA.GPUs[1].ECC.Pending = ptr(false) }, second, "ECC is off"},
		{"volatile", func(s *look.Seen) { s.NVIDIA.GPUs[0].ECC.Volatile.Uncorrectable = ptr[int64](2) }, first, "2 uncorrectable memory errors"},
		{"SRAM", func(s *look.Seen) { s.NVIDIA.GPUs[0].ECC.Aggregate.SRAMUncorrectable = ptr[int64](1) }, first, "1 uncorrectable SRAM error in its life"},
		{"row", func(s *look.Seen) { s.NVIDIA.GPUs[1].RemappedRows.Pending = ptr(true) }, second, "waits to be remapped"},
		{"row failed", func(s *look.Seen) { s.NVIDIA.GPUs[1].RemappedRows.Failure = ptr(true) }, second, "could not be remapped"},
		{"page", func(s *look.Seen) { s.NVIDIA.GPUs[1].RetiredPages.Pending = ptr(true) }, second, "wait to be retired"},
		{"recovery", func(s *look.Seen) { s.NVIDIA.GPUs[1].RecoveryAction = "Drain and Reset" }, second, "Drain and Reset"},
		{"power brake", func(s *look.Seen) { s.NVIDIA.GPUs[1].Reasons["hw_power_brake_slowdown"] = true }, second, "power brake"},
		{"NVLink down", func(s *look.Seen) { s.Links.GPUs[1].Links[5].Active = ptr(false) }, second, "NVLink 5 is not up"},
		{"NVLink gone", func(s *look.Seen) { s.Links.GPUs[1].Links = s.Links.GPUs[1].Links[:17] }, second, "17 of 18 NVLinks"},
		{"NVLink slow", func(s *look.Seen) { s.Links.GPUs[0].Links[3].Rate = ptr(13.3) }, first, "below 25 GB/s"},
		{"NVLink errors", func(s *look.Seen) { s.Links.GPUs[0].Links[3].Counters["crc_errors"] = 9 }, first, "NVLink 3 counted 9 crc errors"},
		{"NVLink bit error rate", func(s *look.Seen) { s.Links.GPUs[0].Links[3].Counters["effective_ber"] = 1e-15 }, "", ""},
		{"NVLinks that are not told", func(s *look.Seen) { s.Links.GPUs = s.Links.GPUs[:1] }, second, "says nothing of its links"},
		{"MIG after the next reset", func(s *look.Seen) { s.NVIDIA.GPUs[1].MIG = nvidiasmi.Mode{Current: ptr(false), Pending: ptr(true)} }, second, "its MIG mode is disabled, and will be enabled"},
		{"MIG that nobody is about to change", func(s *look.Seen) { s.NVIDIA.GPUs[1].MIG = nvidiasmi.Mode{Current: ptr(true), Pending: ptr(true)} }, "", ""},
		{"GSP of another driver", func(s *look.Seen) { s.NVIDIA.GPUs[1].GSPFirmware = "535.154.05" }, second, "its system processor runs firmware 535.154.05"},
		{"GSP that is off", func(s *look.Seen) { s.NVIDIA.GPUs[1].GSPFirmware = "" }, "", ""},
		{"fabric", func(s *look.Seen) { s.NVIDIA.GPUs[0].Fabric.State = "In Progress" }, first, "not in the NVLink fabric"},
		{"fabric health", func(s *look.Seen) { s.NVIDIA.GPUs[0].Fabric.Health["route_unhealthy"] = "True" }, first, "route unhealthy is True"},
		{"power limit", func(s *look.Seen) { s.NVIDIA.GPUs[1].Power.Limit = ptr(500.0) }, second, "500 W, and 700 W is the default"},
		{"width", func(s *look.Seen) { s.Health.PCI[1].Width = ptr(8) }, second, "8 of 16 lanes"},
		{"speed of a NIC", func(s *look.Seen) { s.Health.PCI[2].Speed = ptr(16.0) }, "NIC at 0000:1a:00.0", "16 GT/s, and it can 32 GT/s"},
		{"AER", func(s *look.Seen) { s.Health.PCI[1].NonFatal = ptr[int64](3) }, second, "3 uncorrectable PCIe errors"},
		{"DIMM", func(s *look.Seen) { s.Health.Memory[0].Uncorrected = 1 }, "memory", "mc0 met 1"},
		{"Xid", func(s *look.Seen) { s.Kernel.Events = []dmesg.Event{event(dmesg.Fatal, "xid", "0000:3b:00.0", 79)} }, second, "something broke (Xid 79)"},
		{"SXid", func(s *look.Seen) {
			s.Kernel.Events = []dmesg.Event{event(dmesg.Degraded, "sxid", "0000:05:00.0", 12028)}
		}, "NVSwitch at 0000:05:00.0", "(SXid 12028)"},
		{"a program's Xid", func(s *look.Seen) {
			s.Kernel.Events = []dmesg.Event{event(dmesg.Application, "xid", "0000:3b:00.0", 31)}
		}, "", ""},
		{"corrected", func(s *look.Seen) { s.Kernel.Events = []dmesg.Event{event(dmesg.Notice, "aer", "0000:3b:00.0", 0)} }, "", ""},
		{"not known is not bad", func(s *look.Seen) {
			s.NVIDIA.GPUs[0].ECC, s.NVIDIA.GPUs[0].Fabric, s.Health.PCI[0].Width = nvidiasmi.ECC{}, nvidiasmi.Fabric{}, nil
		}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := good(t)
			c.do(&s)
			found(t, nvidia, s, c.part, c.cause)
		})
	}
}

func found(t *testing.T, h *inventory.Hardware, s look.Seen, part, cause string) {
	t.Helper()
	faults, _ := gate.Judge(h, nil, s)
	switch {
	case part == "" && len(faults) == 0:
	case len(faults) != 1, part == "":
		t.Errorf("got %+v", faults)
	case faults[0].Part != part || !strings.Contains(faults[0].Cause, cause) || faults[0].Action == "" || len(faults[0].Evidence) == 0:
		t.Errorf("got %+v, want %q with %q", faults[0], part, cause)
	}
}

func TestGatesOfAMD(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, cause string
		do          func(s *look.Seen)
	}{
		{"uncorrectable", "1 uncorrectable memory error since", func(s *look.Seen) { s.AMD.GPUs[1].Metric.ECC.Uncorrectable = ptr[int64](1) }},
		{"xGMI errors", "its xGMI links had errors", func(s *look.Seen) { s.AMD.GPUs[1].Metric.XGMIErrors = "AMDSMI_XGMI_STATUS_MULTIPLE_ERRORS" }},
		{"deferred", "2 memory errors", func(s *look.Seen) { s.AMD.GPUs[1].Metric.ECC.Deferred = ptr[int64](2) }},
		{"pending page", "1 bad page", func(s *look.Seen) { s.AMD.GPUs[1].BadPages.Pending = []amdsmi.Page{{Address: "0x1000"}} }},
		{"retired page", "1 page of its memory retired", func(s *look.Seen) { s.AMD.GPUs[1].BadPages.Retired = []amdsmi.Page{{Address: "0x1000"}} }},
		{"no metric of one", "amd-smi metric says nothing of it", func(s *look.Seen) { s.AMD.GPUs[1].Metric = nil }},
		{"no bad pages of one", "amd-smi bad-pages says nothing of it", func(s *look.Seen) { s.AMD.GPUs[1].BadPages = nil }},
		{"link that is off", "its link to GPU 0 is off", func(s *look.Seen) {
			s.AMD.Links = []amdsmi.Link{{From: 1, To: 0, FromBDF: "0000:1c:00.0", ToBDF: "0000:0c:00.0", Type: "XGMI", Access: "UNKNOWN"}}
		}},
		{"link", "reaches GPU 0 by PCIE", func(s *look.Seen) {
			s.AMD.Links = []amdsmi.Link{{From: 1, To: 0, FromBDF: "0000:1c:00.0", ToBDF: "0000:0c:00.0", Type: "PCIE"}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := goodAMD(t)
			c.do(&s)
			found(t, amd, s, mi300x, c.cause)
		})
	}
}

// TestSectionsOfAMD: what amd-smi tells of no GPU, and what it leaves out of a partition, is no
// fault.
func TestSectionsOfAMD(t *testing.T) {
	t.Parallel()
	s := goodAMD(t)
	for i := range s.AMD.GPUs {
		s.AMD.GPUs[i].BadPages = nil
	}
	s.AMD.GPUs[0].Metric.XGMIErrors = "AMDSMI_XGMI_STATUS_NO_ERRORS"
	s.AMD.GPUs[1].Partition, s.AMD.GPUs[1].Metric = ptr[int64](1), nil
	found(t, amd, s, "", "")
}

// TestOnePartIsOneFault: what is wrong with one GPU in several ways is said once.
func TestOnePartIsOneFault(t *testing.T) {
	t.Parallel()
	s := good(t)
	s.NVIDIA.GPUs[1].ECC.Volatile.Uncorrectable, s.NVIDIA.GPUs[1].RecoveryAction = ptr[int64](1), "Reset"
	faults, _ := gate.Judge(nvidia, nil, s)
	if len(faults) != 1 || len(faults[0].Evidence) != 2 || !strings.Contains(faults[0].Cause, "; the driver asks") {
		t.Errorf("got %+v", faults)
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	s := good(t)
	s.Health.Governors, s.Health.Clock, s.Gaps = map[string]int{"powersave": 4}, "hpet", []string{"a gap"}
	faults, notes := gate.Judge(nvidia, nil, s)
	if len(faults) > 0 || len(notes) != 3 || notes[0] != "a gap" {
		t.Errorf("%+v, %q", faults, notes)
	}
}

// TestLook reads a node whose nvidia-smi cannot work, whose journal is off, and
// which has no amd-smi.
func TestLook(t *testing.T) {
	t.Parallel()
	answers := map[string]onnode.Output{
		"health":            {Stdout: []byte(`{"pci":[{"address":"0000:19:00.0","class":"030200","vendor":"10de","device":"2330"}]}`)},
		"journalctl":        {Exit: 1, Stderr: []byte("No journal files were found.\n")},
		"dmesg":             {Stdout: []byte("[    1.5] NVRM: Xid (PCI:0000:19:00): 79, GPU has fallen off the bus.\n")},
		"nvidia-smi -q":     {Exit: 9, Stdout: []byte("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n")},
		"nvidia-smi nvlink": {Exit: 9},
		"amd-smi":           {Exit: 127},
		"chronyc":           {Stdout: []byte("C0A80101,192.168.1.1,3,1763712000.123456789,-0.000012345,0.000001,0.000020,-12.345,0.001,0.020,0.000300,0.000100,64.5,Normal\n")},
	}
	nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		for words, out := range answers {
			if strings.Contains(strings.Join(c.Argv, " "), words) {
				return out, nil, true
			}
		}
		return onnode.Output{}, nil, false
	}}}
	both := &inventory.Hardware{GPUs: slices.Concat(nvidia.GPUs, amd.GPUs)}
	s, printed, err := look.ReadNode(t.Context(), nodes, "n1", both)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Broken) != 1 || !strings.Contains(s.Broken[0].Says, "exit status 9: NVIDIA-SMI has failed") || len(s.Gaps) != 1 || s.AMD != nil || len(s.Kernel.Events) != 1 || s.Time == nil || *s.Time != (look.Time{Program: look.Chronyd, Offset: -0.000012345, Synced: true}) {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(string(printed), "$ dmesg\n[    1.5] NVRM") {
		t.Errorf("printed %s", printed)
	}
}

// TestHang: a program that does not end is the driver's fault, and the others are
// still asked.
func TestHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{func(ctx context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
			switch {
			case strings.HasSuffix(c.Line(), "health"):
				return onnode.Output{Stdout: []byte(`{"pci":[]}`)}, nil, true
			case strings.HasSuffix(c.Line(), "-q -x"):
				<-ctx.Done()
				return onnode.Output{}, ctx.Err(), true
			}
			return onnode.Output{Exit: 127}, nil, true
		}}}
		s, _, err := look.ReadNode(t.Context(), nodes, "n1", nvidia)
		if err != nil || len(s.Broken) != 1 || s.Broken[0].Says != "no answer to nvidia-smi -q -x within 1m0s" {
			t.Errorf("%v, %+v", err, s.Broken)
		}
	})
}
