// SPDX-License-Identifier: Apache-2.0

package nvbandwidth

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

func problemTexts(problems tool.Problems) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%s %d: %s", p.Kind, p.Line, p.Text))
	}
	return strings.Join(lines, "\n")
}

const whole = `nvbandwidth Version: v0.8
Driver Version: 580.82.07

Process 0 (n1): device 0: HGX GB200 (00000008:01:00)
Process 1 (n2): device 0: HGX GB200 (00000008:01:00)

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    376.10
 1    375.84       N/A

SUM device_to_device_memcpy_read_ce 751.94

`

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, problems string }{
		{"whole", whole, ""},
		{"older, which prints 0", strings.ReplaceAll(whole, "   N/A", "  0.00"), ""},
		{"another sum", strings.Replace(whole, "751.94", "800.00", 1), "inconsistent 7: device_to_device_memcpy_read_ce: the sum 800.00 is not that of the figures, which is 751.94"},
		{"row cut", strings.Replace(whole, "375.84       N/A", "375.84", 1), "truncated 7: device_to_device_memcpy_read_ce: row 1 has 1 figures of 2"},
		{"no sum", whole[:strings.Index(whole, "SUM")], "truncated 7: device_to_device_memcpy_read_ce ends before its sum"},
		{"next test is cut", whole + "Running host_to_device_memcpy_ce.\n", "truncated 15: host_to_device_memcpy_ce has no figures"},
		{"waived", whole + "Running host_to_device_memcpy_ce.\nWaived:\n", ""},
		{"fails", whole + "Running host_to_device_memcpy_ce.\n[CUDA_ERROR_ILLEGAL_ADDRESS] an illegal memory access was encountered\nERROR: host_to_device_memcpy_ce\n", "failed 15: host_to_device_memcpy_ce: [CUDA_ERROR_ILLEGAL_ADDRESS] an illegal memory access was encountered; ERROR: host_to_device_memcpy_ce"},
		{"wrong data", whole + "Running host_to_device_memcpy_ce.\n Invalid value when checking the pattern at 0x7f0000000000\n Current offset : 4096 \nASSERT in expression h_errorFlag == 0 in void f() : memcpy.cpp:165\n", "failed 15: host_to_device_memcpy_ce: Invalid value when checking the pattern at 0x7f0000000000; ASSERT in expression h_errorFlag == 0"},
	} {
		got, problems, err := Parse([]byte(c.in))
		if s := problemTexts(problems); err != nil || c.problems == "" && s != "" || !strings.Contains(s, c.problems) {
			t.Errorf("%s: %v, got %s, want %s", c.name, err, s, c.problems)
		}
		if len(got.Devices) != 2 || got.Devices[1].Host != "n2" || got.Devices[1].BusID != "00000008:01:00" || got.Tests[0].Unit != "GB/s" {
			t.Errorf("%s: %+v", c.name, got)
		}
		if least, most, ok := got.Tests[0].Range(); !ok || most != 376.10 || c.name != "row cut" && least != 375.84 {
			t.Errorf("%s: from %v to %v", c.name, least, most)
		}
	}
	if _, _, err := Parse([]byte("nothing")); err == nil {
		t.Error("nothing is read as something")
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	in := `{"nvbandwidth":{"version":"v0.8","Driver Version":"580.82.07","CUDA Runtime Version":12080,"GPU Device list":["0: NVIDIA H100 (00000000:1b:00): (n1)","odd"],
"testcases":[{"name":"a","status":"Passed","bandwidth_description":"x (GB/s)","bandwidth_matrix":[["N/A","2.5"],["1.5","N/A"]],"sum":4.0},{"name":"b","status":"Waived"},{"name":"c","status":"Error","error":"no memory"}]}}`
	got, problems, err := Parse([]byte(in))
	if err != nil || problemTexts(problems) != "failed 0: c: no memory" || got.CUDARuntime != "12080" || got.Devices[0].BusID != "00000000:1b:00" || got.Devices[0].Host != "n1" || got.Devices[1].Name != "odd" || got.Tests[1].Status != Waived {
		t.Errorf("%v %+v\n%s", err, got, problemTexts(problems))
	}
	_, problems, err = Parse([]byte(in[:strings.Index(in, `,"sum"`)]))
	if s := problemTexts(problems); err != nil || !strings.Contains(s, "truncated 0: the file ends") || !strings.Contains(s, "a ends before its sum") {
		t.Errorf("%v %s", err, s)
	}
	_, problems, err = Parse([]byte(`{"nvbandwidth":{"error":"No devices found","testcases":[]}}`))
	if s := problemTexts(problems); err != nil || !strings.Contains(s, "failed 0: No devices found") {
		t.Errorf("%v %s", err, s)
	}
}

// TestRealOutput reads an output of others when it lies beside the repository.
func TestRealOutput(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../shared/samples/nvbandwidth/superbench.log")
	if err != nil {
		t.Skip("no samples beside the repository: ", err)
	}
	got, problems, err := Parse(data)
	if err != nil || len(problems) != 0 || len(got.Tests) < 10 || len(got.Devices) != 1 {
		t.Errorf("%v %s %+v", err, problemTexts(problems), got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"nvbandwidth":{"testcases":[{"name":"a","bandwidth_matrix":[["N/A",1]]}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _, err := Parse(data)
		if err != nil {
			return
		}
		if _, err := json.Marshal(got); err != nil || len(got.Summary()) == 0 {
			t.Error(err)
		}
	})
}

// TestPieces: what people paste is often the matrix and its sum only.
func TestPieces(t *testing.T) {
	t.Parallel()
	in := whole[strings.Index(whole, "memcpy CE"):]
	c, problems, err := Parse([]byte(in))
	if err != nil || len(problems) != 0 || matchFormat([]byte(in)) == 0 {
		t.Fatalf("%v, %v, sure %d", err, problems, matchFormat([]byte(in)))
	}
	if len(c.Tests) != 1 || c.Tests[0].Name != "device_to_device_memcpy_read_ce" || len(c.Tests[0].Matrix) != 2 || *c.Tests[0].Sum != 751.94 {
		t.Errorf("got %+v", c.Tests)
	}
	if c, problems, err = Parse([]byte(in[:strings.Index(in, "SUM")])); err != nil || len(problems) != 1 || len(c.Tests[0].Matrix) != 2 {
		t.Errorf("without its sum: %v, %v, %+v", err, problems, c.Tests)
	}
}

// TestBothDirections: a test in both directions has three matrices, each with a
// sum of its own name; in JSON they stand in one list with the last one's sum.
func TestBothDirections(t *testing.T) {
	t.Parallel()
	const name = "device_to_device_bidirectional_memcpy_write_ce"
	in := "nvbandwidth Version: v0.8\n\nRunning " + name + ".\n"
	for _, part := range []struct{ title, key, cell, sum string }{{"Write1", "write1", "180.50", "361.00"}, {"Write2", "write2", "180.25", "360.50"}, {"Total", "total", "360.75", "721.50"}} {
		in += "memcpy CE GPU(row) <-> GPU(column) " + part.title + " bandwidth (GB/s)\n           0         1\n 0       N/A    " + part.cell + "\n 1    " + part.cell + "       N/A\n\nSUM " + name + "_" + part.key + " " + part.sum + "\n\n"
	}
	json := `{"nvbandwidth":{"version":"v0.8","testcases":[{"name":"` + name + `","status":"Passed","bandwidth_description":"memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)","sum":721.5,
"bandwidth_matrix":[["N/A","180.5"],["180.5","N/A"],["N/A","180.25"],["180.25","N/A"],["N/A","360.75"],["360.75","N/A"]]}]}}`
	for kind, text := range map[string]string{"text": in, "JSON": json} {
		c, problems, err := Parse([]byte(text))
		if err != nil || len(problems) != 0 || len(c.Tests) != 3 {
			t.Errorf("%s: %v, %s, %d tests", kind, err, problemTexts(problems), len(c.Tests))
			continue
		}
		for i, want := range []struct {
			name string
			cell float64
		}{{name + "_write1", 180.5}, {name + "_write2", 180.25}, {name + "_total", 360.75}} {
			if got := c.Tests[i]; got.Name != want.name || len(got.Matrix) != 2 || *got.Matrix[1][0] != want.cell || got.Unit != "GB/s" {
				t.Errorf("%s: got %+v, want %+v", kind, got, want)
			}
		}
	}
}

// TestManyProcesses: of ten processes and more, numbers are padded; a bisection
// has a row for each pair; --perfFormatter writes the sum in its own way.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	in := `nvbandwidth Version: v0.8

Process  0 (n1): device 0: HGX GB200 (00000008:01:00)
Process 11 (n3): device 3: HGX GB200 (00000019:01:00)

Running multinode_bisect_write_device_to_device_ce.
Bisect benchmarking, simultaneous write CE BW
               0
 0-> 2    740.10
 1-> 3    740.20
 2-> 0    739.90
 3-> 1    740.00

SUM multinode_bisect_write_device_to_device_ce 2960.20

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0
 0     55.25

&&&& PERF host_to_device_memcpy_ce 55.25 +GB/s
`
	c, problems, err := Parse([]byte(in))
	if err != nil || len(problems) != 0 || len(c.Tests) != 2 || len(c.Devices) != 2 {
		t.Fatalf("%v, %s, %+v", err, problemTexts(problems), c)
	}
	if c.Devices[0].Host != "n1" || c.Devices[1].Index != 3 || len(c.Tests[0].Matrix) != 4 || *c.Tests[0].Matrix[3][0] != 740 || c.Tests[0].Unit != "GB/s" || *c.Tests[1].Sum != 55.25 {
		t.Errorf("got %+v", c)
	}
}
