// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

func load(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// is compares what JSON says of two values, so that pointers can be compared.
func is(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := plain(t, got), plain(t, want); !reflect.DeepEqual(g, w) {
		t.Errorf("%s: got %v, want %v", what, g, w)
	}
}

func plain(t *testing.T, v any) (out any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReport reads the same two GPUs from XML and from text.
func TestReport(t *testing.T) {
	t.Parallel()
	for name, parse := range map[string]func([]byte) (Log, tool.Problems, error){"h100.xml": ParseXML, "h100.txt": ParseText} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, problems, err := parse(load(t, name))
			if err != nil || len(problems) > 0 || len(log.GPUs) != 2 {
				t.Fatalf("%d GPUs, %v, %v", len(log.GPUs), problems, err)
			}
			is(t, "attached", log.Attached, 2)
			good, bad := log.GPUs[0], log.GPUs[1]
			is(t, "name", good.Name, "NVIDIA H100 80GB HBM3")
			is(t, "bus", bad.BusID, "0000:3b:00.0")
			is(t, "serial", bad.Serial, "1650000000001")
			is(t, "module", bad.ModuleID, 2)
			is(t, "ECC", good.ECC.Current, true)
			is(t, "volatile", good.ECC.Volatile, map[string]int{"correctable": 3, "uncorrectable": 0, "sram_correctable": 0, "sram_uncorrectable": 0,
				"dram_correctable": 3, "dram_uncorrectable": 0})
			is(t, "aggregate is not known", good.ECC.Aggregate.Uncorrectable, nil)
			is(t, "uncorrectable", bad.ECC.Volatile.Uncorrectable, 4)
			is(t, "rows", bad.RemappedRows, map[string]any{"correctable": 0, "uncorrectable": 2, "pending": true, "failure": false, "banks": map[string]int{"max": 2560, "none": 0}})
			is(t, "pages are not known", good.RetiredPages, map[string]any{"single_bit": nil, "double_bit": nil, "pending": nil})
			is(t, "width", []*int64{good.PCIe.Width, bad.PCIe.Width, bad.PCIe.MaxWidth, bad.PCIe.MaxGeneration}, []int{16, 8, 16, 5})
			is(t, "limit", good.Power.Limit, 700)
			is(t, "module power is not known", good.ModulePower.Limit, nil)
			is(t, "reasons", []bool{good.Reasons["gpu_idle"], good.Reasons["hw_slowdown"]}, []bool{true, false})
			is(t, "fabric", good.Fabric.State+" "+good.Fabric.Status, "Completed Success")
			is(t, "health", good.Fabric.Health, map[string]string{"route_unhealthy": "False"})
			is(t, "process", good.Processes, []map[string]any{{"pid": 4711, "type": "C", "name": "python3 & friends", "memory_mib": 512}})
			is(t, "temperature", good.Temperature, map[string]any{"gpu": 31, "memory": 40, "limit": 55})
			if s := log.Summary(); len(s) != 3 || !strings.Contains(s[2], "x8, 4 uncorrectable errors, rows to be remapped") {
				t.Errorf("summary %q", s)
			}
		})
	}
}

func TestRecoveryAction(t *testing.T) {
	t.Parallel()
	log, _, err := ParseXML(load(t, "h100.xml"))
	if err != nil {
		t.Fatal(err)
	}
	is(t, "actions", []string{log.GPUs[0].RecoveryAction, log.GPUs[1].RecoveryAction}, []string{"None", "Reset"})
	is(t, "deprecated is not known", log.GPUs[0].ResetRequired, nil)
	is(t, "microseconds", log.GPUs[0].ReasonTime, map[string]int{"hw_power_brake_slowdown": 12})
}

// TestReportProblems changes one thing in a good report.
func TestReportProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, old, new string
		kind                 tool.ProblemKind
		text                 string
	}{
		{"lost", "h100.xml", "<gpu_temp>31 C<", "<gpu_temp>GPU is lost<", tool.Failed, "GPU 0000:19:00.0: GPU is lost, in 1 values from gpu_temp on"},
		{"reset", "h100.txt", ": 31 C", ": GPU requires reset", tool.Failed, "GPU requires reset"},
		{"ERR!", "h100.txt", ": 70.52 W", ": ERR!", tool.Failed, "ERR!"},
		{"count", "h100.xml", "attached_gpus>2<", "attached_gpus>8<", tool.Missing, "8 GPUs are attached and 2 described"},
		{"too many", "h100.xml", "attached_gpus>2<", "attached_gpus>1<", tool.Inconsistent, "1 GPUs are attached and 2 described"},
		{"address", "h100.xml", "<pci_bus_id>00000000:19", "<pci_bus_id>00000000:1A", tool.Inconsistent, "GPU 0000:19:00.0 says that it is at 0000:1a:00.0"},
		{"twice", "h100.txt", "GPU-00000000-", "GPU-00000001-", tool.Inconsistent, "two GPUs have UUID"},
		{"no number", "h100.txt", ": 345 MHz", ": fast", tool.Inconsistent, `sm: "fast" is not a number`},
		{"no driver", "h100.xml", "<driver_version>570.172.08<", "<driver_version>N/A<", tool.Missing, "the driver version"},
		{"torn", "h100.xml", "</nvidia_smi_log>", "", tool.Truncated, "ends before </nvidia_smi_log>"},
		{"broken", "h100.xml", "</pci>", "</pic>", tool.Inconsistent, "not XML from here on"},
		{"said", "h100.txt", "GPU 00000000:3B", "Unable to determine the device handle for GPU1: 0000:2A:00.0: Unknown Error\nGPU 00000000:3B", tool.Failed, "Unable to determine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := strings.Replace(string(load(t, c.file)), c.old, c.new, 1)
			parse := ParseText
			if strings.HasSuffix(c.file, "xml") {
				parse = ParseXML
			}
			_, problems, err := parse([]byte(in))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				if p.Kind == c.kind && strings.Contains(p.Text, c.text) {
					return
				}
			}
			t.Errorf("got %+v, want %s %q", problems, c.kind, c.text)
		})
	}
}

// TestCut cuts a report anywhere: a GPU that is not there whole is said to be so.
func TestCut(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"h100.xml", "h100.txt"} {
		b := load(t, name)
		second := bytes.LastIndex(b, []byte("3B:00.0"))
		for i := 200; i < second; i += 97 {
			var problems tool.Problems
			if strings.HasSuffix(name, "xml") {
				_, problems, _ = ParseXML(b[:i])
			} else {
				_, problems, _ = ParseText(b[:i])
			}
			if len(problems) == 0 && i > 300 {
				t.Errorf("%s cut at %d: no problem", name, i)
			}
		}
	}
}

func TestBusID(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"00000008:06:00.0": "0008:06:00.0", "0000:3B:00.0": "0000:3b:00.0", "00010000:01:00.0": "00010000:01:00.0", "": ""} {
		if got := BusID(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestSamples reads outputs of real machines, where they are.
func TestSamples(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../../../shared/samples/nvidia-smi*/*")
	if len(files) == 0 {
		t.Skip("no samples beside this checkout")
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kind := filepath.Base(filepath.Dir(file))
		for _, f := range Formats {
			if (f.Is(b) > 0) != (f.Name == kind) {
				t.Errorf("%s: %s is %d sure", file, f.Name, f.Is(b))
			}
			if f.Name != kind {
				continue
			}
			v, problems, err := f.Parse(b)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			t.Logf("%s: %s, problems %v", file, fmt.Sprint(v.(tool.Summarizer).Summary()), problems)
		}
	}
}

// FuzzFormats gives every format anything.
func FuzzFormats(f *testing.F) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if !file.IsDir() {
			f.Add(load(f, file.Name()))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, format := range Formats {
			if n := format.Is(b); n < 0 || n > 100 {
				t.Errorf("%s: %d sure", format.Name, n)
			}
			v, _, err := format.Parse(b)
			if err != nil {
				continue
			}
			if _, err := json.Marshal(v); err != nil {
				t.Errorf("%s: %v", format.Name, err)
			}
			if len(v.(tool.Summarizer).Summary()) == 0 {
				t.Errorf("%s: no summary", format.Name)
			}
		}
	})
}
