// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/gaps"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// whole is a site with parts that cannot be planned yet.
const whole = "testdata/whole"

// leftOutOfWhole is what a rehearsal leaves out of it: name, kind, why, nodes.
var leftOutOfWhole = []gaps.LeftOut{
	{Block: "image", Name: "hpc", Kind: "ubuntu", Why: "a stand-in of kind debian is written instead", Nodes: 2},
	{Block: "disk_layout", Name: "mirror", Why: "one ext4 root on one disk is written instead", Nodes: 2},
	{Block: "fabric", Name: "compute", Kind: "infiniband", Why: "fabric has no subnet manager", Nodes: 2},
	{Block: "validation", Name: "gpu", Why: "without all_reduce", Nodes: 2},
}

// wholeRun is what tests see of one rehearsal of the site whole, without faults.
type wholeRun struct {
	inv     *inventory.Inventory
	before  inventory.Node // gpu-1 as it was
	sum     rehearsal.Summary
	err     error
	leftOut []gaps.LeftOut
	steps   []string
	pods    []string // nodes that the cluster puts pods on
	cluster []string // what the cluster was asked
	tokens  int      // bootstrap tokens that are left
}

var ofWhole = sync.OnceValue(func() *wholeRun {
	inv, diags, _ := provision.Load(whole, inventory.Options{Now: today})
	r := &wholeRun{inv: inv, tokens: -1}
	if diags.HasErrors() {
		r.err = fmt.Errorf("%v", diags)
		return r
	}
	r.before = *inv.Nodes[2]
	r.sum, r.err = rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 3, OnLeftOut: func(l []gaps.LeftOut) { r.leftOut = l },
		OnPlan: func(p *plan.Plan, _ predict.Prediction) {
			for _, s := range p.Steps {
				r.steps = append(r.steps, string(s.ID))
			}
		},
		OnEnd: func(w *virtual.World, _ state.Reader) {
			if c, ok := w.Cluster("10.21.0.3:6443"); ok {
				r.pods, r.cluster, r.tokens = c.Schedulable(), c.Changes(), c.Tokens()
			}
		}})
	return r
})

// TestRehearsesAsFarAsItCan: what cannot be planned yet is left out and listed,
// all else is done, and a plan of the same site is refused as ever.
func TestRehearsesAsFarAsItCan(t *testing.T) {
	t.Parallel()
	refuses(t, load(t, whole, nil))
	r := ofWhole()
	if r.err != nil {
		t.Fatal(r.err)
	}
	inv, before, sum, told, steps := r.inv, r.before, r.sum, r.leftOut, r.steps
	if len(sum.Accepted) != 4 || !sum.AsExpected() {
		t.Errorf("accepted %v, quarantined %+v, findings %+v", sum.Accepted, sum.Quarantined, sum.Findings)
	}
	if !slices.Equal(sum.LeftOut, leftOutOfWhole) {
		t.Errorf("left out\n%+v\nwant\n%+v", sum.LeftOut, leftOutOfWhole)
	}
	if !slices.Equal(told, sum.LeftOut) {
		t.Errorf("told %v", told)
	}
	for _, want := range []string{"gpu-1/install.write", "gpu-1/validate.accept", "cpu-1/drivers.rdma", "cpu-1/fabric.data", "all/validate.pair", "site/handover.batch"} {
		if !slices.Contains(steps, want) && !slices.Contains(steps, strings.Replace(want, "all/", "cpu/", 1)) {
			t.Errorf("%s is not rehearsed; steps %v", want, steps)
		}
	}
	if n := inv.Nodes[2]; len(n.Drivers) != len(before.Drivers) || n.Handover != before.Handover || n.Hardware != before.Hardware {
		t.Error("the site itself lost what was left out")
	}
}

// refuses wants a real plan of a site refused.
func refuses(t *testing.T, inv *inventory.Inventory) {
	t.Helper()
	site, err := provision.Open(inv, provision.Options{Look: true, State: t.TempDir() + "/none"})
	if err != nil {
		t.Fatal(err)
	}
	_, diags, err := site.Plan(context.Background(), state.Empty{}, provision.PlanOptions{})
	if err != nil || !diags.HasErrors() {
		t.Errorf("a plan of it is not refused: %v, %v", diags, err)
	}
}

// TestFaultsBesideWhatIsLeftOut: hardware that no step uses is still looked at.
func TestFaultsBesideWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	f, err := fault.Parse("kind=missing-nic,node=gpu-2,port=rail/1")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := rehearsal.Run(context.Background(), load(t, whole, nil), rehearsal.Options{Seed: 3, Faults: []fault.Fault{f}})
	if err != nil || !sum.AsExpected() || len(sum.Accepted) != 3 {
		t.Errorf("accepted %v, faults %+v, quarantined %+v: %v", sum.Accepted, sum.Faults, sum.Quarantined, err)
	}
}

// TestWholeSitesStayWhole: nothing is copied and nothing left out of a site that
// can be planned.
func TestWholeSitesStayWhole(t *testing.T) {
	t.Parallel()
	inv := load(t, demo, nil)
	if got, left := provision.Plannable(inv); got != inv || len(left) > 0 {
		t.Errorf("left out of the demo: %v", left)
	}
}

// TestFaultsOfWhatIsLeftOut: a fault that only a left-out step would find is not
// found, which is said, and is no success.
func TestFaultsOfWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	f, err := fault.Parse("kind=degraded-link,node=gpu-2,port=rail/1")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := rehearsal.Run(context.Background(), load(t, whole, nil), rehearsal.Options{Seed: 3, Faults: []fault.Fault{f}})
	if err != nil || sum.AsExpected() || len(sum.Faults) != 1 || sum.Faults[0].Why != "fabric compute (kind infiniband) is not rehearsed" {
		t.Errorf("faults %+v: %v", sum.Faults, err)
	}
}

// TestSplitPortsAreLeftOut: a fabric whose node ports are several links each is
// left out, not refused, and no other.
func TestSplitPortsAreLeftOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/mi300x-roce")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "site.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	// Each port is two links of 200 Gb/s, one in each plane, so that no declared
	// switch is of the fabric any more, and none can be logged in to; the drivers are
	// such as can be planned.
	split := strings.NewReplacer("driver \"rocm\" \"rocm7\" {\n  version = \"7.0.2\"\n  amdgpu  = \"30.10.2\"", "driver \"inbox\" \"rocm7\" {\n  packages = [\"rdma-core\"]",
		"  login      = login.sonic\n", "", `addressing = "point-to-point"`, "addressing = \"point-to-point\"\n  planes = 2", `os    = "sonic"`, "os = \"sonic\"\n    split = 2").Replace(string(text))
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(split), 0o600); err != nil {
		t.Fatal(err)
	}
	inv := load(t, dir, nil)
	_, left := provision.Plannable(inv)
	i := slices.IndexFunc(left, func(l gaps.LeftOut) bool { return l.Block == "fabric" })
	if i < 0 || left[i].Name != "compute" || left[i].Why != "split port is not supported" {
		t.Errorf("left out %+v", left)
	}
}
