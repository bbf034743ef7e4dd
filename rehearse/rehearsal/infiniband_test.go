// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestInfiniBand: a site's InfiniBand fabric comes up under its subnet manager, and
// what is wrong with its cables is found by the sweep before anything is tested. The
// whole fabric is one of TestExamples.
func TestInfiniBand(t *testing.T) {
	t.Parallel()
	const swapped, narrow = "two cables are exchanged: r01-u09/rail/3 (OSFP 2/2) is in r01/leaf-1/20 instead of r01/leaf-1/12", "r01-u17/rail/5 (OSFP 3/2) to r01/leaf-1/22 (port 11/2) is too narrow: it runs at 1x NDR"
	tests := []struct {
		name, fault string
		out         []string // nodes that are taken out
		part, cause string
	}{
		{"exchanged", "kind=cable-swap,node=r01-u09,with=r01-u17,port=rail/3", []string{"r01-u09", "r01-u17"}, "rail/3 (OSFP 2/2)", swapped},
		{"narrow", "kind=degraded-link,node=r01-u17,port=rail/5", []string{"r01-u17"}, "rail/5 (OSFP 3/2)", narrow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := fault.Parse(tt.fault)
			if err != nil {
				t.Fatal(err)
			}
			o := rehearsal.Options{Seed: 7, Faults: []fault.Fault{f}}
			// Two of four nodes are enough to be judged.
			sum, err := rehearsal.Run(context.Background(), otherExample(t, "hgx-h100", `quorum      = "75%"`, `quorum      = "50%"`), o)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, q := range sum.Quarantined {
				out = append(out, q.Node)
				if !strings.Contains(q.Part, tt.part) || !strings.Contains(q.Cause, tt.cause) || q.Action == "" {
					t.Errorf("%s: part %q, cause %q", q.Node, q.Part, q.Cause)
				}
			}
			slices.Sort(out)
			if !slices.Equal(out, tt.out) || len(sum.Accepted) != 4-len(tt.out) {
				t.Errorf("quarantined %v, want %v; accepted %v", out, tt.out, sum.Accepted)
			}
			if !sum.Faults[0].Found {
				t.Error("not found")
			}
		})
	}
}

// TestBadUplink: a link between a leaf and a spine with one lane is named by both
// its ends, and takes no node out.
func TestBadUplink(t *testing.T) {
	t.Parallel()
	inv := load(t, "../../examples/h100-su", nil)
	low, high := "", ""
	for _, c := range inv.Cables {
		if c.From.Switch != nil && c.To.Switch != nil {
			low, high = c.From.String(), c.To.String()
		}
	}
	f, err := fault.Parse("kind=bad-uplink,port=" + low)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 7, Faults: []fault.Fault{f}})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Quarantined) != 0 || len(sum.Accepted) != 32 || len(sum.Findings) != 1 || !sum.Faults[0].Found {
		t.Fatalf("quarantined %+v, %d accepted, findings %+v", sum.Quarantined, len(sum.Accepted), sum.Findings)
	}
	if g := sum.Findings[0]; !strings.Contains(g.Cause, "the link of "+low+" to "+high) || !strings.Contains(g.Cause, "too narrow: it runs at 1x NDR") || g.Action == "" {
		t.Errorf("%+v", g)
	}
	f.Port = "leaf-9/1"
	if _, err := rehearsal.Run(context.Background(), load(t, "../../examples/h100-su", nil), rehearsal.Options{Seed: 7, Faults: []fault.Fault{f}}); err == nil || !strings.Contains(err.Error(), "no cable between two switches") {
		t.Errorf("a link that there is not: %v", err)
	}
	f.Kind, f.Port = fault.DeadTrunk, low
	only := load(t, "../../examples/h100-su", nil)
	at := fault.FindTrunk(only, low)
	only.Cables = slices.DeleteFunc(slices.Clone(only.Cables), func(c *inventory.Cable) bool {
		return c != at && c.From.Switch == at.From.Switch && c.To.Switch == at.To.Switch
	})
	if _, err := rehearsal.Run(context.Background(), only, rehearsal.Options{Seed: 7, Faults: []fault.Fault{f}}); err == nil || !strings.Contains(err.Error(), "is the only one between") {
		t.Errorf("the only cable between two switches: %v", err)
	}
}

// TestStandby: a second controller that stands by for the subnet manager is no second
// place for ironrail: the site is rehearsed, and the standby is seen.
func TestStandby(t *testing.T) {
	t.Parallel()
	inv := otherExample(t, "hgx-h100", `controller "head1" {`, "controller \"head2\" {\n  address = \"10.20.0.9\"\n}\n\ncontroller \"head1\" {",
		"run_on = [controller.head1]", "run_on = [controller.head1, controller.head2]")
	var loaded infiniband.Loaded
	sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 7, OnEnd: func(_ *virtual.World, s state.Reader) {
		prior, err := state.ReadPrior(context.Background(), s)
		if err != nil {
			t.Error(err)
			return
		}
		f, _ := prior.Fact(infiniband.LoadedFact.Of(subject.ID{Kind: subject.Fabric, Name: "compute"}))
		if loaded, err = infiniband.LoadedFact.Get(f); err != nil {
			t.Error(err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Accepted) != 4 || len(sum.Findings) > 0 || loaded.Standbys != 1 || loaded.Strange != 0 {
		t.Errorf("accepted %v, findings %+v, %+v", sum.Accepted, sum.Findings, loaded)
	}
}

// TestSubnetManagerLost: a subnet manager that ends, and a switch whose own becomes the master, between the tests of a fabric
// and the acceptance of its nodes keep these out, and nobody is to blame but the manager; once nodes
// serve, drift names it and no node.
func TestSubnetManagerLost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ fault, cause string }{
		{"kind=sm-dead", "no subnet manager answers: sminfo ended with status 255"},
		{"kind=other-sm,switch=r01/leaf-1", "the master is switch r01/leaf-1 (port GUID 0x"},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			sum := rehearsed(t, load(t, "../../examples/hgx-h100", nil), tt.fault)
			if len(sum.Accepted) != 0 || len(sum.Quarantined) != 0 || len(sum.Waiting) != 4 || len(sum.Findings) != 1 || len(sum.Unexpected) != 0 || !sum.AsExpected() {
				t.Fatalf("accepted %v, quarantined %+v, waiting %+v, findings %+v, unexpected %+v", sum.Accepted, sum.Quarantined, sum.Waiting, sum.Findings, sum.Unexpected)
			}
			if g := sum.Findings[0]; g.Part != "compute subnet manager" || !strings.Contains(g.Cause, tt.cause) || !strings.Contains(g.Action, "opensm runs on head1") || len(g.Evidence) == 0 {
				t.Errorf("%+v", g)
			}
		})
		t.Run(tt.fault+" in service", func(t *testing.T) {
			t.Parallel()
			sum := rehearsed(t, load(t, "../../examples/hgx-h100", nil), tt.fault+",at=accepted")
			if len(sum.Accepted) != 4 || !sum.AsExpected() || len(sum.Drift) == 0 {
				t.Fatalf("accepted %v, unexpected %+v, drift %+v", sum.Accepted, sum.Unexpected, sum.Drift)
			}
			for _, d := range sum.Drift {
				if d.Node != "compute" || d.Kind != "settings" || !strings.Contains(d.Cause, tt.cause) {
					t.Errorf("%+v", d)
				}
			}
		})
	}
	t.Run("a standby takes over", func(t *testing.T) {
		t.Parallel()
		inv := otherExample(t, "hgx-h100", `controller "head1" {`, "controller \"head2\" {\n  address = \"10.20.0.9\"\n}\n\ncontroller \"head1\" {",
			"run_on = [controller.head1]", "run_on = [controller.head1, controller.head2]")
		sum := rehearsed(t, inv, "kind=sm-dead")
		if len(sum.Accepted) != 4 || len(sum.Findings) != 1 || !strings.Contains(sum.Findings[0].Cause, "head1 does not answer, and that of head2 has taken over") {
			t.Errorf("accepted %v, waiting %+v, findings %+v", sum.Accepted, sum.Waiting, sum.Findings)
		}
	})
}
