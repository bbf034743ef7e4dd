// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/bandwidth"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/result"
)

// oneGPU is what nvbandwidth prints of one H100.
const oneGPU = `nvbandwidth Version: v0.8
Driver Version: 580.126.16

Device 0: NVIDIA H100 80GB HBM3 (00000000:19:00)

Running device_local_copy.
memcpy local GPU(column) bandwidth (GB/s)
           0
 0   1215.10

SUM device_local_copy 1215.10

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0
 0     55.40

SUM host_to_device_memcpy_ce 55.40

Running device_to_host_memcpy_ce.
memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)
           0
 0     55.10

SUM device_to_host_memcpy_ce 55.10

Waived: 
`

// nvbandwidth answers for a node that has the program, or not.
func nvbandwidth(there bool) *onnodetest.Nodes {
	return &onnodetest.Nodes{Rules: []onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		switch {
		case c.Argv[0] == "env":
			return onnode.Output{Stdout: []byte(oneGPU)}, nil, true
		case there:
			return onnode.Output{Stdout: []byte("/usr/bin/nvbandwidth\n")}, nil, true
		}
		return onnode.Output{Exit: 1}, nil, true
	}}}
}

// limited gives the nodes of a site a limit of their GPUs.
func limited(inv *inventory.Inventory, name, least string) {
	v := *inv.Nodes[0].Validation
	v.Limits = append(slices.Clone(v.Limits), inventory.MeasureLimit{Name: name, AtLeast: floor(least), Decl: line(57)})
	for _, n := range inv.Nodes {
		n.Validation = &v
	}
}

// TestBandwidthInThePlan: after the gates, before anything between nodes, and with
// the site's limit as an input.
func TestBandwidthInThePlan(t *testing.T) {
	t.Parallel()
	inv := site(2, 1)
	withGPUs(inv, 2)
	limited(inv, "gpu.hbm_copy", "2850GB/s")
	all := steps(t, inv)
	st := all["n1/validate.bandwidth"]
	if !slices.Contains(st.Needs, plan.Need{Step: "n1/validate.gates", On: plan.Success}) || st.May != plan.Effects(plan.Load) || st.Deadline.Limit == 0 {
		t.Errorf("%+v", st)
	}
	if !slices.ContainsFunc(st.Inputs, func(in plan.Input) bool { return in.Name == "limit gpu.hbm_copy" && in.Value == ">= 2.85TB/s" }) {
		t.Errorf("inputs %+v", st.Inputs)
	}
	if !slices.Contains(all["all/validate.pair"].Needs, plan.Need{Step: "n1/validate.bandwidth", On: plan.Settled}) || !slices.Contains(all["n1/validate.accept"].Needs, plan.Need{Step: "n1/validate.bandwidth", On: plan.Success}) {
		t.Error("somebody does not wait for it")
	}
}

// TestLimitOfGPUs: one that nothing can measure is refused with its place.
func TestLimitOfGPUs(t *testing.T) {
	t.Parallel()
	inv := site(2, 1)
	withGPUs(inv, 1)
	limited(inv, "gpu.h2d", "50GB/s")
	_, diags := validate.New(inv, nil).Plan(nil)
	if !diags.HasErrors() || !strings.Contains(diags.Error(), `Limit "gpu.h2d" of validation "lab" is of GPUs, and nothing brings a driver of GPUs to node n2`) {
		t.Errorf("%v", diags)
	}
	inv = site(2, 1)
	withGPUs(inv, 2)
	limited(inv, "gpu.h2d", "50GB/s")
	for _, n := range inv.Nodes {
		n.Image = &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "d"}, Packages: []string{"openmpi-bin", "python3-mpi4py", "perftest"}}
	}
	_, diags = validate.New(inv, nil).Plan(nil)
	if diags.HasErrors() || len(diags) != 1 || !strings.Contains(diags[0].Detail, "no driver of node n1 brings it. It comes with DCGM 4") {
		t.Errorf("%v", diags)
	}
}

// TestBandwidthBlamesAGPU: the report has the figure and the rule.
func TestBandwidthBlamesAGPU(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, rule string }{{"", "94% of 3038 GB/s"}, {"2500GB/s", "the limit of the site, >= 2.5TB/s"}} {
		inv := site(2, 1)
		withGPUs(inv, 1)
		inv.Nodes[0].Hardware.GPUs[0].Interconnect = "nvswitch"
		if c.limit != "" {
			limited(inv, "gpu.hbm_copy", c.limit)
			inv.Nodes = inv.Nodes[:1]
		}
		st := steps(t, inv)["n1/validate.bandwidth"]
		run := newRun(t, inv)
		know(t, run, gate.Fact.Of(subject.OfNode("n1")), gate.Report{GPUs: map[string]string{"0000:19:00.0": "GPU 0 at 0000:19:00.0, serial 165"}})
		if err := validate.New(inv, nvbandwidth(true)).Apply(t.Context(), run, st); err != nil {
			t.Fatal(err)
		}
		if len(run.Findings) != 1 || run.Findings[0].Suspects[0].Part != "GPU 0 at 0000:19:00.0, serial 165" || !strings.Contains(run.Findings[0].Cause, "copies within its memory run at 2.43TB/s") || !strings.Contains(run.Findings[0].Cause, c.rule) {
			t.Errorf("findings %+v", run.Findings)
		}
		rep := bandwidths(t, run)
		if len(rep.Results) != 3 || rep.Results[0].Verdict != result.Fail || !strings.Contains(rep.Results[0].Rule, c.rule) || rep.Results[1].Verdict != result.Pass || rep.Results[1].Limit != ">= 52GB/s" {
			t.Errorf("%+v", rep.Results)
		}
	}
}

// TestBandwidthWithoutAProgram: a note, and an error where the site asks for it.
func TestBandwidthWithoutAProgram(t *testing.T) {
	t.Parallel()
	inv := site(1, 1)
	withGPUs(inv, 1)
	run := newRun(t, inv)
	if err := validate.New(inv, nvbandwidth(false)).Apply(t.Context(), run, steps(t, inv)["n1/validate.bandwidth"]); err != nil {
		t.Fatal(err)
	}
	if rep := bandwidths(t, run); len(run.Findings) != 0 || len(rep.NotJudged) != 1 || !strings.Contains(rep.NotJudged[0], "there is no nvbandwidth on n1") {
		t.Errorf("%+v", rep)
	}
	limited(inv, "gpu.hbm_copy", "2850GB/s")
	err := validate.New(inv, nvbandwidth(false)).Apply(t.Context(), newRun(t, inv), steps(t, inv)["n1/validate.bandwidth"])
	if err == nil || !strings.Contains(err.Error(), "the site has a limit of gpu.hbm_copy") {
		t.Errorf("%v", err)
	}
}

// bandwidths is what was learned of n1.
func bandwidths(t *testing.T, run *onnodetest.Run) result.Report {
	t.Helper()
	f, ok := run.Fact(bandwidth.Fact.Of(subject.OfNode("n1")))
	if !ok {
		t.Fatal("nothing was learned")
	}
	r, err := bandwidth.Fact.Get(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// know gives a run a fact.
func know[T any](t *testing.T, run *onnodetest.Run, key fact.Key, v T) {
	t.Helper()
	f, err := fact.Name[T](key.Name).New(key.Subject, v, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Learn(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}
