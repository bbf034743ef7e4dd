// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
	"github.com/ironrail/ironrail/validate/result"
)

// The stage's all-reduce of GPUs over virtual nodes: healthy ones pass in every
// scope, and a bad rail of one is found by its pairs.
func TestAllReduceOfGPUs(t *testing.T) {
	t.Parallel()
	bad := model.PortID{Node: "n3", NIC: "rail", Index: 1}
	for _, c := range []struct {
		name, engine string
		fault        func(*model.Model) error
		found        string // "" for none
	}{
		{"healthy NVIDIA", "nccl", nil, ""},
		{"healthy AMD", "rccl", nil, ""},
		{"one lane", "nccl", func(m *model.Model) error { return m.SetLanes(bad, 1) }, "n3 rail 1: the all-reduce of GPUs over n3, n4 is bad: bus bandwidth"},
		{"no light", "nccl", func(m *model.Model) error { return m.SetDown(bad, true) }, "n3 rail 1: the all-reduce of GPUs over n3, n4 is bad"},
		{"errors", "rccl", func(m *model.Model) error { return m.SetErrors(bad, 3e-8) }, "n3 rail 1: the all-reduce of GPUs over n3, n4 is bad: bus bandwidth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				inv := systemtest.NewSite(6, 4, 400e9)
				h := inv.Nodes[0].Hardware
				inv.Nodes[0].Image.Packages = append(slices.Clone(systemtest.Packages), "ironrail-"+c.engine+"-tests")
				if c.engine == "rccl" {
					h.GPUs = []inventory.GPU{{Vendor: "amd", Model: "MI300X", Count: 2}}
				}
				v := &inventory.Validation{Name: "v", AllReduce: &inventory.CollectiveTest{Engine: c.engine, Scope: []string{"node", "pair", "all"}, Sizes: []unit.Bytes{8 << 30}}}
				for _, n := range inv.Nodes {
					n.Validation = v
				}
				r := systemtest.New(t, inv)
				defer r.Stop()
				r.Wait()
				for _, n := range inv.Nodes {
					if c.engine == "rccl" {
						break // its driver is the kernel's own
					}
					if out, exit := r.Sh(n.Name, `d=/usr/lib/modules/$(uname -r)/updates; mkdir -p $d; echo "version: 580.82.07" > $d/nvidia.ko; modprobe -r nouveau; modprobe nvidia`); exit != 0 {
						t.Fatal(out)
					}
				}
				rec := rails(t, r)
				if c.fault != nil {
					must(t, c.fault(r.Model))
				}
				if err := judge(t, r, rec, "all/validate.all_reduce"); err != nil {
					t.Fatal(err)
				}
				causes := rec.causes()
				if c.found == "" && causes != "" || !strings.HasPrefix(causes, c.found) || strings.Count(causes, "\n") > 1 {
					t.Errorf("found %q, want %q\n%q", causes, c.found, rec.Evidence)
				}
				f, ok := rec.Fact(result.AllReduceReport.Of(result.OfGroup("all")))
				if !ok {
					t.Fatal("no report")
				}
				rep, err := result.AllReduceReport.Get(f)
				if err != nil {
					t.Fatal(err)
				}
				for _, res := range rep.Results {
					if c.fault == nil && (res.Verdict != result.Pass || res.Check == result.AllReduceBandwidth && res.Measured < 80e9) {
						t.Errorf("%+v", res)
					}
				}
				if out, _ := r.Sh("n2", "ls -a /root/.ssh /run/ironrail"); strings.Contains(out, "keys2") || strings.Contains(out, "allreduce-") {
					t.Errorf("left behind: %q", out)
				}
			})
		})
	}
}
