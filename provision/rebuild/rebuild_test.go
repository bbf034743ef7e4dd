// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/overrides"
	"github.com/ironrail/ironrail/provision/reach"
)

// TestNewChassisForgetsTheOld: how the old chassis was when it was accepted is
// forgotten with it, and nothing is forgotten when the chassis stays.
func TestNewChassisForgetsTheOld(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := state.NewMemory()
	fence, err := store.Claim(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	var b state.Batch
	old := drift.Forget("n1")
	for _, p := range old {
		p.Value = []byte(`{}`)
		b.Puts = append(b.Puts, p)
	}
	if _, err := store.Append(ctx, fence, b); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		with *overrides.Replacement
		gone bool
	}{
		{"same chassis", nil, false},
		{"another chassis", &overrides.Replacement{Node: "n1", Chassis: overrides.Chassis{Serial: "NEW"}, At: time.Unix(1, 0)}, true},
		{"another node's chassis", &overrides.Replacement{Node: "n2", Chassis: overrides.Chassis{Serial: "NEW"}, At: time.Unix(1, 0)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b state.Batch
			if err := (&Request{replacement: c.with}).recordChassis(ctx, store, &b); err != nil {
				t.Fatal(err)
			}
			for _, o := range old {
				if got := slices.ContainsFunc(b.Puts, func(p state.Put) bool { return p.Key == o.Key && p.Value == nil }); got != c.gone {
					t.Errorf("%s is forgotten: %v", o.Key, got)
				}
			}
		})
	}
}

// The boot NIC is chosen only where nothing else can be it.
func TestBootPort(t *testing.T) {
	t.Parallel()
	h := &inventory.Hardware{NICs: []inventory.NIC{{Name: "mgmt", Boot: true, Speed: unit.BitRate(25e9), Ports: []inventory.NICPort{{}}}}}
	port := func(last byte, mbps int) bmc.NIC {
		return bmc.NIC{ID: "p", MAC: addr.MAC{2, 0, 0, 0, 0, last}, Mbps: mbps}
	}
	for name, c := range map[string]struct {
		ports []bmc.NIC
		want  byte // 0: none
	}{
		"none":                     {nil, 0},
		"the only one":             {[]bmc.NIC{port(1, 0)}, 1},
		"the only one that fast":   {[]bmc.NIC{port(1, 400000), port(2, 25000), port(3, 400000)}, 2},
		"two of that speed":        {[]bmc.NIC{port(1, 25000), port(2, 25000)}, 0},
		"one that does not report": {[]bmc.NIC{port(1, 25000), port(2, 0)}, 0},
		"none of that speed":       {[]bmc.NIC{port(1, 1000), port(2, 400000)}, 0},
		"speeds of a node off: 0":  {[]bmc.NIC{port(1, 0), port(2, 0)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := bootPort(h, c.ports)
			if ok != (c.want != 0) || got.MAC[5] != c.want {
				t.Errorf("%v, %v", got, ok)
			}
		})
	}
}

// TestDiskOfSystemInMemory: no disk is named for a node that is installed on none.
func TestDiskOfSystemInMemory(t *testing.T) {
	t.Parallel()
	inv := &inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1", Image: &inventory.Image{Block: inventory.Block{Kind: inventory.KindDiskless}}}}}
	o := &Request{Nodes: []string{"n1"}, Disk: "S1"}
	if _, err := Prepare(context.Background(), state.Empty{}, reach.Access{}, &overrides.Desired{Inv: inv}, o); errkind.Of(err) != errkind.Refused {
		t.Error(err)
	}
	if o.Disk = ""; o.check(context.Background(), state.Empty{}, inv) != nil {
		t.Error("refused without a disk")
	}
}
