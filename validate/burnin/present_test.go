// SPDX-License-Identifier: Apache-2.0

package burnin_test

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/amdsmi"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// looked is a good burn-in of two H100 that bus and driver list before and after it.
func looked() burnin.Seen {
	s := nvidia()
	s.Before.NVIDIA = &nvidiasmi.Log{}
	for _, g := range s.After.NVIDIA.GPUs {
		s.Before.NVIDIA.GPUs = append(s.Before.NVIDIA.GPUs, nvidiasmi.GPU{BusID: g.BusID})
		link := wire.PCILink{Address: g.BusID, Class: "030200", Vendor: "10de"}
		s.Before.Health.PCI, s.After.Health.PCI = append(s.Before.Health.PCI, link), append(s.After.Health.PCI, link)
	}
	s.Before.Health.Memory, s.After.Health.Memory = []wire.MemoryErrors{{Controller: "mc0"}}, []wire.MemoryErrors{{Controller: "mc0"}}
	return s
}

// TestVanished: a GPU that goes away under load, or is not loaded, is named; what cannot be said
// of a part is noted.
func TestVanished(t *testing.T) {
	t.Parallel()
	const second = "GPU 1 at 0000:3b:00.0, serial 2"
	for _, c := range []struct {
		name, part, cause, note string
		spoil                   func(*burnin.Seen)
	}{
		{"all there", "", "", "", func(*burnin.Seen) {}},
		{"off the bus", second, "it was there before the load and is not on the PCI bus any more", "", func(s *burnin.Seen) { s.After.Health.PCI = s.After.Health.PCI[:1] }},
		{"off the bus and the driver", second, "it was there before the load and is not on the PCI bus any more; it was there before the load, and its driver does not list it any more", "",
			func(s *burnin.Seen) {
				s.After.Health.PCI, s.After.NVIDIA.GPUs = s.After.Health.PCI[:1], s.After.NVIDIA.GPUs[:1]
			}},
		{"the driver does not answer after it", "GPU driver", "it listed 2 GPUs before the load, and lists none after it", "", func(s *burnin.Seen) { s.After.NVIDIA = nil }},
		{"never seen under load", second, "its sensors said nothing under load", "", func(s *burnin.Seen) { s.Result.GPUs = s.Result.GPUs[:1] }},
		{"gone for a while", second, "it did not answer at 100 of 360 looks under load, and other GPUs did", "", func(s *burnin.Seen) { s.Result.GPUs[1].Core.Count = 260 }},
		{"single looks without an answer", "", "", "", func(s *burnin.Seen) { s.Result.GPUs[1].Core.Count = 350 }},
		{"no GPU has a sensor of memory", "", "", "", func(s *burnin.Seen) { s.Result.GPUs[0].Memory, s.Result.GPUs[1].Memory = wire.Span{}, wire.Span{} }},
		{"one GPU has no sensor of memory", "", "", second + " told its memory temperature at 0 of 360 looks", func(s *burnin.Seen) { s.Result.GPUs[1].Memory = wire.Span{} }},
		{"not loaded", second, "dcgmi has no result of it", "", func(s *burnin.Seen) { s.Result.Output = diag("Pass") }},
		{"not loaded, and skipped", second, "dcgmi has no result of it", "", func(s *burnin.Seen) {
			s.Result.Output = strings.Replace(diag("Pass", "Pass"), `"entity_id": 1, "status": "Pass"`, `"entity_id": 1, "status": "Skip"`, 1)
		}},
		{"nobody says which is which", "GPUs", "dcgmi has results of 1 of 2", "", func(s *burnin.Seen) { s.Result.Output, s.Names = diag("Pass"), map[string]string{} }},
		{"one result of all", "", "", "", func(s *burnin.Seen) {
			s.Result.Output = `{"DCGM Diagnostic": {"test_categories": [{"category": "Stress", "tests": [{"name": "diagnostic", "results": [{"status": "Pass"}]}]}]}}`
		}},
		{"only the software was looked at", "burn-in program", "dcgmi loaded no GPU", "", func(s *burnin.Seen) {
			s.Result.Output = strings.Replace(diag("Pass", "Pass"), "Stress", "Deployment", 1)
		}},
		{"it failed and does not say why", "burn-in program", "dcgmi ended with exit status 1, and no result of it says why", "", func(s *burnin.Seen) { s.Result.Exit = 1 }},
		{"a controller that is gone", "", "", "mc0 told its errors before the load and not after it", func(s *burnin.Seen) { s.After.Health.Memory = nil }},
		{"a controller that came", "", "", "mc0 told its errors after the load and not before it", func(s *burnin.Seen) { s.Before.Health.Memory = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := looked()
			c.spoil(&s)
			faults, notes, err := burnin.Judge(burnin.Of(&inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 2}}}, long), long, s)
			if err != nil || (len(faults) == 1) != (c.part != "") || (len(notes) == 1) != (c.note != "") {
				t.Fatalf("%+v, %q, %v", faults, notes, err)
			}
			if c.part != "" && (faults[0].Part != c.part || !strings.Contains(faults[0].Cause, c.cause) || faults[0].Action == "" || len(faults[0].Evidence) == 0) {
				t.Errorf("%+v", faults[0])
			}
			if c.note != "" && !strings.Contains(notes[0], c.note) {
				t.Errorf("%q", notes)
			}
		})
	}
}

// TestVanishedAMD: rvs has no result of one of the GPUs that amdkfd lists.
func TestVanishedAMD(t *testing.T) {
	t.Parallel()
	s := burnin.Seen{Names: map[string]string{"0000:26:00.0": "GPU 1 at 0000:26:00.0"}, Result: wire.BurnResult{Seconds: 1810, Looks: 360, KFD: map[string]string{"28851": "0000:05:00.0", "23018": "0000:26:00.0"},
		Output: "[RESULT] [ 10000.1     ] [burn-in] [GPU:: 28851] Start of GPU ramp up\n[RESULT] [ 11800.1     ] [burn-in] [GPU:: 28851] GFLOPS 81290 Target GFLOPS: 70000 met: TRUE\n"}}
	for _, at := range []string{"0000:05:00.0", "0000:26:00.0"} {
		s.Before.Health.PCI = append(s.Before.Health.PCI, wire.PCILink{Address: at, Class: "120000", Vendor: "1002"})
	}
	s.After = look.Seen{Health: s.Before.Health}
	faults, _, err := burnin.Judge(burnin.Of(&inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "amd", Model: "MI300X", Count: 2}}}, long), long, s)
	if err != nil || len(faults) != 1 || faults[0].Cause != "GPU 1 at 0000:26:00.0: rvs has no result of it" {
		t.Errorf("%+v, %v", faults, err)
	}
}

// TestThrottled: what AMD's firmware counts while heat or the chassis holds clocks down; short peaks and
// the power limit are no fault, and a driver that was loaded anew counts from the start.
func TestThrottled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, cause string
		told        int
		ticks       int64
		held        map[string]int64
	}{
		{"nothing", "", 1, 1_800_000, map[string]int64{}},
		{"the power limit", "", 1, 1_800_000, map[string]int64{"ppt": 1_700_000}},
		{"a peak", "", 1, 1_800_000, map[string]int64{"socket_thermal": 12}},
		{"heat", "GPU at 0000:05:00.0: heat held its clocks down under load, for 50% of the time", 1, 1_800_000, map[string]int64{"socket_thermal": 900_000}},
		{"HBM", "GPU at 0000:05:00.0: the heat of its memory held its clocks down under load, for 10% of the time", 1, 1_800_000, map[string]int64{"hbm_thermal": 180_000}},
		{"chassis", "GPU at 0000:05:00.0: the chassis' signal PROCHOT held its clocks down under load, for 2% of the time", 1, 1_800_000, map[string]int64{"prochot": 36_000}},
		{"loaded anew", "", 0, -5000, map[string]int64{"socket_thermal": 900_000}},
	} {
		metric := func(ticks int64, held map[string]int64) look.Seen {
			m := &amdsmi.Metric{Ticks: &ticks, Accumulated: map[string]int64{}}
			for _, name := range []string{"prochot", "ppt", "socket_thermal", "vr_thermal", "hbm_thermal"} {
				m.Accumulated[name] = 7 + held[name]
			}
			return look.Seen{AMD: &amdsmi.Report{GPUs: []amdsmi.GPU{{BDF: "0000:05:00.0", Metric: m}}}}
		}
		s := burnin.Seen{Before: metric(10_000, nil), After: metric(10_000+c.ticks, c.held), Result: wire.BurnResult{Seconds: 1810, Looks: 360, KFD: map[string]string{"28851": "0000:05:00.0"},
			Output: "[RESULT] [ 10000.1     ] [burn-in] [GPU:: 28851] Start of GPU ramp up\n[RESULT] [ 11800.1     ] [burn-in] [GPU:: 28851] GFLOPS 81290 Target GFLOPS: 70000 met: TRUE\n"}}
		faults, _, err := burnin.Judge(burnin.Of(hardware("amd", "MI300X"), long), long, s)
		if err != nil || len(faults) != len(c.cause)/max(len(c.cause), 1) || len(faults) == 1 && faults[0].Cause != c.cause || burnin.ThrottlesTold(s) != c.told {
			t.Errorf("%s: %+v, %v, told %d", c.name, faults, err, burnin.ThrottlesTold(s))
		}
	}
}
