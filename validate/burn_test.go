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
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/burn"
	"github.com/ironrail/ironrail/validate/result"
)

// burning is n nodes with GPUs that are burnt in.
func burning(n int) *inventory.Inventory {
	inv := site(n, 1)
	hw := *inv.Nodes[0].Hardware
	hw.GPUs = []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 2, Interconnect: "nvswitch"}}
	role := &inventory.Role{Name: "worker", Decl: line(70)}
	driver := &inventory.Driver{Block: inventory.Block{Kind: "cuda", Name: "r580"}, Version: "580.126.16"}
	for _, node := range inv.Nodes {
		node.Hardware, node.Role, node.Drivers = &hw, role, []*inventory.Driver{driver}
		node.Image = &inventory.Image{Block: inventory.Block{Kind: "ubuntu", Name: "hpc"}, Packages: []string{"openmpi-bin", "python3-mpi4py", "perftest"}}
	}
	inv.Nodes[0].Validation.BurnIn = unit.Duration(30 * time.Minute)
	return inv
}

func planOf(t *testing.T, inv *inventory.Inventory) map[plan.StepID]plan.Step {
	t.Helper()
	list, diags := validate.New(inv, nil).Plan(onnodetest.NewRun())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	all := map[plan.StepID]plan.Step{}
	for _, s := range list {
		all[s.ID] = s
	}
	return all
}

func needs(s plan.Step, on plan.StepID) (plan.Need, bool) {
	i := slices.IndexFunc(s.Needs, func(n plan.Need) bool { return n.Step == on })
	if i < 0 {
		return plan.Need{}, false
	}
	return s.Needs[i], true
}

func TestBurnIsPlanned(t *testing.T) {
	t.Parallel()
	all := planOf(t, burning(4))
	burn, ok := all["n1/validate.burn"]
	if !ok || !burn.May.Has(plan.Load) || burn.Deadline.Expected != 31*time.Minute || burn.Deadline.Limit <= 35*time.Minute {
		t.Fatalf("%+v", burn)
	}
	for _, c := range []struct {
		step, on plan.StepID
		kind     plan.NeedKind
	}{
		{"n1/validate.burn", "n1/validate.gates", plan.Success}, {"n1/validate.burn", "n1/validate.bandwidth", plan.Success},
		{"all/validate.pair", "n2/validate.burn", plan.Settled}, {"n1/validate.accept", "n1/validate.burn", plan.Success},
		{"worker/validate.heat", "n3/validate.burn", plan.Settled}, {"n4/validate.accept", "worker/validate.heat", plan.Settled},
		{"all/validate.pair", "worker/validate.heat", plan.Settled},
	} {
		if n, ok := needs(all[c.step], c.on); !ok || n.On != c.kind {
			t.Errorf("%s needs %s: %+v, %v", c.step, c.on, n, ok)
		}
	}
	if n, _ := needs(burn, "n1/drivers.r580"); !n.Triggers {
		t.Error("another driver is not burnt in")
	}
	if _, ok := planOf(t, burning(3))["worker/validate.heat"]; ok {
		t.Error("three nodes have no median")
	}
}

func TestBurnDiagnostics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want, says string
		spoil            func(*inventory.Inventory)
	}{
		{"nothing brings DCGM", "Nothing loads the GPUs", "datacenter-gpu-manager-4", func(i *inventory.Inventory) { i.Nodes[1].Image.Kind = "debian" }},
		{"too long", "Burn-in is too short or too long", "48h", func(i *inventory.Inventory) { i.Nodes[0].Validation.BurnIn = unit.Duration(48 * time.Hour) }},
		{"one without GPUs", "Nodes stay unburnt", "n4 has none", func(i *inventory.Inventory) { i.Nodes[3].Hardware = &inventory.Hardware{Name: "cpu"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := burning(4)
			inv.Nodes[0].Validation.Pair, inv.Nodes[0].Validation.AllReduce = nil, nil
			c.spoil(inv)
			_, diags := validate.New(inv, nil).Plan(onnodetest.NewRun())
			if len(diags) != 1 || diags[0].Summary != c.want || !strings.Contains(diags[0].Detail, c.says) {
				t.Errorf("%v", diags)
			}
		})
	}
}

// burnt answers as a node whose agent burns it in.
func burnt(r wire.BurnResult) *onnodetest.Nodes {
	answer, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return &onnodetest.Nodes{Rules: []onnodetest.Rule{
		onnodetest.On(onnode.AgentPath+" burn", "\n\n"+string(answer), 0), // with the bytes that keep it going
		onnodetest.On(onnode.AgentPath+" health", `{"pci":[]}`, 0),
		onnodetest.On("sh -c cd", "", 0),
	}}
}

// good is what the agent brings back of two healthy GPUs.
func good() wire.BurnResult {
	r := wire.BurnResult{Seconds: 1812, Looks: 362, Output: `{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "diagnostic", "results": [{"entity_group": "GPU", "entity_id": 0, "status": "Pass"}]}]}]}}`}
	for i := range 2 {
		r.GPUs = append(r.GPUs, wire.BurnGPU{Address: fmt.Sprintf("0000:1%d:00.0", i), Core: wire.Span{Least: 31, Most: 66, Mean: 64, Count: 362}, Left: wire.Span{Least: 19, Most: 54, Mean: 21, Count: 362}})
	}
	return r
}

func apply(t *testing.T, inv *inventory.Inventory, nodes onnode.Nodes, run *onnodetest.Run, id plan.StepID) error {
	t.Helper()
	return validate.New(inv, nodes).Apply(context.Background(), run, planOf(t, inv)[id])
}

func TestBurn(t *testing.T) {
	t.Parallel()
	inv := burning(4)
	me := subject.OfNode("n2")
	nodes, run := burnt(good()), onnodetest.NewRun(me)
	if err := apply(t, inv, nodes, run, "n2/validate.burn"); err != nil {
		t.Fatal(err)
	}
	asked := nodes.Calls(onnode.AgentPath + " burn")
	var p wire.BurnParams
	if len(asked) != 1 || json.Unmarshal(asked[0].Stdin, &p) != nil || p.Vendor != "nvidia" || p.Every != 5 || p.Limit != 2100 || !slices.Contains(p.Program, "dcgmi") {
		t.Errorf("%d calls, %+v", len(asked), p)
	}
	f, ok := run.Fact(burn.Fact.Of(me))
	r, err := burn.Fact.Get(f)
	if !ok || err != nil || r.Looks != 362 || len(r.GPUs) != 2 || len(r.Evidence) != 1 {
		t.Errorf("%+v, %v", r, err)
	}

	hot := good()
	hot.GPUs[1].Held = map[string]int{"hw_power_brake_slowdown": 4}
	run = onnodetest.NewRun(me)
	if err := apply(t, inv, burnt(hot), run, "n2/validate.burn"); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(run.Findings, func(f stage.Finding) bool { return strings.Contains(f.Cause, "power brake") })
	if i < 0 || run.Findings[i].Suspects[0].Subject != me || run.Findings[i].Suspects[0].Part != "GPU at 0000:11:00.0" {
		t.Errorf("%+v", run.Findings)
	}

	absent := wire.BurnResult{Exit: 127}
	if err := apply(t, inv, burnt(absent), onnodetest.NewRun(me), "n2/validate.burn"); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("without dcgmi: %v", err)
	}
	busy := wire.BurnResult{Error: &wire.TaskError{Kind: "refused", Text: "another burn-in runs on this node", Action: "End it."}}
	nodes = burnt(busy)
	nodes.Rules[0] = onnodetest.On(onnode.AgentPath+" burn", `{"error":{"kind":"refused","text":"another burn-in runs on this node","action":"End it."}}`, 1)
	if err := apply(t, inv, nodes, onnodetest.NewRun(me), "n2/validate.burn"); errkind.Of(err) != errkind.Refused || errkind.Action(err) != "End it." {
		t.Errorf("while another runs: %v", err)
	}
}

func TestHeat(t *testing.T) {
	t.Parallel()
	inv := burning(5)
	var members []subject.ID
	for _, n := range inv.Nodes {
		members = append(members, subject.OfNode(n.Name))
	}
	run := onnodetest.NewRun(members...)
	for i, m := range members {
		r := burn.Report{GPUs: good().GPUs, Names: map[string]string{"0000:11:00.0": "GPU 1 at 0000:11:00.0"}}
		if i == 2 {
			r.GPUs[1].Core.Most = 79
		}
		f, err := burn.Fact.New(m, r, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Learn(context.Background(), f); err != nil {
			t.Fatal(err)
		}
	}
	if err := apply(t, inv, nil, run, "worker/validate.heat"); err != nil {
		t.Fatal(err)
	}
	if len(run.Findings) != 1 || run.Findings[0].Suspects[0].Subject.Name != "n3" || run.Findings[0].Suspects[0].Part != "GPU 1 at 0000:11:00.0" || !strings.Contains(run.Findings[0].Cause, "13 more than the median of its slot") {
		t.Errorf("%+v", run.Findings)
	}
	f, _ := run.Fact(burn.HeatFact.Of(result.OfGroup("worker")))
	if r, err := burn.HeatFact.Get(f); err != nil || r.Nodes != 5 || len(r.Slots) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}
