// SPDX-License-Identifier: Apache-2.0

package bandwidth_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/bandwidth"
)

func chassis(vendor, model, interconnect string, gpus int) *inventory.Hardware {
	return &inventory.Hardware{Name: "x", GPUs: []inventory.GPU{{Vendor: vendor, Model: model, Interconnect: interconnect, Count: gpus}}}
}

// at is the address of a GPU of these tests.
func at(i int) string { return fmt.Sprintf("0000:%02x:00.0", 0x10*(i+1)) }

// nvPrints is what nvbandwidth prints of so many GPUs, with the figures of the copies in memory.
func nvPrints(local ...float64) string {
	var b strings.Builder
	b.WriteString("nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n\nCUDA Runtime Version: 13000\nDriver Version: 580.126.16\n\nn1\n")
	for i := range local {
		fmt.Fprintf(&b, "Device %d: NVIDIA H100 80GB HBM3 (0000%s)\n", i, strings.TrimSuffix(at(i), ".0"))
	}
	row := func(name, what string, figures []float64) {
		fmt.Fprintf(&b, "\nRunning %s.\n%s\n  ", name, what)
		sum := 0.0
		for i := range figures {
			fmt.Fprintf(&b, "%10d", i)
		}
		b.WriteString("\n 0")
		for _, v := range figures {
			fmt.Fprintf(&b, "%10.2f", v)
			sum += v
		}
		fmt.Fprintf(&b, "\n\nSUM %s %.2f\n", name, sum)
	}
	row("device_local_copy", "memcpy local GPU(column) bandwidth (GB/s)", local)
	row("host_to_device_memcpy_ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)", slices.Repeat([]float64{55.4}, len(local)))
	row("device_to_host_memcpy_ce", "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)", slices.Repeat([]float64{55.1}, len(local)))
	b.WriteString("\nWaived: \n")
	return b.String()
}

// node answers the search for a program, and runs it.
func node(path, prints string, exit int) *onnodetest.Nodes {
	return &onnodetest.Nodes{Rules: []onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		switch {
		case c.Argv[0] == "sh" && strings.Contains(c.Argv[2], "-x ") && path == "":
			return onnode.Output{Exit: 1}, nil, true
		case c.Argv[0] == "sh" && strings.Contains(c.Argv[2], "-x "):
			return onnode.Output{Stdout: []byte(path + "\n")}, nil, true
		case path != "" && slices.Contains(c.Argv, path):
			return onnode.Output{Stdout: []byte(prints), Exit: exit}, nil, true
		}
		return onnode.Output{}, nil, false
	}}}
}

func none(string) bandwidth.Limit { return bandwidth.Limit{} }

// TestNVIDIA: a byte that is copied within a memory is read and written.
func TestNVIDIA(t *testing.T) {
	t.Parallel()
	h := chassis("nvidia", "H100 SXM5 80GB", "nvswitch", 4)
	r, err := bandwidth.TakeFigures(t.Context(), node("/usr/bin/nvbandwidth", nvPrints(1519, 1518, 1215, 1517), 0), "n1", "nvidia", h)
	if err != nil || r.Absent != "" || r.Program != "nvbandwidth v0.8" {
		t.Fatalf("%v, %+v", err, r)
	}
	all := bandwidth.Judge(h, r, none)
	if len(all) != 3 { // copies between GPUs were waived
		t.Fatalf("judged %+v", all)
	}
	j := all[0]
	if s := j.Suspects(); len(s) != 1 || !slices.Equal(s[0], []string{at(2)}) {
		t.Errorf("suspects %v", s)
	}
	if j.Slowest().Rate != 2430e9 || j.Fastest().Rate != 3038e9 || math.Round(j.Least/1e9) != 2884 || j.Rule != "95% of the median of the node's GPUs" {
		t.Errorf("%+v", j)
	}
	if len(all[1].Bad)+len(all[2].Bad) != 0 {
		t.Errorf("bad copies of the host: %+v", all[1:])
	}
}

// TestRules: which rule is decisive.
func TestRules(t *testing.T) {
	t.Parallel()
	figures := func(rates ...float64) (list []bandwidth.Figure) {
		for i, r := range rates {
			list = append(list, bandwidth.Figure{Measure: "gpu.hbm_copy", GPU: at(i), Rate: r * 1e9})
		}
		return list
	}
	limit := func(gb float64, text string) func(string) bandwidth.Limit {
		return func(string) bandwidth.Limit { return bandwidth.Limit{Least: gb * 1e9, Text: text} }
	}
	for _, c := range []struct {
		name          string
		model, vendor string
		figures       []bandwidth.Figure
		limits        func(string) bandwidth.Limit
		rule          string
		bad           int
	}{
		{"table", "H100 SXM5", "nvidia", figures(2860, 2840), none, "Smol Training Playbook", 1},
		{"the site's limit comes before the table", "H100 SXM5", "nvidia", figures(2860, 2840), limit(2800, ">= 2800GB/s"), "the limit of the site, >= 2800GB/s", 0},
		{"all alike below the table", "H100 SXM5", "nvidia", figures(2400, 2401, 2402, 2400), none, "Smol Training Playbook", 4},
		{"median", "H100 SXM5", "nvidia", figures(3030, 3031, 3032, 2870), none, "95% of the median", 1},
		{"healthy ones lie apart", "MI300X", "amd", figures(4500, 4490, 4480, 4290), none, "95% of the median", 0},
		{"unknown model, too few", "X9", "nvidia", figures(3000, 1000), none, "", 0},
	} {
		h := chassis(c.vendor, c.model, "x", len(c.figures))
		all := bandwidth.Judge(h, bandwidth.Output{Vendor: c.vendor, Figures: c.figures}, c.limits)
		if len(all) != 1 || !strings.Contains(all[0].Rule, c.rule) || c.rule == "" && all[0].Least != 0 || len(all[0].Bad) != c.bad {
			t.Errorf("%s: %+v", c.name, all)
		}
	}
}

// TestBetweenGPUs: one GPU that is slow with all others, and one slow path.
func TestBetweenGPUs(t *testing.T) {
	t.Parallel()
	h := chassis("nvidia", "H100 SXM5", "nvswitch", 4)
	for _, c := range []struct {
		name string
		slow func(i, j int) bool
		want [][]string
	}{
		{"all good", func(int, int) bool { return false }, nil},
		{"one GPU", func(i, j int) bool { return i == 2 || j == 2 }, [][]string{{at(2)}}},
		{"one GPU that reads slowly", func(i, _ int) bool { return i == 1 }, [][]string{{at(1)}}},
		{"one path", func(i, j int) bool { return i+j == 5 }, [][]string{{at(2), at(3)}}},
	} {
		var figures []bandwidth.Figure
		for i := range 4 {
			for j := range 4 {
				rate := 376e9
				if c.slow(i, j) {
					rate = 180e9
				}
				if i != j {
					figures = append(figures, bandwidth.Figure{Measure: "gpu.p2p_read", GPU: at(i), Peer: at(j), Rate: rate})
				}
			}
		}
		got := bandwidth.Judge(h, bandwidth.Output{Vendor: "nvidia", Figures: figures}, none)[0].Suspects()
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestAMD: the program gets its actions, a GPU is found by its number, and the
// nearest CPU counts.
func TestAMD(t *testing.T) {
	t.Parallel()
	const prints = "GPU Id      Function    MiBytes/sec Min (sec)   Max         Average\n" +
		"10000       Copy        4000000.000 0.00051     0.00052     0.00051\n10001       Copy        4100000.000 0.00051     0.00052     0.00051\n" +
		"[RESULT] [  1.0     ] [to-gpu] pcie-bandwidth [ 1/4] [CPU:: 0] [GPU:: 2 - 10000 - 0000:10:00.0] h2d::true d2h::false 55.100 GBps duration: 1.0 secs\n" +
		"[RESULT] [  1.0     ] [to-gpu] pcie-bandwidth [ 2/4] [CPU:: 1] [GPU:: 2 - 10000 - 0000:10:00.0] h2d::true d2h::false 44.000 GBps duration: 1.0 secs\n" +
		"[RESULT] [  1.0     ] [to-gpu] pcie-bandwidth [ 3/4] [CPU:: 0] [GPU:: 3 - 10001 - 0000:20:00.0] h2d::true d2h::false 44.000 GBps duration: 1.0 secs\n" +
		"[RESULT] [  1.0     ] [to-gpu] pcie-bandwidth [ 4/4] [CPU:: 1] [GPU:: 3 - 10001 - 0000:20:00.0] h2d::true d2h::false 55.200 GBps duration: 1.0 secs\n" +
		"[RESULT] [  1.0     ] [from-gpu] pcie-bandwidth [ 1/2] [CPU:: 0] [GPU:: 2 - 10000 - 0000:10:00.0] h2d::false d2h::true 56.300 GBps duration: 1.0 secs\n" +
		"[RESULT] [  1.0     ] [from-gpu] pcie-bandwidth [ 2/2] [CPU:: 1] [GPU:: 3 - 10001 - 0000:20:00.0] h2d::false d2h::true 56.200 GBps duration: 1.0 secs\n" +
		"[RESULT] [  1.0     ] [peers] p2p-bandwidth[ 1/2] [GPU:: 2 - 10000 - 0000:10:00.0] [GPU:: 3 - 10001 - 0000:20:00.0] bidirectional: false 48.900 GBps duration: 1.0 secs\n" +
		"[RESULT] [  1.0     ] [peers] p2p-bandwidth[ 2/2] [GPU:: 3 - 10001 - 0000:20:00.0] [GPU:: 2 - 10000 - 0000:10:00.0] bidirectional: false 30.000 GBps duration: 1.0 secs\n"
	h := chassis("amd", "MI300X", "xgmi", 2)
	nodes := node("/opt/rocm/bin/rvs", prints, 0)
	r, err := bandwidth.TakeFigures(t.Context(), nodes, "n1", "amd", h)
	if err != nil {
		t.Fatal(err)
	}
	if config, ok := nodes.File("n1", "/run/ironrail/rvs.conf"); !ok || !strings.Contains(string(config), "module: pbqt") {
		t.Errorf("the program's actions: %q", config)
	}
	var said []string
	for _, j := range bandwidth.Judge(h, r, none) {
		said = append(said, fmt.Sprintf("%s %.1f of %.1f %v", j.Measure.Name, j.Slowest().Rate/1e9, j.Least/1e9, j.Suspects()))
	}
	want := "gpu.hbm_copy 4194.3 of 4177.0 []; gpu.h2d 55.1 of 48.0 []; gpu.d2h 56.2 of 0.0 []; gpu.p2p_read 30.0 of 44.0 [[0000:10:00.0 0000:20:00.0]]"
	if got := strings.Join(said, "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestNoResult: what is no measurement is an error, and a program that is not there
// is said with where it comes from.
func TestNoResult(t *testing.T) {
	t.Parallel()
	h := chassis("nvidia", "H100 SXM5", "nvswitch", 4)
	good := nvPrints(1519, 1518, 1517, 1516)
	for _, c := range []struct {
		name, prints string
		exit         int
		want         string
	}{
		{"one GPU less", nvPrints(1519, 1518, 1517), 0, "figures of 3 GPUs for gpu.hbm_copy, and there are 4"},
		{"no driver", "nvbandwidth Version: v0.8\n[CUDA_ERROR_NO_DEVICE] no CUDA-capable device is detected\n", 1, "exit status 1: [CUDA_ERROR_NO_DEVICE]"},
		{"cut", good[:strings.Index(good, "SUM host")], 0, "ends before its sum"},
		{"something else", "hello\n", 0, "hello"},
		{"without addresses", strings.ReplaceAll(good, " (0000", " (PCI"), 0, "no PCI address"},
	} {
		_, err := bandwidth.TakeFigures(t.Context(), node("/usr/bin/nvbandwidth", c.prints, c.exit), "n1", "nvidia", h)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	r, err := bandwidth.TakeFigures(t.Context(), node("", "", 0), "n1", "nvidia", h)
	if err != nil || !strings.Contains(r.Absent, "there is no nvbandwidth on n1") || !strings.Contains(r.Absent, "datacenter-gpu-manager-4") {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestGaps: what was not measured of a GPU, and a figure far above those of the others, is said; pairs
// that have no way to each other are not asked for.
func TestGaps(t *testing.T) {
	t.Parallel()
	full := func(gpus int) (list []bandwidth.Figure) {
		for i := range gpus {
			for _, m := range bandwidth.Measures {
				for k := range gpus {
					switch {
					case m.Between && i != k:
						list = append(list, bandwidth.Figure{Measure: m.Name, GPU: at(i), Peer: at(k), Rate: 376e9})
					case !m.Between && k == 0:
						list = append(list, bandwidth.Figure{Measure: m.Name, GPU: at(i), Rate: 55e9})
					}
				}
			}
		}
		return list
	}
	without := func(list []bandwidth.Figure, drop func(bandwidth.Figure) bool) []bandwidth.Figure {
		return slices.DeleteFunc(list, drop)
	}
	faster := func(list []bandwidth.Figure, measure string) []bandwidth.Figure {
		i := slices.IndexFunc(list, func(f bandwidth.Figure) bool { return f.Measure == measure })
		list[i].Rate *= 1.2
		return list
	}
	for _, c := range []struct {
		name, interconnect string
		figures            []bandwidth.Figure
		want               string
	}{
		{"all", "nvswitch", full(4), ""},
		{"a GPU without one measure", "nvswitch", without(full(4), func(f bandwidth.Figure) bool { return f.Measure == "gpu.h2d" && f.GPU == at(2) }), "gpu.h2d of the GPU at " + at(2) + " was not measured"},
		{"a GPU without any", "pcie", without(full(4), func(f bandwidth.Figure) bool { return f.GPU == at(3) }), "gpu.hbm_copy was measured of 3 of 4 GPUs"},
		{"a measure without figures", "nvswitch", without(full(4), func(f bandwidth.Figure) bool { return f.Measure == "gpu.p2p_read" }), "gpu.p2p_read: nvbandwidth has no figure"},
		{"a pair", "nvswitch", without(full(4), func(f bandwidth.Figure) bool { return f.GPU == at(1) && f.Peer == at(2) }), "gpu.p2p_read: 1 of 12 copies between GPUs were not measured: " + at(1) + " and " + at(2)},
		{"a pair that nothing joins", "nvlink", without(full(4), func(f bandwidth.Figure) bool { return f.GPU == at(1) && f.Peer == at(2) }), ""},
		{"too fast", "nvswitch", faster(full(4), "gpu.h2d"), "gpu.h2d of the GPU at " + at(0) + " is 66GB/s, 20% above the median"},
		{"a pair that is joined better", "xgmi", faster(full(4), "gpu.p2p_read"), ""},
	} {
		got := bandwidth.FindGaps(chassis("nvidia", "H100", c.interconnect, 4), bandwidth.Output{Vendor: "nvidia", Program: "nvbandwidth", Figures: c.figures})
		if (len(got) == 0) != (c.want == "") || c.want != "" && !strings.Contains(got[0], c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
