// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/accept"
	"github.com/ironrail/ironrail/validate/result"
)

// serving is a view of a site of which some nodes are in service.
type serving struct {
	nodes []string
	stage.View
}

func (s serving) InService(node string) bool { return slices.Contains(s.nodes, node) }

// gpuSite has n nodes of eight H100 with eight rails of 400 Gb/s.
func gpuSite(n int, scopes ...string) *inventory.Inventory {
	inv := site(n, 8)
	h := inv.Nodes[0].Hardware
	h.GPUs = []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 8, Interconnect: "nvswitch"}}
	h.NICs[0].Speed = 400e9
	inv.Fabrics[0].MTU = 9000
	image := &inventory.Image{Packages: []string{"openmpi-bin", "ironrail-nccl-tests"}}
	for i, node := range inv.Nodes {
		node.Image, node.ScalableUnit = image, 1+i/4
	}
	v := inv.Nodes[0].Validation
	v.Pair, v.Limits = nil, nil
	inv.Validations = []*inventory.Validation{v}
	v.AllReduce = &inventory.CollectiveTest{Engine: "nccl", Scope: scopes, Sizes: []unit.Bytes{8 << 30}, Decl: line(46)}
	return inv
}

// table is what all_reduce_perf prints of 8 GiB at a bus bandwidth in GB/s.
func table(nodes []string, busbw float64) string {
	n := float64(8 * len(nodes))
	return tableOf(nodes, busbw, 2*(n-1)/n)
}

// tableOf is that of a test whose bus bandwidth is so many times its algorithm's.
func tableOf(nodes []string, busbw, factor float64) string {
	b := new(strings.Builder)
	n := 8 * len(nodes)
	b.WriteString("# nThread 1 nGpus 1 minBytes 8589934592 maxBytes 8589934592 step: 1048576(bytes) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n")
	for i := range n {
		fmt.Fprintf(b, "#  Rank %2d Group  0 Pid %6d on %10s device %2d [0000:%02x:00] NVIDIA H100 80GB HBM3\n", i, 100+i, nodes[i/8], i%8, 0x1b+i%8)
	}
	alg := busbw / factor
	half := fmt.Sprintf("%7.0f  %6.2f  %6.2f      0", 8589934592/alg/1e3, alg, busbw)
	fmt.Fprintf(b, "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n  8589934592    2147483648     float     sum      -1  %s  %s\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : %g \n", half, half, busbw)
	return b.String()
}

// gpuWorld answers all-reduces with the bandwidth that busbw returns; 0 is an
// output of its own, from other.
func gpuWorld(inv *inventory.Inventory, busbw func(nodes []string, devices string) float64) *world {
	w := newWorld(inv)
	run := func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		switch {
		case strings.Contains(c.Line(), "/opt/nccl-tests/build/all_reduce_perf ]"):
			return onnode.Output{Stdout: []byte("/opt/nccl-tests/build/all_reduce_perf\n")}, nil, true
		case strings.Contains(c.Line(), "/opt/nccl-tests/build/all_gather_perf ]"):
			return onnode.Output{Stdout: []byte("/opt/nccl-tests/build/all_gather_perf\n")}, nil, true
		case strings.Contains(c.Line(), "/opt/nccl-tests/build/alltoall_perf ]"):
			return onnode.Output{Exit: 1}, nil, true
		case slices.Contains(c.Argv, "mpirun") && slices.Contains(c.Argv, "/opt/nccl-tests/build/all_gather_perf"):
			var nodes []string
			for _, h := range w.hosts(c) {
				nodes = append(nodes, w.byAddress(h))
			}
			text := strings.ReplaceAll(tableOf(nodes, w.gather, float64(8*len(nodes)-1)/float64(8*len(nodes))), "   sum ", "  none ")
			return onnode.Output{Stdout: []byte(text)}, nil, true
		case slices.Contains(c.Argv, "mpirun"):
			var nodes []string
			for _, h := range w.hosts(c) {
				nodes = append(nodes, w.byAddress(h))
			}
			devices := ""
			for _, a := range c.Argv {
				if list, ok := strings.CutPrefix(a, "NCCL_IB_HCA=="); ok {
					devices = list
				}
			}
			return onnode.Output{Stdout: []byte(table(nodes, busbw(nodes, devices)))}, nil, true
		}
		return onnode.Output{}, nil, false
	}
	w.Rules = append([]onnodetest.Rule{run}, w.Rules...)
	return w
}

func TestAllReduceOfGPUs(t *testing.T) {
	t.Parallel()
	good := func(nodes []string, devices string) float64 {
		switch {
		case len(nodes) == 1:
			return 475
		case !strings.Contains(devices, ","):
			return 48
		}
		return 388
	}
	// with is one node that is slow by itself, and with others over a rail; no rail is
	// all of them.
	with := func(node string, alone, between float64, rail string) func([]string, string) float64 {
		return func(nodes []string, devices string) float64 {
			switch {
			case !slices.Contains(nodes, node):
				return good(nodes, devices)
			case len(nodes) == 1:
				return alone
			case !strings.Contains(devices, ",") && (rail == "" || rail == devices):
				return between / 8
			case !strings.Contains(devices, ","):
				return 48
			}
			return between
		}
	}
	for _, c := range []struct {
		name     string
		nodes    int
		scopes   []string
		busbw    func([]string, string) float64
		suspects string
		cause    string
		accepted string
	}{
		{"good", 4, []string{"node", "pair", "unit", "all"}, good, "", "", "n1 n2 n3 n4"},
		{"odd number", 3, []string{"pair"}, good, "", "", "n1 n2 n3"},
		{"one slow by itself", 4, []string{"node", "all"}, with("n3", 300, 388, ""), "n3 all-reduce of GPUs", "bus bandwidth 300GB/s at 8GiB, and 460GB/s is azurehpc-health-checks", "n1 n2 n4"},
		{"one slow between nodes", 6, []string{"node", "pair", "all"}, with("n3", 475, 300, ""), "n3 all-reduce of GPUs", "bus bandwidth 300GB/s at 8GiB, and 368GB/s is 92% of what its rails carry", "n1 n2 n4 n5 n6"},
		{"one rail of one", 6, []string{"pair", "all"}, with("n3", 475, 100, "rxe5"), "n3 rail 5", "bus bandwidth 100GB/s at 8GiB", "n1 n2 n4 n5 n6"},
		{"one below the others", 8, []string{"node"}, with("n5", 461, 388, ""), "", "", "n1 n2 n3 n4 n5 n6 n7 n8"},
		{"one far below the others", 8, []string{"node"}, func(nodes []string, _ string) float64 {
			if nodes[0] == "n5" {
				return 465
			}
			return 495
		}, "n5 all-reduce of GPUs", "the median of such runs is 495GB/s: less than 95% of it", "n1 n2 n3 n4 n6 n7 n8"},
		{"more than the wire carries", 2, []string{"pair"}, func([]string, string) float64 { return 480 }, "all all-reduce of GPUs", "is more than the rails can carry, 400GB/s", ""},
		{"every pair slow", 6, []string{"pair"}, func([]string, string) float64 { return 250 }, "rail all rails of all nodes", "every one of 3 pairs is slow, such as n1, n2: bus bandwidth 250GB/s", ""},
		{"all slow together", 4, []string{"node", "pair", "all"}, func(nodes []string, devices string) float64 {
			if len(nodes) == 4 {
				return 250
			}
			return good(nodes, devices)
		}, "all all-reduce of GPUs", "over n1, n2, n3, n4 is bad: bus bandwidth 250GB/s", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := gpuSite(c.nodes, c.scopes...)
			w := gpuWorld(inv, c.busbw)
			run := newRun(t, inv)
			s, all := validate.New(inv, w), steps(t, inv)
			if err := s.Apply(t.Context(), run, all["all/validate.all_reduce"]); err != nil {
				t.Fatal(err)
			}
			if got := suspects(run.Findings); got != c.suspects {
				t.Errorf("suspects %q, want %q", got, c.suspects)
			}
			if c.cause != "" && (len(run.Findings) == 0 || !strings.Contains(run.Findings[0].Cause, c.cause)) {
				t.Errorf("got %+v, want %s", run.Findings, c.cause)
			}
			var accepted []string
			for _, n := range inv.Nodes {
				if s.Apply(t.Context(), run, all[accept.ID(n.Name)]) == nil {
					accepted = append(accepted, n.Name)
				}
			}
			if got := strings.Join(accepted, " "); got != c.accepted {
				t.Errorf("accepted %q, want %q", got, c.accepted)
			}
			for _, r := range report(t, run, result.AllReduceReport, "all").Results {
				if len(r.Evidence) != 1 || !strings.HasPrefix(r.Transport, "nccl ") || r.Limit == "" && r.Verdict == result.Pass {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// TestScopesOverUnits: each unit is a run, as the cables say who is in which; a site
// of one unit runs it once, and says that it is both.
func TestScopesOverUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		given, cabled []int // units of the nodes, in the files and by their leaves
		scopes        []string
		runs          string
		merged        bool
	}{
		{"two units of the files", []int{1, 1, 2, 2}, nil, []string{"unit", "all"}, "n1+n2 n1+n2+n3+n4 n3+n4", false},
		{"two units of the leaves", []int{0, 0, 0, 0}, []int{1, 2, 2, 1}, []string{"unit", "all"}, "n1+n2+n3+n4 n1+n4 n2+n3", false},
		{"one unit of the leaves", []int{0, 0, 0, 0}, []int{1, 1, 1, 1}, []string{"unit", "all"}, "n1+n2+n3+n4", true},
		{"one unit alone", []int{1, 1, 1, 1}, nil, []string{"unit"}, "n1+n2+n3+n4", false},
		{"a unit of one node", []int{1, 1, 1, 2}, nil, []string{"unit", "all"}, "n1+n2+n3 n1+n2+n3+n4", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := gpuSite(4, c.scopes...)
			nic := &inv.Nodes[0].Hardware.NICs[0]
			for i, n := range inv.Nodes {
				n.ScalableUnit = c.given[i]
				if c.cabled != nil {
					leaf := &inventory.Switch{Name: fmt.Sprint("leaf-", c.cabled[i]), ScalableUnit: c.cabled[i]}
					inv.Cables = append(inv.Cables, &inventory.Cable{From: inventory.CableEnd{Node: n, NIC: nic}, To: inventory.CableEnd{Switch: leaf}})
				}
			}
			w := gpuWorld(inv, func([]string, string) float64 { return 388 })
			run := newRun(t, inv)
			if err := validate.New(inv, w).Apply(t.Context(), run, steps(t, inv)["all/validate.all_reduce"]); err != nil {
				t.Fatal(err)
			}
			rep := report(t, run, result.AllReduceReport, "all")
			var runs []string
			for _, r := range rep.Results {
				runs = append(runs, strings.Join(r.Nodes, "+"))
			}
			slices.Sort(runs)
			if got := strings.Join(slices.Compact(runs), " "); got != c.runs {
				t.Errorf("runs over %s, want %s", got, c.runs)
			}
			if len(rep.Results) != 2*len(strings.Fields(c.runs)) {
				t.Errorf("%d results: a run was made twice", len(rep.Results))
			}
			if got := strings.Contains(rep.Proves, "all nodes, which are one scalable unit"); got != c.merged {
				t.Errorf("proves %q", rep.Proves)
			}
		})
	}
}

func TestAllReduceOfGPUsNeedsItsProgram(t *testing.T) {
	t.Parallel()
	inv := gpuSite(2, "node")
	w := newWorld(inv)
	w.Rules = append([]onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		return onnode.Output{Exit: 1}, nil, strings.Contains(c.Line(), "/all_reduce_perf ]")
	}}, w.Rules...)
	run := newRun(t, inv)
	if err := validate.New(inv, w).Apply(t.Context(), run, steps(t, inv)["all/validate.all_reduce"]); err != nil {
		t.Fatal(err)
	}
	if len(run.Findings) != 2 || !strings.Contains(run.Findings[0].Cause, "has no all_reduce_perf") {
		t.Errorf("got %+v", run.Findings)
	}
}

func TestAllReduceOfGPUsIsPlanned(t *testing.T) {
	t.Parallel()
	inv := gpuSite(4, "node", "pair", "all")
	st := steps(t, inv)["all/validate.all_reduce"]
	if st.Title != "all-reduce of the GPUs of 4 nodes (node, pair, all), every element checked, judged with 3 or more" || st.Inputs[len(st.Inputs)-1].Value != "nccl node+pair+all 8GiB" || st.Deadline.Limit < st.Deadline.Expected {
		t.Errorf("%+v", st)
	}
	for name, c := range map[string]struct {
		set  func()
		want string
	}{
		"no units": {func() { inv.Nodes[0].Validation.AllReduce.Scope, inv.Nodes[3].ScalableUnit = []string{"unit"}, 0 }, "Scope is not supported"},
		"no GPUs":  {func() { inv.Nodes[0].Hardware.GPUs = nil }, "Engine is not supported"},
	} {
		inv = gpuSite(4, "node", "pair", "all")
		c.set()
		_, diags := validate.New(inv, nil).Plan(onnodetest.NewRun())
		if len(diags) != 1 || diags[0].Summary != c.want {
			t.Errorf("%s: %v", name, diags)
		}
	}
	inv = gpuSite(4, "all")
	inv.Nodes[0].Image.Packages = nil
	for names, want := range map[string][]hcl.DiagnosticSeverity{"n1 n2 n3 n4": {hcl.DiagWarning}, "n1 n2": {hcl.DiagWarning, hcl.DiagError}} {
		_, diags := validate.New(inv, nil).Plan(serving{strings.Fields(names), onnodetest.NewRun()})
		var got []hcl.DiagnosticSeverity
		for _, d := range diags {
			got = append(got, d.Severity)
		}
		if !slices.Equal(got, want) || !strings.Contains(diags[0].Detail, "nothing brings it to node n1, which is in service") {
			t.Errorf("%s in service: %v", names, diags)
		}
	}
	for name, c := range map[string]struct {
		set  func(*inventory.Image)
		says []string
		sev  hcl.DiagnosticSeverity
	}{
		"nothing":            {func(i *inventory.Image) { i.Packages = nil }, []string{"Open MPI (mpirun) and the tests of NCCL", `driver "tools" "tools" { nccl_tests {`}, hcl.DiagError},
		"no tests":           {func(i *inventory.Image) { i.Packages = i.Packages[:1] }, []string{"runs the tests of NCCL with MPI", "to node n1"}, hcl.DiagError},
		"no Open MPI":        {func(i *inventory.Image) { i.Packages = i.Packages[1:] }, []string{"runs Open MPI (mpirun), and", `driver "tools" "tools" {}`}, hcl.DiagError},
		"an image of others": {func(i *inventory.Image) { i.Packages, i.Source = nil, "os.qcow2" }, []string{"is not known"}, hcl.DiagWarning},
	} {
		inv = gpuSite(4, "all")
		c.set(inv.Nodes[0].Image)
		_, diags := validate.New(inv, nil).Plan(onnodetest.NewRun())
		if len(diags) != 1 || diags[0].Severity != c.sev || diags[0].Subject.Start.Line != 46 {
			t.Errorf("%s: %v", name, diags)
			continue
		}
		for _, words := range c.says {
			if !strings.Contains(diags[0].Detail, words) {
				t.Errorf("%s: %s", name, diags[0].Detail)
			}
		}
	}
}

// TestOutputCut: an all-reduce whose output cannot be kept whole is not judged: no node
// is suspected, and none is accepted.
func TestOutputCut(t *testing.T) {
	t.Parallel()
	for _, scopes := range [][]string{{"node", "all"}, {"pair", "all"}, {"all"}} {
		inv := gpuSite(4, scopes...)
		w := gpuWorld(inv, nil)
		w.Rules = append([]onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
			return onnode.Output{Stdout: []byte(strings.Repeat("x", 100<<10)), Omitted: 5}, nil, slices.Contains(c.Argv, "mpirun")
		}}, w.Rules...)
		run := newRun(t, inv)
		s, all := validate.New(inv, w), steps(t, inv)
		err := s.Apply(t.Context(), run, all["all/validate.all_reduce"])
		if !errors.Is(err, onnode.ErrCut) || !strings.Contains(err.Error(), "(evidence/") {
			t.Errorf("%v: got %v", scopes, err)
		}
		if got := suspects(run.Findings); got != "" {
			t.Errorf("%v: suspects %q", scopes, got)
		}
		if s.Apply(t.Context(), run, all[accept.ID("n1")]) == nil {
			t.Errorf("%v: n1 is accepted", scopes)
		}
	}
}

// TestTransferCut: a transfer whose output cannot be read whole is not judged.
func TestTransferCut(t *testing.T) {
	t.Parallel()
	inv := site(4, 1)
	w := newWorld(inv)
	w.Rules = append([]onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		return onnode.Output{}, onnode.Output{Omitted: 1}.Whole(), strings.Contains(c.Line(), "ib_write_bw")
	}}, w.Rules...)
	run := newRun(t, inv)
	err := validate.New(inv, w).Apply(t.Context(), run, steps(t, inv)["all/validate.pair"])
	if !errors.Is(err, onnode.ErrCut) || suspects(run.Findings) != "" {
		t.Errorf("%v, suspects %q", err, suspects(run.Findings))
	}
}

// TestOperations: the further collectives run over the largest scope, each by its own
// program, and are held against the site's limit; what has none is shown. A program that is
// not there is a finding about the nodes, and of a bad all-reduce nothing follows.
func TestOperations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operations []string
		gather     float64 // GB/s
		reduce     float64
		limit      float64 // of all_gather, GB/s; 0: none
		want       string  // of the findings; "": none
		shown      bool    // it is measured
	}{
		"shown":           {[]string{"all_gather"}, 200, 388, 0, "", true},
		"good":            {[]string{"all_gather"}, 340, 388, 330, "", true},
		"slow":            {[]string{"all_gather"}, 300, 388, 330, "the all_gather of GPUs over n1, n2, n3, n4 is bad: bus bandwidth 300GB/s at 8GiB, and 330GB/s is the limit of the site", true},
		"not there":       {[]string{"alltoall"}, 0, 388, 0, "the alltoall of GPUs over n1, n2, n3, n4 is bad: node n1 has no alltoall_perf", false},
		"a bad one first": {[]string{"all_gather"}, 300, 100, 330, "the all-reduce of GPUs over n1, n2, n3, n4 is bad", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inv := gpuSite(4, "all")
			v := inv.Nodes[0].Validation
			v.AllReduce.Operations = c.operations
			if c.limit > 0 {
				v.Limits = append(v.Limits, inventory.MeasureLimit{Name: "all_gather.busbw", AtLeast: &unit.Quantity{Value: c.limit * 1e9, Dimension: unit.Throughput}})
			}
			w := gpuWorld(inv, func([]string, string) float64 { return c.reduce })
			w.gather = c.gather
			run := newRun(t, inv)
			if err := validate.New(inv, w).Apply(t.Context(), run, steps(t, inv)["all/validate.all_reduce"]); err != nil {
				t.Fatal(err)
			}
			findings, rep := run.Findings, report(t, run, result.AllReduceReport, "all")
			text := fmt.Sprint(findings)
			if c.want == "" && len(findings) > 0 || !strings.Contains(text, c.want) || c.want != "" && len(findings) != 1 {
				t.Errorf("%s", text)
			}
			measured := false
			for _, r := range rep.Results {
				measured = measured || r.Check == "all_gather.busbw" && r.Measured > 0
			}
			if measured != c.shown {
				t.Errorf("measured: %v: %+v", measured, rep.Results)
			}
		})
	}
}
