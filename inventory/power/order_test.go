// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/inventory/unit"
)

// batches writes an order.
func batches(p *power.Plan) string {
	var out []string
	for _, b := range p.Order {
		out = append(out, strings.Join(b.Names, " "))
	}
	return strings.Join(out, " | ")
}

// TestOrder has a PDU of 230 V x 32 A = 7,360 W (a breaker's rating, not derated)
// and nodes of 1 kW whose inrush is taken as 1.5 kW: four at a time are 6 kW; with
// 4 kW running two more are 7 kW; with 6 kW running one is 7.5 kW, which is too
// much, and goes alone.
func TestOrder(t *testing.T) {
	t.Parallel()
	rack := func(inrush string) string {
		return fmt.Sprintf(`
role "early" {
  hardware = hardware.h
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
}
role "late" {
  hardware = hardware.h
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
  after    = [role.w]
}
role "w2" {
  hardware = hardware.h
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
  after    = [role.early]
}
rack "r01" {
  pdu "a" {
    feed    = "A"
    phases  = 1
    voltage = "230V"
    current = "32A"
  }
  switch "leaf" {
    unit  = 40
    power = "200W"
  }
  node "n" {
    count = 7
    name  = "n${count.index + 1}"
    role  = %s
    unit  = 1 + count.index
    feeds = ["a"]
  }
  node "z" {
    count = 2
    name  = "a${count.index + 1}"
    role  = role.late
    unit  = 20 + count.index
  }
}
`, inrush)
	}
	inv := site(t, fmt.Sprintf(small, "1kW"), rack("role.w"))
	inv.Switches = append(inv.Switches, &inventory.Switch{Name: "compute/spine-1"})
	p := power.New(inv)
	if got, want := batches(p), "compute/spine-1 r01/leaf | n1 n2 n3 n4 | n5 n6 | n7 | a1 a2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := p.Order[1].Watts, unit.Watts(6_000); got != want {
		t.Errorf("inrush of the first nodes: got %v, want %v", got, want)
	}
	// A hardware block that says 1 kW may start more at a time.
	calm := strings.Replace(fmt.Sprintf(small, "1kW"), "supplies", "inrush = \"1kW\"\n    supplies", 1)
	if got, want := batches(power.New(site(t, calm, rack("role.w")))), "r01/leaf | n1 n2 n3 n4 n5 n6 n7 | a1 a2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestOrderHolds: everything is in the order once; on no circuit is more than it
// carries, but for what is there alone.
func TestOrderHolds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1_000) {
		inv := anySite(rand.New(rand.NewPCG(seed, 6)))
		seen := map[string]bool{}
		for i, b := range power.New(inv).Order {
			if len(b.Names) == 0 {
				t.Fatalf("seed %d: batch %d is empty", seed, i)
			}
			for _, name := range b.Names {
				if seen[name] {
					t.Fatalf("seed %d: %s is switched on twice", seed, name)
				}
				seen[name] = true
			}
		}
		if got, want := len(seen), len(inv.Nodes)+len(inv.Switches); got != want {
			t.Fatalf("seed %d: %d are switched on, want %d", seed, got, want)
		}
		holds(t, seed, inv)
	}
}

// holds replays an order on single-phase PDUs, whose circuit is the PDU.
func holds(t *testing.T, seed uint64, inv *inventory.Inventory) {
	t.Helper()
	for _, r := range inv.Racks {
		r.Shelves = nil
		for _, p := range r.PDUs {
			p.Phases = 1
		}
	}
	draws := map[string]func(unit.Watts) map[*inventory.PDU]unit.Watts{}
	most := map[string]unit.Watts{}
	know := func(name string, w unit.Watts, feeds []inventory.Feed) {
		most[name] = w
		draws[name] = func(w unit.Watts) map[*inventory.PDU]unit.Watts {
			out := map[*inventory.PDU]unit.Watts{}
			for _, f := range feeds {
				out[f.PDU] += w / unit.Watts(len(feeds))
			}
			return out
		}
	}
	for _, n := range inv.Nodes {
		know(n.Name, n.Hardware.Power.Max, n.Feeds)
	}
	for _, s := range inv.Switches {
		know(s.Name, s.Power, s.Feeds)
	}
	running := map[*inventory.PDU]unit.Watts{}
	for i, b := range power.New(inv).Order {
		inrush, things := map[*inventory.PDU]unit.Watts{}, map[*inventory.PDU]int{}
		for _, name := range b.Names {
			for p, w := range draws[name](most[name] * 1.5) {
				inrush[p] += w
				if w > 0 {
					things[p]++
				}
			}
		}
		for p, w := range inrush {
			if limit := unit.Watts(p.Voltage) * unit.Watts(p.Current); things[p] > 1 && running[p]+w > limit*1.000001 {
				t.Fatalf("seed %d: batch %d draws %v of %v on %s", seed, i, running[p]+w, limit, p.Name)
			}
		}
		for _, name := range b.Names {
			for p, w := range draws[name](most[name]) {
				running[p] += w
			}
		}
	}
}
