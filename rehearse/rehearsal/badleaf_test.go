// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// rehearsed rehearses a site with faults of the command line, all of which are found.
func rehearsed(t *testing.T, inv *inventory.Inventory, texts ...string) rehearsal.Summary {
	t.Helper()
	return rehearsedWith(t, inv, rehearsal.Options{Seed: 7, Faults: planted(t, texts...)})
}

func rehearsedWith(t *testing.T, inv *inventory.Inventory, o rehearsal.Options) rehearsal.Summary {
	t.Helper()
	sum, err := rehearsal.Run(context.Background(), inv, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range sum.Faults {
		if !p.Found {
			t.Errorf("%s was not found", p.Kind)
		}
	}
	return sum
}

// leafFound wants one finding about no node: the uplinks of a leaf.
func leafFound(t *testing.T, sum rehearsal.Summary, leaf string, accepted int) {
	t.Helper()
	if len(sum.Accepted) != accepted || len(sum.Waiting) != 0 || len(sum.Findings) != 1 {
		t.Fatalf("%d accepted, waiting %+v, quarantined %+v, findings %+v", len(sum.Accepted), sum.Waiting, sum.Quarantined, sum.Findings)
	}
	if g := sum.Findings[0]; g.Part != leaf+" uplinks" || !strings.Contains(g.Cause, leaf) || !strings.Contains(g.Cause, "slow") || len(g.Evidence) < 3 || g.Action == "" {
		t.Errorf("%+v", g)
	}
}

// TestBadLeaf: a leaf that passes too little beyond itself is named by the pair test,
// and by the search after an all-reduce; no node is taken out.
func TestBadLeaf(t *testing.T) {
	t.Parallel()
	t.Run("pair", func(t *testing.T) {
		t.Parallel()
		slow(t)
		sum := rehearsed(t, load(t, "../../examples/csv-12500", nil), "kind=bad-leaf,switch=r0002/leaf-1")
		leafFound(t, sum, "r0002/leaf-1", 24)
	})
	t.Run("all-reduce", func(t *testing.T) {
		t.Parallel()
		slow(t)
		w := &witnessed{t: t, switches: []string{"leaf-7", "leaf-6"}, coarse: true}
		sum := rehearsedWith(t, fourRacks(t), w.asked(rehearsal.Options{Seed: 7, Faults: planted(t, "kind=bad-leaf,switch=net/leaf-7")}, nil))
		w.golden("bad-leaf-switch")
		leafFound(t, sum, "net/leaf-7", 16)
		if rail := sum.Findings[0].Evidence[1]; !strings.Contains(rail, "rail 2 33") {
			t.Errorf("rails: %q", rail)
		}
	})
	t.Run("nothing crosses it", func(t *testing.T) {
		t.Parallel()
		o := rehearsal.Options{Faults: []fault.Fault{{Kind: fault.BadLeaf, Leaf: "net/leaf-1"}}}
		if _, err := rehearsal.Run(context.Background(), load(t, "../../examples/mi300x-roce", nil), o); err == nil || !strings.Contains(err.Error(), "nothing crosses it") {
			t.Error(err)
		}
	})
}

// TestFaultsThatCannotBe: a fault that no part of the site can have is refused before
// anything is rehearsed.
func TestFaultsThatCannotBe(t *testing.T) {
	t.Parallel()
	f, err := fault.Parse("kind=rail-config,node=r01-u09")
	if err != nil {
		t.Fatal(err)
	}
	_, err = rehearsal.Run(context.Background(), load(t, "../../examples/hgx-h100", nil), rehearsal.Options{Faults: []fault.Fault{f}})
	if err == nil || !strings.Contains(err.Error(), "r01-u09/rail/0 is on no RoCE fabric") {
		t.Error(err)
	}
}

// TestNVL72: a fault of a leaf and one of a tray in one site: the NVLink domain of the
// tray goes on without it. `make nightly` has all 72 trays.
func TestNVL72(t *testing.T) {
	t.Parallel()
	slow(t)
	inv, tray := fourRacks(t), "r03-u10"
	if *wholeSites {
		inv, tray = load(t, "../../examples/nvl72", nil), "r03-u12"
	}
	sum := rehearsed(t, inv, "kind=bad-leaf,switch=net/leaf-4", "kind=imex-config,node="+tray)
	leafFound(t, sum, "net/leaf-4", len(inv.Nodes)-1)
	if len(sum.Quarantined) != 1 || sum.Quarantined[0].Node != tray || sum.Quarantined[0].Part != "IMEX" || slices.Contains(sum.Accepted, tray) {
		t.Errorf("quarantined %+v", sum.Quarantined)
	}
}
