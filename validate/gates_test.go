// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/gate"
)

// withGPUs gives the first nodes of a site a GPU and its driver.
func withGPUs(inv *inventory.Inventory, nodes int) {
	hw := *inv.Nodes[0].Hardware
	hw.GPUs = []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 1}}
	for _, n := range inv.Nodes[:nodes] {
		n.Hardware = &hw
		n.Drivers = []*inventory.Driver{{Block: inventory.Block{Kind: "cuda", Name: "r580"}}}
	}
}

// TestGatesInThePlan: a node whose GPU driver is installed has gates, after the
// driver, and is neither tested nor accepted before.
func TestGatesInThePlan(t *testing.T) {
	t.Parallel()
	inv := site(3, 1)
	withGPUs(inv, 2)
	all := steps(t, inv)
	if _, has := all["n3/validate.gates"]; has {
		t.Error("a node without GPUs has gates")
	}
	gates := all["n1/validate.gates"]
	if !slices.Contains(gates.Needs, plan.Need{Step: "n1/drivers.r580", On: plan.Success, Triggers: true}) || gates.May != plan.Effects() {
		t.Errorf("%+v", gates)
	}
	if !slices.Contains(all["all/validate.pair"].Needs, plan.Need{Step: "n1/validate.gates", On: plan.Settled}) {
		t.Error("the pair test does not wait for the gates")
	}
	if !slices.Contains(all["n1/validate.accept"].Needs, plan.Need{Step: "n1/validate.gates", On: plan.Success}) {
		t.Error("a node is accepted without its gates")
	}
}

// TestGatesBlameAPart: the node has one GPU, whose link is narrow.
func TestGatesBlameAPart(t *testing.T) {
	t.Parallel()
	inv := site(2, 1)
	withGPUs(inv, 1)
	nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		if strings.HasSuffix(c.Line(), "health") {
			return onnode.Output{Stdout: []byte(`{"pci":[{"address":"0000:19:00.0","class":"030200","vendor":"10de","device":"2330","width":8,"max_width":16}]}`)}, nil, true
		}
		return onnode.Output{Exit: 127}, nil, true
	}}}
	run := newRun(t, inv)
	if err := validate.New(inv, nodes).Apply(t.Context(), run, steps(t, inv)["n1/validate.gates"]); err != nil {
		t.Fatal(err)
	}
	if len(run.Findings) != 1 {
		t.Fatalf("findings %+v", run.Findings)
	}
	f := run.Findings[0]
	if f.Suspects[0].Subject != subject.OfNode("n1") || f.Suspects[0].Part != "GPU at 0000:19:00.0" || !strings.Contains(f.Cause, "8 of 16 lanes") || f.Action == "" {
		t.Errorf("%+v", f)
	}
	fa, ok := run.Fact(gate.Fact.Of(subject.OfNode("n1")))
	if !ok {
		t.Fatal("nothing was learned")
	}
	r, err := gate.Fact.Get(fa)
	if err != nil || len(r.Faults) != 1 || len(r.Notes) != 4 {
		t.Errorf("%v, %+v", err, r)
	}
}
