// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"fmt"
	"testing"

	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/fabric/topology"
	"github.com/ironrail/ironrail/inventory/unit"
)

// TestComputedCables: switches and cables of a topology are in the plant like any
// other, in split ports and over several planes too; the detector understands what
// they say and finds two that are exchanged.
func TestComputedCables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		planes, split int
		link          unit.BitRate
	}{{"whole ports", 1, 1, 800e9}, {"split ports", 1, 2, 400e9}, {"planes", 2, 2, 800e9}} {
		for _, system := range []string{"sonic", "cumulus", "mlnx-os", "nx-os", "eos"} {
			t.Run(c.name+" "+system, func(t *testing.T) {
				t.Parallel()
				inv := room(8, "", false)
				f := inv.Fabrics[0]
				f.Topology, f.Planes, f.Rails, f.Oversubscription = "rail-optimized", c.planes, 2, 1
				f.Switch.Ports, f.Switch.Split, f.Switch.OS, f.Switch.Model = 16, c.split, system, "SN5600"
				f.Switch.Speed, f.Link = 800e9, c.link
				switches, cables, found := topology.Build(inv, f, topology.Options{})
				if found.HasErrors() {
					t.Fatal(found)
				}
				inv.Switches, inv.Cables = switches, cables
				p := New(inv, Options{Seed: 7})
				if n := len(p.Switches()); n != len(switches) {
					t.Errorf("switches: got %d, want %d", n, len(switches))
				}
				r := cabling.CompareCables(inv, heard(p, inv))
				if len(r.Results) != 16 || len(r.Findings) != 0 {
					t.Fatalf("%d results, %+v", len(r.Results), r.Findings)
				}
				for _, x := range r.Results {
					if x.State != cabling.Conforms {
						t.Fatalf("%s: %s, %s", x.Cable.Name(), x.State, x.Why)
					}
				}
				if err := p.Swap(Port{"n3", "rail", 1}, Port{"n6", "rail", 1}); err != nil {
					t.Fatal(err)
				}
				r = cabling.CompareCables(inv, heard(p, inv))
				if len(r.Findings) != 1 || fmt.Sprint(r.Findings[0].Suspects) != "[n3/rail/1 OSFP 1/2 n6/rail/1 OSFP 1/2]" {
					t.Errorf("%+v", r.Findings)
				}
				if system == "sonic" && p.ShowCounters(switches[0].Name) == "" {
					t.Error("no counters")
				}
			})
		}
	}
}
