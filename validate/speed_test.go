// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/speed"
)

func TestSpeedIsPlanned(t *testing.T) {
	t.Parallel()
	inv := burning(4)
	inv.Nodes[0].Hardware.Disks = []inventory.Disk{{Name: "system", Type: "nvme", Count: 2}, {Name: "data", Type: "sata", Count: 3}}
	all := planOf(t, inv)
	st, ok := all["n1/validate.speed"]
	if !ok || !st.May.Has(plan.Load) || st.Deadline.Expected != 28*time.Second || !st.Inherited || st.Deadline.Limit <= time.Minute {
		t.Fatalf("%+v", st)
	}
	for _, c := range []struct {
		step, on plan.StepID
		kind     plan.NeedKind
	}{
		{"n1/validate.speed", "n1/validate.gates", plan.Success}, {"n1/validate.speed", "n1/validate.bandwidth", plan.Success},
		{"n1/validate.burn", "n1/validate.speed", plan.Success}, {"worker/validate.speeds", "n3/validate.speed", plan.Settled},
		{"all/validate.pair", "worker/validate.speeds", plan.Settled}, {"n4/validate.accept", "worker/validate.speeds", plan.Settled},
	} {
		if n, ok := needs(all[c.step], c.on); !ok || n.On != c.kind {
			t.Errorf("%s needs %s: %+v, %v", c.step, c.on, n, ok)
		}
	}
	inv.Nodes[0].Drivers, inv.Nodes[0].Validation.BurnIn = nil, 0 // nobody looks at its parts
	if n, ok := needs(planOf(t, inv)["n1/validate.speed"], "n1/fabric.rail"); !ok || n.On != plan.Success || !n.Triggers {
		t.Errorf("a node without gates is measured once it can be tested: %+v", planOf(t, inv)["n1/validate.speed"].Needs)
	}
	inv.Nodes[1].Image = nil
	if _, ok := planOf(t, inv)["n2/validate.speed"]; ok {
		t.Error("a node without a system is measured")
	}
}

// measuring answers as nodes that measure themselves; memory are the rates of the first, time after time.
func measuring(memory ...float64) *onnodetest.Nodes {
	answer := func(rate float64) string {
		s := wire.Speed{CPU: wire.CPU{Model: "X", Cores: 4}, NUMA: []wire.NUMASpeed{{Cores: 4, Rate: rate}}}
		for i := range 4 {
			s.Cores = append(s.Cores, wire.CoreSpeed{CPU: i, Rate: 480e6})
		}
		s.Disks = []wire.DiskSpeed{{Disk: wire.Disk{Name: "sda", Type: "ssd", Model: "S", ByPath: "pci-0000:00:1f.2-ata-1"}, Read: 1 << 30, Seconds: 2}}
		b, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	asked := 0
	ofFirst := func(ctx context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		if c.Node != "n1" {
			return onnode.Output{}, nil, false
		}
		asked++
		return onnodetest.On(onnode.AgentPath+" speed", answer(memory[(asked-1)%len(memory)]), 0)(ctx, c)
	}
	return &onnodetest.Nodes{Rules: []onnodetest.Rule{ofFirst, onnodetest.On(onnode.AgentPath+" speed", answer(200e9), 0)}}
}

// TestSpeed: a node is measured twice, and one whose memory is slow both times is blamed.
func TestSpeed(t *testing.T) {
	t.Parallel()
	inv := burning(5)
	var members []subject.ID
	for _, n := range inv.Nodes {
		members = append(members, subject.OfNode(n.Name))
	}
	for _, c := range []struct {
		memory []float64 // of n1, time after time
		cause  string    // of the finding
	}{
		{[]float64{170e9, 169e9}, "170GB/s in it, 85% of the median"},
		{[]float64{120e9, 199e9}, ""},
		{[]float64{199e9, 120e9}, ""},
	} {
		nodes, run := measuring(c.memory...), onnodetest.NewRun(members...)
		for i := range inv.Nodes {
			if err := apply(t, inv, nodes, run, plan.StepID(fmt.Sprintf("n%d/validate.speed", i+1))); err != nil {
				t.Fatal(err)
			}
		}
		asked := nodes.Calls(onnode.AgentPath + " speed")
		var p wire.SpeedParams
		if len(asked) != 10 || json.Unmarshal(asked[0].Stdin, &p) != nil || p.Memory != 2 || p.CPU != 3 || p.Disk != 2 || p.Bytes != 2<<30 {
			t.Errorf("%d calls, %+v", len(asked), p)
		}
		if len(run.Findings) != 0 {
			t.Errorf("by itself: %+v", run.Findings)
		}
		if err := apply(t, inv, nodes, run, "worker/validate.speeds"); err != nil {
			t.Fatal(err)
		}
		switch {
		case c.cause == "" && len(run.Findings) != 0:
			t.Errorf("%v: %+v", c.memory, run.Findings)
		case c.cause != "" && (len(run.Findings) != 1 || run.Findings[0].Suspects[0].Subject.Name != "n1" || run.Findings[0].Suspects[0].Part != "memory" || !strings.Contains(run.Findings[0].Cause, c.cause)):
			t.Errorf("%v: %+v", c.memory, run.Findings)
		}
		f, _ := run.Fact(speed.RoleFact.Of(result.OfGroup("worker")))
		if r, err := speed.RoleFact.Get(f); err != nil || len(r.Members) != 5 || len(r.Rows) != 3 {
			t.Errorf("%+v, %v", r, err)
		}
		f, _ = run.Fact(speed.Fact.Of(subject.OfNode("n1")))
		if r, err := speed.Fact.Get(f); err != nil || r.Memory[0].Rate != slices.Max(c.memory) || len(r.Evidence) != 2 {
			t.Errorf("n1 is kept as %+v, %v", r, err)
		}
	}
}

// TestSpeedLimits: a limit of the site is held, and one of what was not measured is an error.
func TestSpeedLimits(t *testing.T) {
	t.Parallel()
	inv := burning(4)
	limit := func(name string, v float64, d unit.Dimension) {
		l := inventory.MeasureLimit{Name: name}
		if q := (&unit.Quantity{Value: v, Dimension: d}); d == unit.Time {
			l.AtMost = q
		} else {
			l.AtLeast = q
		}
		inv.Nodes[0].Validation.Limits = []inventory.MeasureLimit{l}
	}
	for _, c := range []struct {
		name string
		v    float64
		d    unit.Dimension
		part string
	}{
		{"host.memory", 250e9, unit.Throughput, "memory"}, {"host.disk_read", 1e9, unit.Throughput, "disk at pci-0000:00:1f.2-ata-1"}, {"host.cpu", 2e9, unit.Time, "CPU core 0"}, {"host.cpu", 2.2e9, unit.Time, ""},
	} {
		limit(c.name, c.v, c.d)
		run := onnodetest.NewRun(subject.OfNode("n2"))
		if err := apply(t, inv, measuring(200e9), run, "n2/validate.speed"); err != nil {
			t.Fatal(err)
		}
		part := ""
		if len(run.Findings) > 0 {
			part = run.Findings[0].Suspects[0].Part
		}
		if part != c.part {
			t.Errorf("%s of %g: %+v", c.name, c.v, run.Findings)
		}
		nothing := &onnodetest.Nodes{Rules: []onnodetest.Rule{onnodetest.On(onnode.AgentPath+" speed", `{"gaps":["the kernel tells of no CPU"]}`, 0)}}
		if err := apply(t, inv, nothing, onnodetest.NewRun(subject.OfNode("n2")), "n2/validate.speed"); errkind.Of(err) != errkind.Unsupported {
			t.Errorf("%s was not measured: %v", c.name, err)
		}
	}
	limit("host.cpu", 2e9, unit.Throughput)
	inv.Nodes[0].Validation.Limits[0].AtMost = nil
	if _, diags := validate.New(inv, nil).Plan(onnodetest.NewRun()); !diags.HasErrors() || diags[0].Summary != "Limit has no ceiling" {
		t.Errorf("%v", diags)
	}
}
