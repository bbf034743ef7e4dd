// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/target"
)

// TestGPUDirect: of four nodes with the closed driver one has no nvidia_peermem.
// Its gates say so before anything is measured, and the log of the all-reduce says
// it again; with the open driver it needs none.
func TestGPUDirect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, license, found string }{
		{"closed", "NVIDIA", "n3"}, {"open", "Dual MIT/GPL", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				inv := systemtest.NewSite(4, 2, 400e9)
				inv.Nodes[0].Image.Packages = append(slices.Clone(systemtest.Packages), "ironrail-nccl-tests")
				v := &inventory.Validation{Name: "v", AllReduce: &inventory.CollectiveTest{Engine: "nccl", Scope: []string{"pair"}, Sizes: []unit.Bytes{8 << 30}}}
				for _, n := range inv.Nodes {
					n.Validation, n.Drivers = v, []*inventory.Driver{{Block: inventory.Block{Kind: "cuda", Name: "r580"}}}
				}
				r := systemtest.New(t, inv)
				defer r.Stop()
				r.Wait()
				for _, n := range inv.Nodes {
					script := `d=/usr/lib/modules/$(uname -r)/updates; mkdir -p $d; printf 'version: 580.82.07\nlicense: ` + c.license + `\n' | tee $d/nvidia.ko > $d/nvidia-peermem.ko; modprobe -r nouveau; modprobe nvidia`
					if n.Name != "n3" && c.found != "" {
						script += "; modprobe nvidia_peermem"
					}
					if out, exit := r.Sh(n.Name, script); exit != 0 {
						t.Fatal(out)
					}
				}
				rec := rails(t, r)
				for _, n := range inv.Nodes {
					must(t, judge(t, r, rec, target.StepID(n.Name, "gates")))
					f, _ := rec.Fact(gate.Fact.Of(subject.OfNode(n.Name)))
					g, err := gate.Fact.Get(f)
					if err != nil || !g.Near {
						t.Errorf("%s: %v, no rail is near: %+v", n.Name, err, g)
					}
				}
				if got, want := rec.causes(), "n3 GPUDirect RDMA: GPUDirect RDMA: no NIC can reach the memory of GPUs: nvidia_peermem is not loaded"; c.found == "" && got != "" || c.found != "" && (!strings.HasPrefix(got, want) || strings.Count(got, "\n") > 1) {
					t.Errorf("the gates found %q", got)
				}
				before := rec.causes()
				must(t, judge(t, r, rec, "all/validate.all_reduce"))
				got := strings.TrimPrefix(rec.causes(), before)
				if want := "n3 GPUDirect RDMA: GPUDirect RDMA is not used on n3"; c.found == "" && got != "" || c.found != "" && (!strings.Contains(got, want) || strings.Count(got, "\n") > 1) {
					t.Errorf("the all-reduce found %q", got)
				}
			})
		})
	}
}
