// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/gate"
)

// TestUnknownGateIsNotAllowed: a name that no gate has is refused, where it stands.
func TestUnknownGateIsNotAllowed(t *testing.T) {
	t.Parallel()
	inv := site(2, 1)
	inv.Nodes[0].Validation.Allowed = []inventory.AllowedGate{{Gate: "iomu", Reason: "why not", Decl: hcl.Range{Start: hcl.Pos{Line: 60}}}}
	_, diags := validate.New(inv, nil).Plan(onnodetest.NewRun())
	if len(diags) != 1 || diags[0].Subject.Start.Line != 60 || !strings.Contains(diags[0].Detail, `Did you mean "iommu"?`) {
		t.Errorf("got %v", diags)
	}
}

// TestAllowedGate: a clock that is off is a fault of the node, and a note where the
// site allows it.
func TestAllowedGate(t *testing.T) {
	t.Parallel()
	nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		switch {
		case strings.HasSuffix(c.Line(), "health"):
			return onnode.Output{Stdout: []byte(`{"pci":[{"address":"0000:19:00.0","class":"030200","vendor":"10de","device":"2330"}]}`)}, nil, true
		case strings.HasPrefix(c.Line(), "chronyc"):
			return onnode.Output{Stdout: []byte("C0A80101,192.168.1.1,3,1763712000.1,3.5,0.1,0.1,-12.345,0.001,0.020,0.0003,0.0001,64.5,Normal\n")}, nil, true
		case strings.HasSuffix(c.Line(), "baseline"):
			return onnode.Output{Stdout: []byte(`{}`)}, nil, true
		}
		return onnode.Output{Exit: 127}, nil, true
	}}}
	for _, allowed := range [][]inventory.AllowedGate{nil, {{Gate: "clock", Reason: "GPS comes later"}}} {
		inv := site(2, 1)
		withGPUs(inv, 1)
		inv.Nodes[0].Validation.Allowed = allowed
		run := newRun(t, inv)
		st := steps(t, inv)["n1/validate.gates"]
		if err := validate.New(inv, nodes).Apply(t.Context(), run, st); err != nil {
			t.Fatal(err)
		}
		fa, _ := run.Fact(gate.Fact.Of(subject.OfNode("n1")))
		r, err := gate.Fact.Get(fa)
		noted := slices.ContainsFunc(r.Notes, func(s string) bool { return strings.Contains(s, "GPS comes later") })
		declared := len(st.Inputs) == 2 && st.Inputs[1].Value == "clock"
		if err != nil || noted != (allowed != nil) || declared != noted || (len(run.Findings) == 0) != noted {
			t.Errorf("allowed %v: %v, findings %+v, notes %q, inputs %+v", allowed, err, run.Findings, r.Notes, st.Inputs)
		}
		if len(run.Findings) > 0 && (run.Findings[0].Suspects[0].Part != "clock" || !strings.Contains(run.Findings[0].Cause, "off by 3.500 s")) {
			t.Errorf("%+v", run.Findings[0])
		}
	}
}
