// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
)

// TestParseExpect: what has no effect is refused at its place.
func TestParseExpect(t *testing.T) {
	t.Parallel()
	const hardware = "hardware \"h\" {\n}\n"
	for text, want := range map[string]string{
		hardware: "",
		hardware + "validation \"v\" {\n  allow \"acs\" {\n    reason = \"virtual machines\"\n  }\n}\n": "",
		"":                                 "0:0 No hardware block",
		hardware + "hardware \"i\" {\n}\n": "3:1 Second hardware block",
		hardware + "validation \"v\" {\n  burn_in = \"1h\"\n}\n":                                                        "3:1 Burn-in is not run on these nodes",
		hardware + "validation \"v\" {\n  all_reduce {\n    scope = [\"all\"]\n  }\n}\n":                                "4:3 All-reduce is not run on these nodes",
		hardware + "validation \"v\" {\n  pair {\n  }\n  limit \"rdma.write_bw\" {\n    at_least = \"1GB/s\"\n  }\n}\n": "4:3 Pair test is not run without --load; 6:3 Nothing is measured without --load",
		hardware + "validation \"v\" {\n}\nvalidation \"w\" {\n}\n":                                                     "5:1 Second validation block",
		"hardware \"h\" {\n  gpus = 8\n}\n":                                                                             "2:3 Unsupported argument",
		hardware + "network \"n\" {\n  cidr = \"10.0.0.0/24\"\n}\n":                                                     "3:1 Block without effect",
	} {
		_, diags, _ := ParseExpect("expect.hcl", []byte(text), false, time.Now())
		var got []string
		for _, d := range diags {
			line, column := 0, 0
			if d.Subject != nil {
				line, column = d.Subject.Start.Line, d.Subject.Start.Column
			}
			got = append(got, fmt.Sprintf("%d:%d %s", line, column, d.Summary))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: got %q, want %q", text, strings.Join(got, "; "), want)
		}
	}
}

// host is a survey without GPUs.
func host(name, product string, memory int64, disks ...wire.Disk) survey {
	return survey{name: name, arch: inventory.AMD64, hw: wire.Hardware{Identity: wire.Identity{Vendor: `Quote "${x}" %{y}`, Product: product}, Firmware: "uefi",
		CPU: wire.CPU{Model: "C", Sockets: 2, Cores: 64}, Memory: wire.Memory{Installed: memory, Usable: memory}, Disks: disks}}
}

// TestExpectMost: what is written of hosts is read back as it is, whatever their firmware
// says of itself; what no majority has the same of is left out.
func TestExpectMost(t *testing.T) {
	t.Parallel()
	disk := func(kind string, size int64) wire.Disk { return wire.Disk{Type: kind, Size: size} }
	disks := []wire.Disk{disk("ssd", 960197124096), disk("ssd", 960197124096), disk("nvme", 3840755982336), disk("nvme", 30725971992576), disk("hdd", 30725971992000), disk("nvme", 3840755982337)}
	list := []survey{host("n1", "A b", 1<<40, disks...), host("n2", "A b", 2<<40, disks...), host("n3", "A b", 3<<40, disks...), host("n4", "Z", 1<<40)}
	cohorts := splitCohorts(list)
	if len(cohorts) != 2 || cohorts[0].name != "a-b" || cohorts[0].why != "" || cohorts[1].name != "n4" || cohorts[1].why == "" {
		t.Fatalf("%+v", cohorts)
	}
	e, err := expectMost(cohorts)
	if err != nil {
		t.Fatal(err)
	}
	h := e.hardware(cohorts[0])
	if h.Vendor != `Quote "${x}" %{y}` || h.Product != "A b" || h.Memory.Size != 0 || h.CPU.Cores != 64 || h.Boot != inventory.BootUEFI {
		t.Errorf("%+v", h)
	}
	var got []string
	for _, d := range h.Disks {
		got = append(got, fmt.Sprintf("%s %s %d", d.Type, d.Size, d.Count))
	}
	if want := "nvme = 3750738264KiB 1; nvme = 3840755982337B 1; nvme 30.73TB 1; sata 960GB 2; sata 30.73TB 1"; strings.Join(got, "; ") != want {
		t.Errorf("got %s", strings.Join(got, "; "))
	}
}

// TestGroupsOfGPUs: where half of the hosts have other GPUs than the rest, nobody is a
// reference.
func TestGroupsOfGPUs(t *testing.T) {
	t.Parallel()
	var list []survey
	for i := range 6 {
		s := host(fmt.Sprintf("n%d", i), "A", 1<<40)
		for range 4 + i%2 {
			s.hw.PCI = append(s.hw.PCI, wire.PCI{Class: "030200", Vendor: "10de", Device: "2330"})
		}
		list = append(list, s)
	}
	for _, c := range splitCohorts(list) {
		if !strings.Contains(c.why, "no majority of the hosts of this chassis has the same GPUs: 4 x PCI 10de:2330 (n0, n2, n4); 5 x PCI 10de:2330 (n1, n3, n5)") {
			t.Errorf("%s: %q", c.name, c.why)
		}
	}
}

// FuzzExpectMost: whatever firmware and kernel say of themselves, what is written is a
// hardware block that the hosts fit.
func FuzzExpectMost(f *testing.F) {
	f.Add("Supermicro", "SYS-821GE", "nvme", "uefi", "0000:19:00.0", "InfiniBand", "400 Gb/sec (4X NDR)", int64(3840755982336), int64(2<<40), 2, 112)
	f.Add("\x00${\"", "%{if}\n\xff", "hdd", "x", "10000:01:00.0", "", "1e30", int64(-1), int64(-5), -1, 1<<30)
	f.Fuzz(func(t *testing.T, vendor, product, kind, boot, pci, layer, rate string, size, memory int64, sockets, cores int) {
		var list []survey
		for i := range 3 {
			s := host(fmt.Sprintf("n%d", i), product, memory, wire.Disk{Type: []string{"nvme", "ssd", "hdd", "virtio"}[len(kind)%4], Size: size})
			s.hw.Identity.Vendor, s.hw.Firmware, s.hw.CPU.Sockets, s.hw.CPU.Cores = vendor, boot, sockets, cores
			s.hw.PCI = []wire.PCI{{Address: pci, Class: "020000"}, {Class: "030200", Vendor: "10de", Device: kind}}
			s.seen.Health.Ports = []wire.InfiniBandPort{{Device: "mlx5_0", PCI: pci, Layer: layer, State: "ACTIVE", Rate: rate}}
			list = append(list, s)
		}
		cohorts := splitCohorts(list)
		e, err := expectMost(cohorts)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cohorts {
			n := &inventory.Node{Name: "n", Hardware: e.hardware(c)}
			for _, fault := range install.CompareHardware(n, c.members[0].hw) {
				if fault.Part != "firmware" { // of a kernel that says neither
					t.Errorf("%s: %s", fault.Part, fault.Found)
				}
			}
		}
	})
}
