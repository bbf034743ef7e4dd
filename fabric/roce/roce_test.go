// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

func contains(s, sub string) bool { return strings.Contains(s, sub) }

func line(n int) hcl.Range {
	return hcl.Range{Filename: "site.hcl", Start: hcl.Pos{Line: n, Column: 3}}
}

// site has two nodes with one software rail each, as the lab has.
func site() *inventory.Inventory {
	f := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "rail", Decl: line(10), Ranges: map[string]hcl.Range{"mtu": line(15), "cidr": line(14), "addressing": line(13)}},
		Rails: 1, Topology: "explicit", Addressing: "subnet", CIDR: netip.MustParsePrefix("10.77.16.0/24"), MTU: 1500}
	hw := &inventory.Hardware{Name: "lab", NICs: []inventory.NIC{{Name: "rail", Fabric: f, SoftwareRDMA: "rxe", Ports: []inventory.NICPort{{Rail: 0, PCI: "0000:00:04.0"}}, Decl: line(20)}}}
	inv := &inventory.Inventory{Fabrics: []*inventory.Fabric{f}}
	for name, a := range map[string]string{"n1": "10.77.0.11", "n2": "10.77.0.12"} {
		n := node(name, a, "10.77.0.0/24")
		n.Hardware, n.Ranges.Address = hw, line(30)
		n.Drivers = []*inventory.Driver{{Block: inventory.Block{Kind: "inbox", Name: "rdma"}}}
		inv.Nodes = append(inv.Nodes, n)
	}
	if inv.Nodes[0].Name != "n1" {
		inv.Nodes[0], inv.Nodes[1] = inv.Nodes[1], inv.Nodes[0]
	}
	return inv
}

func good() wire.RoCEPortState {
	return wire.RoCEPortState{Rail: 0, Netdev: "enp0s4", RDMADevice: "rxe0", GIDIndex: 1, GID: "::ffff:10.77.16.11", GIDType: "RoCE v2",
		State: "ACTIVE", MTU: 1500, ActiveMTU: 1024, Address: "10.77.16.11/24"}
}

func answer(p ...wire.RoCEPortState) string {
	b, err := json.Marshal(wire.RoCEResult{Conforms: true, Ports: p})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func newStage(inv *inventory.Inventory, nodes onnode.Nodes) *fabric.Stage {
	return fabric.New(inv, map[string]fabric.Kind{Name: New(nodes)})
}

func TestPlanDependsOnTheMTU(t *testing.T) {
	t.Parallel()
	inv := site()
	before, diags := newStage(inv, nil).Plan(onnodetest.NewRun())
	if diags.HasErrors() || len(before) != 2 {
		t.Fatal(before, diags)
	}
	if got := before[0].Inputs; len(got) != 2 || got[0] != (plan.Input{Name: "mtu", Value: "1500", Decl: plan.SourceRange{File: "site.hcl", Line: 15, Column: 3}}) ||
		got[1].Value != "0000:00:04.0 10.77.16.11/24 rxe" {
		t.Errorf("inputs %+v", got)
	}
	if n := before[0].Needs; len(n) != 1 || n[0] != (plan.Need{Step: "n1/drivers.rdma", On: plan.Success, Triggers: true}) {
		t.Errorf("needs %+v", n)
	}
	prior := plan.Prior{Steps: map[plan.StepID]plan.LastSuccess{}}
	for _, s := range before {
		prior.Steps[s.ID] = plan.LastSuccess{Version: s.Version, Inputs: s.Inputs}
	}
	inv.Fabrics[0].MTU = 1400
	after, _ := newStage(inv, nil).Plan(onnodetest.NewRun())
	drivers := []plan.Step{{ID: "n1/drivers.rdma", Subject: subject.OfNode("n1")}, {ID: "n2/drivers.rdma", Subject: subject.OfNode("n2")}}
	prior.Steps["n1/drivers.rdma"], prior.Steps["n2/drivers.rdma"] = plan.LastSuccess{}, plan.LastSuccess{}
	p, err := plan.Diff(append(drivers, after...), prior, plan.Options{})
	if err != nil || len(p.Steps) != 2 || p.Steps[0].Why[0] != "mtu 1500 -> 1400 (site.hcl:15)" {
		t.Errorf("%v %+v", err, p.Steps)
	}
}

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  func(*inventory.Inventory)
		want string
		line int
	}{
		{"infiniband", func(i *inventory.Inventory) { i.Fabrics[0].Kind = "infiniband" }, `"infiniband", and 2 nodes have ports on it. The kinds that are supported are: "roce".`, 10},
		{"no addressing", func(i *inventory.Inventory) { i.Fabrics[0].Addressing = "" }, "set addressing", 13},
		{"no cidr", func(i *inventory.Inventory) { i.Fabrics[0].CIDR = netip.Prefix{} }, "set cidr", 10},
		{"cidr too small", func(i *inventory.Inventory) { i.Fabrics[0].CIDR = netip.MustParsePrefix("10.77.16.0/29") }, "Widen the cidr", 30},
		{"rail twice", func(i *inventory.Inventory) {
			p := &i.Nodes[0].Hardware.NICs[0].Ports
			*p = append(*p, inventory.NICPort{Rail: 0, PCI: "0000:00:05.0"})
		}, "two ports on rail 0", 20},
		{"no pci", func(i *inventory.Inventory) { i.Nodes[0].Hardware.NICs[0].Ports[0].PCI = "" }, "PCI address", 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := site()
			c.set(inv)
			steps, diags := newStage(inv, nil).Plan(onnodetest.NewRun())
			if len(steps) != 0 || len(diags) == 0 || !contains(diags[0].Detail, c.want) || diags[0].Subject.Start.Line != c.line {
				t.Errorf("%d steps, %v", len(steps), diags)
			}
		})
	}
}

func TestApplyAndObserve(t *testing.T) {
	t.Parallel()
	nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{onnodetest.On("test -x", "", 0), onnodetest.On(onnode.AgentPath, answer(good()), 0)}}
	s := newStage(site(), nodes)
	steps, _ := s.Plan(onnodetest.NewRun())
	run := onnodetest.NewRun(subject.OfNode("n1"))
	if err := s.Apply(t.Context(), run, steps[0]); err != nil {
		t.Fatal(err)
	}
	call := nodes.Calls("roce apply")
	want := `{"mtu":1500,"ports":[{"rail":0,"pci":"0000:00:04.0","mac":"","address":"10.77.16.11/24","software_rdma":"rxe","table":100}]}`
	if len(call) != 1 || call[0].Node != "n1" || string(call[0].Stdin) != want {
		t.Errorf("agent was told %s", call[0].Stdin)
	}
	check := func(run *onnodetest.Run) {
		t.Helper()
		f, ok := run.Fact(fabric.Ports("rail").Of(subject.OfNode("n1")))
		if !ok {
			t.Fatal("no fact")
		}
		ports, err := fabric.Ports("rail").Get(f)
		if err != nil || len(ports) != 1 || ports[0].Device != "rxe0" || ports[0].GIDIndex != 1 {
			t.Errorf("%+v %v", ports, err)
		}
	}
	check(run)
	again := onnodetest.NewRun(subject.OfNode("n1"))
	if o, err := s.Observe(t.Context(), again, steps[0]); err != nil || o.State != stage.Conforms {
		t.Errorf("%+v %v", o, err)
	}
	check(again)
	if len(nodes.Calls("roce apply")) != 1 {
		t.Error("observing applied")
	}
}

func TestPortsThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		set        func(*wire.RoCEPortState)
	}{
		{"no netdev", "there is no network interface", func(p *wire.RoCEPortState) { p.Netdev = "" }},
		{"no device", "there is no RDMA device on enp0s4", func(p *wire.RoCEPortState) { p.RDMADevice = "" }},
		{"down", "not ACTIVE", func(p *wire.RoCEPortState) { p.State = "DOWN" }},
		{"address", "not 10.77.16.11/24", func(p *wire.RoCEPortState) { p.Address = "10.77.16.99/24" }},
		{"mtu", "has MTU 1400, not 1500", func(p *wire.RoCEPortState) { p.MTU = 1400 }},
		{"v1", "no RoCE v2 GID", func(p *wire.RoCEPortState) { p.GIDType = "IB/RoCE v1" }},
		{"gid of another", "is not that of", func(p *wire.RoCEPortState) { p.GID = "fe80::5054:ff:fe77:1011" }},
		{"the agent's own finding", "routing table 100 is not as it should be", func(p *wire.RoCEPortState) {
			p.Problems = []string{"routing table 100 is not as it should be"}
		}},
		{"no GID", "no RoCE v2 GID", func(p *wire.RoCEPortState) { p.GIDIndex = -1 }},
		{"other rail", "is not reported", func(p *wire.RoCEPortState) { p.Rail = 3 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := good()
			c.set(&p)
			nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{onnodetest.On("test -x", "", 0), onnodetest.On(onnode.AgentPath, answer(p), 0)}}
			s := newStage(site(), nodes)
			steps, _ := s.Plan(onnodetest.NewRun())
			err := s.Apply(t.Context(), onnodetest.NewRun(), steps[0])
			if err == nil || !contains(err.Error(), c.want) || errkind.Of(err) != errkind.Mismatch || errkind.Action(err) == "" {
				t.Errorf("apply: %v", err)
			}
			o, err := s.Observe(t.Context(), onnodetest.NewRun(), steps[0])
			if err != nil || o.State != stage.Differs || !contains(o.Evidence, c.want) {
				t.Errorf("observe: %+v %v", o, err)
			}
		})
	}
}

func TestApplyPassesTheAgentsError(t *testing.T) {
	t.Parallel()
	refusal := `{"conforms":false,"error":{"kind":"unsupported","text":"rail 0: software RDMA \"siw\"","action":"Use \"rxe\", or a NIC with RDMA."}}`
	s := newStage(site(), &onnodetest.Nodes{Rules: []onnodetest.Rule{onnodetest.On(onnode.AgentPath, refusal, 1)}})
	steps, _ := s.Plan(onnodetest.NewRun())
	err := s.Apply(t.Context(), onnodetest.NewRun(), steps[0])
	if errkind.Of(err) != errkind.Unsupported || !contains(err.Error(), `software RDMA "siw"`) || !contains(errkind.Action(err), "rxe") {
		t.Errorf("%v: %s", err, errkind.Action(err))
	}
}

func TestObserveWithoutAnAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	for _, rules := range [][]onnodetest.Rule{
		{onnodetest.On("test -x", "", 1)},
		{onnodetest.On("test -x", "", 0), onnodetest.On(onnode.AgentPath, "", 1)},
		{onnodetest.On("test -x", "", 0), onnodetest.On(onnode.AgentPath, "garbage", 0)},
	} {
		s := newStage(site(), &onnodetest.Nodes{Rules: rules})
		steps, _ := s.Plan(onnodetest.NewRun())
		if o, err := s.Observe(t.Context(), onnodetest.NewRun(), steps[0]); err != nil || o.State != stage.Unknown {
			t.Errorf("%+v %v", o, err)
		}
	}
}

// TestLossless: the lossless block is told to nodes, decides about their step,
// and what they report is compared again here.
func TestLossless(t *testing.T) {
	t.Parallel()
	f := &inventory.Fabric{Block: inventory.Block{Kind: Name, Name: "compute"}, Rails: 1}
	if _, asked := LosslessOf(f); asked {
		t.Error("a fabric without the block has it")
	}
	f.Value = cty.ObjectVal(map[string]cty.Value{"lossless": cty.ObjectVal(map[string]cty.Value{
		"priority": cty.NumberIntVal(4), "dscp": cty.NumberIntVal(34), "cnp_dscp": cty.NullVal(cty.Number), "pfc": cty.NullVal(cty.Bool), "ecn": cty.False,
	})})
	l, asked := LosslessOf(f)
	if want := (Lossless{Priority: 4, DSCP: 34, CNP: 48, PFC: true}); !asked || l != want {
		t.Fatalf("got %+v, want %+v", l, want)
	}
	for dscp, want := range map[int]int{34: 4, 35: 0, 26: 3, 48: 6, 0: 0} {
		if got := l.PriorityOf(dscp); got != want {
			t.Errorf("DSCP %d has priority %d, not %d", dscp, got, want)
		}
	}
	want := l.wire()
	good := wire.RoCESorting{Trust: "dscp", Priorities: map[int]int{34: 4, 48: 6}, Paused: []int{4}, TrafficClass: 138}
	for _, c := range []struct {
		name   string
		change func(*wire.RoCESorting)
		bad    string
	}{
		{"good", func(*wire.RoCESorting) {}, ""},
		{"trust", func(s *wire.RoCESorting) { s.Trust = "pcp" }, "not the DSCP"},
		{"DSCP", func(s *wire.RoCESorting) { s.Priorities = map[int]int{34: 3} }, "DSCP 34 has priority 3"},
		{"CNP", func(s *wire.RoCESorting) { s.Priorities = map[int]int{34: 4, 48: 4} }, "DSCP 48 has priority 4"},
		{"PFC", func(s *wire.RoCESorting) { s.Paused = []int{3} }, "priorities [3], not [4]"},
		{"class", func(s *wire.RoCESorting) { s.TrafficClass = 106 }, "traffic class 106, not 138"},
	} {
		s := good
		c.change(&s)
		if got := compareSorting(want, wire.RoCEPort{}, wire.RoCEPortState{Sorting: &s}); got != "" != (c.bad != "") || !strings.Contains(got, c.bad) {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
	if compareSorting(want, wire.RoCEPort{}, wire.RoCEPortState{}) == "" {
		t.Error("a port that reports nothing conforms")
	}
	if compareSorting(want, wire.RoCEPort{SoftwareRDMA: "rxe"}, wire.RoCEPortState{}) != "" {
		t.Error("soft RDMA is asked to sort")
	}
}
