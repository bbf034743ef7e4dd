// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/validate/result"
)

func line(n int) hcl.Range {
	return hcl.Range{Filename: "site.hcl", Start: hcl.Pos{Line: n, Column: 3}}
}

// block makes a handover with attributes as Load gives them.
func block(kind string, attributes map[string]cty.Value) *inventory.Handover {
	return &inventory.Handover{Block: inventory.Block{Kind: kind, Name: "lab", Value: cty.ObjectVal(attributes), Decl: line(70),
		Ranges: map[string]hcl.Range{"topology": line(73), "partition": line(72)}}}
}

// site has four nodes in two racks, all of which go to h.
func site(h *inventory.Handover) *inventory.Inventory {
	inv := &inventory.Inventory{Site: inventory.Site{Name: "lab"}, Handovers: []*inventory.Handover{h}}
	racks := []*inventory.Rack{{Name: "r01"}, {Name: "r02"}}
	for i, name := range []string{"n1", "n2", "n3", "n4"} {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: name, Address: netip.AddrFrom4([4]byte{10, 77, 0, byte(11 + i)}), Rack: racks[i/2], Handover: h, Serial: "LAB000" + name[1:], Decl: line(80)})
	}
	return inv
}

// statuses says that the listed nodes are in service, and why others are not.
type statuses struct {
	in       map[string]bool
	why      map[string]string
	accepted map[string]time.Time
	changed  map[string]bool
}

func (s *statuses) NodeStatus(_ context.Context, node string) (handover.NodeStatus, error) {
	return handover.NodeStatus{InService: s.in[node], Served: s.in[node] || s.why[node] != "", AcceptedAt: s.accepted[node], Reason: s.why[node]}, nil
}

func (s *statuses) Changed(_ context.Context, since map[string]time.Time) (map[string]bool, error) {
	out := map[string]bool{}
	for n := range since {
		out[n] = s.changed[n]
	}
	return out, nil
}

func accept(t *testing.T, run *onnodetest.Run, node string, at time.Time) {
	t.Helper()
	f, err := result.AcceptedFact.New(subject.OfNode(node), result.Acceptance{At: at}, "")
	if err != nil {
		t.Fatal(err)
	}
	h, err := fact.Name[wire.Hardware]("node.hardware").New(subject.OfNode(node),
		wire.Hardware{CPU: wire.CPU{Sockets: 2, Cores: 8, Threads: 16}, Memory: wire.Memory{Usable: 16 << 30}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Learn(t.Context(), f, h); err != nil {
		t.Fatal(err)
	}
}

func steps(t *testing.T, s *handover.Stage) map[plan.StepID]plan.Step {
	t.Helper()
	list, diags := s.Plan(onnodetest.NewRun())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	out := map[plan.StepID]plan.Step{}
	for _, st := range list {
		out[st.ID] = st
	}
	return out
}
