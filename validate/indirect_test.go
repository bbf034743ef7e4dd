// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/accept"
	"github.com/ironrail/ironrail/validate/gate"
)

// TestGPUDirectIsNotUsed: the library's log of one node knows no GDRDMA. That node
// is named, for its cause and not for its bandwidth, where its GPUs have rails near
// them and the site does not allow it.
func TestGPUDirectIsNotUsed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, scope string
		near        bool
		allow       string
		suspects    string
		accepted    string
	}{
		{"pair", "pair", true, "", "n3 GPUDirect RDMA", "n1 n2 n4"},
		{"all", "all", true, "", "n3 GPUDirect RDMA", "n1 n2 n4"},
		{"no rail is near", "pair", false, "", "", "n1 n2 n3 n4"},
		{"allowed", "pair", true, "gpudirect", "", "n1 n2 n3 n4"},
		{"another gate is allowed", "pair", true, "acs", "n3 GPUDirect RDMA", "n1 n2 n4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := gpuSite(4, c.scope)
			if c.allow != "" {
				inv.Nodes[0].Validation.Allowed = []inventory.AllowedGate{{Gate: c.allow, Reason: "why"}}
			}
			w := gpuWorld(inv, nil)
			w.Rules = append([]onnodetest.Rule{func(_ context.Context, call onnodetest.Call) (onnode.Output, error, bool) {
				if !slices.Contains(call.Argv, "mpirun") {
					return onnode.Output{}, nil, false
				}
				var nodes []string
				log := ""
				for _, h := range w.hosts(call) {
					n := w.byAddress(h)
					nodes = append(nodes, n)
					way := "NET/IB/0/GDRDMA"
					if n == "n3" {
						way = "NET/IB/0"
					}
					log += fmt.Sprintf("%[1]s:11:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via %[2]s\n%[1]s:11:11 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via %[2]s\n", n, way)
				}
				return onnode.Output{Stdout: []byte(table(nodes, 388) + log)}, nil, true
			}}, w.Rules...)
			run := newRun(t, inv)
			for _, n := range inv.Nodes {
				f, err := gate.Fact.New(subject.OfNode(n.Name), gate.Report{Near: c.near}, "")
				if err == nil {
					err = run.Learn(t.Context(), f)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			s, all := validate.New(inv, w), steps(t, inv)
			if err := s.Apply(t.Context(), run, all["all/validate.all_reduce"]); err != nil {
				t.Fatal(err)
			}
			if got := suspects(run.Findings); got != c.suspects {
				t.Errorf("suspects %q, want %q", got, c.suspects)
			}
			if c.suspects != "" && (!strings.Contains(run.Findings[0].Cause, "GPUDirect RDMA is not used on n3") || !strings.Contains(strings.Join(run.Findings[0].Evidence, " "), "2 connections of n3 via NET/IB, none via GDRDMA")) {
				t.Errorf("%+v", run.Findings[0])
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
		})
	}
}
