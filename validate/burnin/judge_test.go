// SPDX-License-Identifier: Apache-2.0

package burnin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/gate/look"
)

const long = 30 * time.Minute

// span is one that was seen often.
func span(least, most float64) wire.Span {
	return wire.Span{Least: least, Most: most, Mean: most, Count: 360}
}

// diag is what dcgmi prints; statuses are those of GPUs 0, 1, ...
func diag(statuses ...string) string {
	var results []string
	for i, s := range statuses {
		warning := ""
		if s != "Pass" {
			warning = fmt.Sprintf(`, "warnings": [{"warning": "Found 7 faulty memory elements on GPU %d", "error_id": 36}]`, i)
		}
		results = append(results, fmt.Sprintf(`{"entity_group": "GPU", "entity_id": %d, "status": %q%s}`, i, s, warning))
	}
	return `{"DCGM Diagnostic": {"test_categories": [{"category": "Stress", "tests": [{"name": "diagnostic", "results": [` + strings.Join(results, ", ") + `]}]}]}}`
}

// nvidia is a good burn-in of two H100.
func nvidia() burnin.Seen {
	s := burnin.Seen{Names: map[string]string{"0000:19:00.0": "GPU 0 at 0000:19:00.0, serial 1", "0000:3b:00.0": "GPU 1 at 0000:3b:00.0, serial 2"},
		Result: wire.BurnResult{Output: diag("Pass", "Pass"), Seconds: 1830, Looks: 360}, After: look.Seen{NVIDIA: &nvidiasmi.Log{}}}
	for _, at := range []string{"0000:19:00.0", "0000:3b:00.0"} {
		slow, limit := -2.0, 700.0
		s.Result.GPUs = append(s.Result.GPUs, wire.BurnGPU{Address: at, Core: span(31, 66), Memory: span(40, 75), Power: span(70, 699), Left: span(19, 54), Held: map[string]int{"sw_power_cap": 355}})
		s.After.NVIDIA.GPUs = append(s.After.NVIDIA.GPUs, nvidiasmi.GPU{BusID: at, Temperature: nvidiasmi.Temperature{SlowdownLimit: &slow}, Power: nvidiasmi.Power{Limit: &limit}})
	}
	return s
}

func TestGoodIsGood(t *testing.T) {
	t.Parallel()
	faults, notes, err := burnin.Judge(burnin.Of(hardware("nvidia", "H100"), long), long, nvidia())
	if err != nil || len(faults) != 0 || len(notes) != 0 {
		t.Errorf("%+v, %q, %v", faults, notes, err)
	}
}

func TestNVIDIA(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, part, cause, evidence, action string
		spoil                               func(*burnin.Seen)
	}{
		{"wrong results", "GPU 1 at 0000:3b:00.0, serial 2", `it failed DCGM's test "diagnostic" under load`, "Found 7 faulty memory elements", "computes wrong results",
			func(s *burnin.Seen) { s.Result.Output, s.Result.Exit = diag("Pass", "Fail"), 226 }},
		{"heat", "GPU 0 at", "heat held its clocks down under load, at 87 °C", "Active at 12 of 360 looks; 87 °C at most", "heat sink",
			func(s *burnin.Seen) {
				s.Result.GPUs[0].Held["hw_thermal_slowdown"], s.Result.GPUs[0].Held["hw_slowdown"], s.Result.GPUs[0].Core = 12, 12, span(31, 87)
			}},
		{"driver lowers clocks", "GPU 0 at", "heat made the driver lower its clocks", "sw_thermal_slowdown", "heat sink", func(s *burnin.Seen) { s.Result.GPUs[0].Held["sw_thermal_slowdown"] = 3 }},
		{"power brake", "GPU 0 at", "power brake held its clocks down", "hw_power_brake_slowdown was Active at 1 of 360", "power supplies, at both feeds and at the PDU's",
			func(s *burnin.Seen) {
				s.Result.GPUs[0].Held["hw_power_brake_slowdown"], s.Result.GPUs[0].Held["hw_slowdown"] = 1, 1
			}},
		{"slow without a reason", "GPU 0 at", "says not why", "hw_slowdown", "event log", func(s *burnin.Seen) { s.Result.GPUs[0].Held["hw_slowdown"] = 1 }},
		{"near its slowdown", "GPU 0 at", "it came within 4 °C of its slowdown (83 °C)", "83 °C at most", "heat sink", func(s *burnin.Seen) { s.Result.GPUs[0].Core, s.Result.GPUs[0].Left = span(31, 83), span(2, 54) }},
		{"near it, of an older driver", "GPU 0 at", "it came within 3 °C of its slowdown (86 °C)", "86 °C at most", "heat sink",
			func(s *burnin.Seen) {
				slow := 89.0
				s.After.NVIDIA.GPUs[0].Temperature = nvidiasmi.Temperature{Slowdown: &slow}
				s.Result.GPUs[0].Core, s.Result.GPUs[0].Left = span(31, 86), wire.Span{}
			}},
		{"DIMM", "memory", "memory controller mc1 corrected 4 errors under load", "ce_count 2 before and 6 after", "DIMM",
			func(s *burnin.Seen) {
				s.Before.Health.Memory, s.After.Health.Memory = []wire.MemoryErrors{{Controller: "mc1", Corrected: 2}}, []wire.MemoryErrors{{Controller: "mc1", Corrected: 6}}
			}},
		{"host engine is gone", "burn-in program", "dcgmi could not load the GPUs", "Unable to connect to host engine", "by hand",
			func(s *burnin.Seen) {
				s.Result.Output, s.Result.Exit = "Error: unable to establish a connection to the specified host: localhost\nError: Unable to connect to host engine.\n", 161
			}},
		{"it crashed", "burn-in program", "dcgmi says nothing of a test", "exit status 139: Segmentation fault", "by hand", func(s *burnin.Seen) {
			s.Result.Output, s.Result.Errors, s.Result.Exit = "", "Segmentation fault\n", 139
		}},
		{"skipped", "burn-in program", "dcgmi loaded no GPU", "exit status 0", "by hand", func(s *burnin.Seen) { s.Result.Output = strings.ReplaceAll(diag("Pass"), "Pass", "Skip") }},
		{"hangs", "burn-in program", "told to load the GPUs for 30m0s, and it did not end by itself", "ran for 35m0s", "by hand",
			func(s *burnin.Seen) { s.Result.Ended, s.Result.Seconds = "it did not end by itself in 35m0s", 2100 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := nvidia()
			c.spoil(&s)
			faults, _, err := burnin.Judge(burnin.Of(hardware("nvidia", "H100"), long), long, s)
			if err != nil || len(faults) != 1 {
				t.Fatalf("%+v, %v", faults, err)
			}
			f := faults[0]
			if !strings.HasPrefix(f.Part, c.part) || !strings.Contains(f.Cause, c.cause) || !strings.Contains(strings.Join(f.Evidence, "\n"), c.evidence) || !strings.Contains(f.Action, c.action) {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestNoBurnIn(t *testing.T) {
	t.Parallel()
	s := nvidia()
	s.Result.Exit = 127
	if _, _, err := burnin.Judge(burnin.Of(hardware("nvidia", "H100"), long), long, s); errkind.Of(err) != errkind.Unsupported || !strings.Contains(errkind.Action(err), "datacenter-gpu-manager-4") {
		t.Errorf("not installed: %v", err)
	}
	s = nvidia()
	s.Result.Ended, s.Result.Seconds = "nobody waits for its result any more", 65
	if _, _, err := burnin.Judge(burnin.Of(hardware("nvidia", "H100"), long), long, s); errkind.Of(err) != errkind.Interrupted || !strings.Contains(err.Error(), "after 1m5s of 30m0s") {
		t.Errorf("ended early: %v", err)
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	s := nvidia()
	s.Result.GPUs[1].Power, s.Result.Blind, s.Result.Without = span(70, 210), 2, []string{"nvidia-smi --query-gpu: exit status 9"}
	faults, notes, err := burnin.Judge(burnin.Of(hardware("nvidia", "H100"), long), long, s)
	if err != nil || len(faults) != 0 || len(notes) != 2 || !strings.Contains(notes[0], "drew 210 W at most of 700 W") || !strings.Contains(notes[1], "2 of 360 looks at the GPUs saw nothing: nvidia-smi") {
		t.Errorf("%+v, %q, %v", faults, notes, err)
	}
}

// gst is what rvs prints of two GPUs; end is the last line of the second.
func gst(end string) string {
	return "[RESULT] [ 10000.0     ] Action name :burn-in\n[RESULT] [ 10000.0     ] Module name :gst\n" +
		"[RESULT] [ 10000.1     ] [burn-in] [GPU:: 28851] Start of GPU ramp up\n[RESULT] [ 10000.1     ] [burn-in] [GPU:: 23018] Start of GPU ramp up\n" +
		"[RESULT] [ 10060.1     ] [burn-in] [GPU:: 28851] GFLOPS 81233\n" +
		"[RESULT] [ 11800.1     ] [burn-in] [GPU:: 28851] GFLOPS 81290 Target GFLOPS: 70000 met: TRUE\n" + end
}

func TestAMD(t *testing.T) {
	t.Parallel()
	const good = "[RESULT] [ 11800.1     ] [burn-in] [GPU:: 23018] GFLOPS 80990 Target GFLOPS: 70000 met: TRUE\n"
	for _, c := range []struct {
		name, end, part, cause string
		left                   float64
	}{
		{"good", good, "", "", 20},
		{"hot", good, "GPU 1 at 0000:26:00.0", "it came within 2 °C of its slowdown", 2},
		{"wrong", "[RESULT] [ 11000.1     ] [burn-in] [GPU:: 23018] self-check error 0.0001220703\n" + good, "GPU 1 at 0000:26:00.0", "other results from the same numbers", 20},
		{"slow", "[RESULT] [ 10060.1     ] [burn-in] [GPU:: 23018] GFLOPS 64000\n[RESULT] [ 11800.1     ] [burn-in] [GPU:: 23018] GFLOPS 66000 Target GFLOPS: 70000 met: FALSE\n",
			"GPU 1 at 0000:26:00.0", "it computed 66000 GFLOPS at most under load: AMD asks 66500 of MI300X", 20},
		{"within AMD's tolerance", "[RESULT] [ 11800.1     ] [burn-in] [GPU:: 23018] GFLOPS 66600 Target GFLOPS: 70000 met: TRUE\n", "", "", 20},
		{"never ended", "", "GPU 1 at 0000:26:00.0", "rvs did not end its work on it", 20},
		{"error of the library", good + "[ERROR ] [ 11800.2     ] [burn-in] gst 23018 memory allocation error!\n", "burn-in program", "rvs reports 1 errors", 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := burnin.Seen{Names: map[string]string{"0000:05:00.0": "GPU 0 at 0000:05:00.0", "0000:26:00.0": "GPU 1 at 0000:26:00.0"},
				Result: wire.BurnResult{Output: gst(c.end), Seconds: 1810, Looks: 360, KFD: map[string]string{"28851": "0000:05:00.0", "23018": "0000:26:00.0"},
					GPUs: []wire.BurnGPU{{Address: "0000:05:00.0", Core: span(38, 80), Left: span(20, 62)}, {Address: "0000:26:00.0", Core: span(38, 100-c.left), Left: span(c.left, 62)}}}}
			faults, _, err := burnin.Judge(burnin.Of(hardware("amd", "MI300X"), long), long, s)
			if err != nil {
				t.Fatal(err)
			}
			if c.part == "" {
				if len(faults) != 0 {
					t.Errorf("%+v", faults)
				}
				return
			}
			if len(faults) != 1 || faults[0].Part != c.part || !strings.Contains(faults[0].Cause, c.cause) {
				t.Errorf("%+v", faults)
			}
		})
	}
}

func TestLoads(t *testing.T) {
	t.Parallel()
	n := burnin.Of(hardware("nvidia", "H100"), 90*time.Minute)
	if !strings.Contains(strings.Join(n.Argv, " "), "diagnostic.test_duration=5400;diagnostic.is_allowed=true -j") {
		t.Error(n.Argv)
	}
	a := burnin.Of(hardware("amd", "MI300X"), time.Minute)
	if !strings.Contains(a.Config, "duration: 60000\n") || !strings.Contains(a.Config, "self_check: true\n") || a.Argv[len(a.Argv)-1] != a.File {
		t.Errorf("%+v", a)
	}
	if v := burnin.VendorOf(&inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "intel"}}}); v != "" {
		t.Errorf("%s is loaded by nothing here", v)
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	names := map[string]string{"0000:19:00.0": "GPU 0 at 0000:19:00.0, serial 1", "0000:3b:00.0": "GPU 1 at 0000:3b:00.0, serial 2"}
	out := strings.Replace(diag("Pass", "Pass"), `"status": "Pass"`, `"info": ["GPU 0 calculated at approximately 51234.56 gigaflops during this test"], "status": "Pass"`, 1)
	got := burnin.Rates(burnin.Of(hardware("nvidia", "H100"), long), burnin.Seen{Names: names, Result: wire.BurnResult{Output: out}})
	if len(got) != 1 || got["0000:19:00.0"].Mean != 51234.56 {
		t.Errorf("NVIDIA: %v of %s", got, out)
	}
	amd := burnin.Seen{Result: wire.BurnResult{Output: gst(""), KFD: map[string]string{"28851": "0000:05:00.0", "23018": "0000:26:00.0"}}}
	got = burnin.Rates(burnin.Of(hardware("amd", "MI300X"), long), amd)
	if len(got) != 1 || got["0000:05:00.0"] != (burnin.Rate{Mean: 81233, Best: 81290}) {
		t.Errorf("AMD: %v", got)
	}
}
