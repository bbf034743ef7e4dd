// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
)

// bigSite has racks of eight nodes of six supplies on two feeds, and two switches.
func bigSite(racks int) *inventory.Inventory {
	inv := &inventory.Inventory{}
	h := &inventory.Hardware{Name: "h", RackUnits: 4, Weight: 90, Power: inventory.Power{Typical: 3600, Max: 4200, Supplies: 6, Required: 3}}
	inv.Hardware = append(inv.Hardware, h)
	for i := range racks {
		r := &inventory.Rack{Name: fmt.Sprintf("r%04d", i+1), Number: i + 1, Units: 48, MaxPower: 40_000, Cooling: 40_000, MaxWeight: 1_000}
		for _, f := range []string{"A", "B"} {
			r.PDUs = append(r.PDUs, &inventory.PDU{Name: r.Name + "/" + f, Label: f, Rack: r, Feed: f, Phases: 3, Voltage: 415, Current: 63, Derate: 0.8})
		}
		feeds := func(n int) (out []inventory.Feed) {
			for j := range n {
				out = append(out, inventory.Feed{Supply: "psu", PDU: r.PDUs[j%2]})
			}
			return out
		}
		for j := range 8 {
			n := &inventory.Node{Name: fmt.Sprintf("%s-n%d", r.Name, j+1), Rack: r, Unit: 1 + 4*j, Hardware: h, Feeds: feeds(6)}
			r.Nodes, inv.Nodes = append(r.Nodes, n), append(inv.Nodes, n)
		}
		for j := range 2 {
			s := &inventory.Switch{Name: fmt.Sprintf("%s/sw%d", r.Name, j+1), Rack: r, Unit: 40 + j, Power: 300, Weight: 10, Feeds: feeds(2)}
			r.Switches, inv.Switches = append(r.Switches, s), append(inv.Switches, s)
		}
		inv.Racks = append(inv.Racks, r)
	}
	return inv
}

// BenchmarkPower is 12,504 nodes in 1,563 racks.
func BenchmarkPower(b *testing.B) {
	inv := bigSite(1563)
	if found := power.Check(inv); len(found) > 0 {
		b.Fatalf("found %+v", found)
	}
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			power.Check(inv)
		}
	})
	b.Run("plan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			power.New(inv)
		}
	})
	// Everything is wrong everywhere: the findings are still few.
	for _, r := range inv.Racks {
		r.MaxPower, r.Cooling, r.MaxWeight = 1, 1, 1
		for _, p := range r.PDUs {
			p.Current, p.Outlets = 16, 3
		}
	}
	b.Run("wrong", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if n := len(power.Check(inv)); n > 10 {
				b.Fatalf("%d findings", n)
			}
		}
	})
}

// TestManyRacks: what is wrong with both PDUs of each of 400 racks is said once,
// with the worst of them and the other place.
func TestManyRacks(t *testing.T) {
	t.Parallel()
	inv := bigSite(400)
	for i, r := range inv.Racks {
		for j, p := range r.PDUs {
			p.Current = 29
			p.Decl = hcl.Range{Filename: "site.hcl", Start: hcl.Pos{Line: 10 + j, Column: 1, Byte: 100 * j}}
		}
		if i == 100 {
			for _, s := range r.Switches {
				s.Power = 600
			}
		}
	}
	found := power.Check(inv)
	if len(found) != 1 {
		t.Fatalf("got %d findings, want one", len(found))
	}
	const want = `PDU r0101/A carries 17.4kW of 16.6kW (415V, 29A, 3 phases, derated to 80%). It is the worst of 800: r0001/A, r0001/B, r0002/A and 797 more. Move nodes to other racks, or use larger PDUs.`
	if d := found[0]; d.Check != "power.pdu" || d.Detail != want || len(d.About) != 0 || d.Subject.Start.Line != 10 || len(d.Related) != 1 || d.Related[0].Start.Line != 11 {
		t.Errorf("got %s of %d nodes at %v and %v: %s\nwant %s", d.Check, len(d.About), d.Subject, d.Related, d.Detail, want)
	}
}
