// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/inventory/unit"
)

// base is the part of a site that has no power.
const base = `
site "s" {}
network "boot" { cidr = "10.16.0.0/12" }
network "oob" { cidr = "10.32.0.0/12" }
bmc "b" {
  protocol = "redfish"
  network  = network.oob
  username = "u"
  password = secret("env:P")
}
image "debian" "os" { release = "bookworm" }
disk_layout "os" {
  on = "os"
  root {}
}
hardware "h" {
  %s
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:01:00.0"]
    boot    = true
  }
}
role "w" {
  hardware = hardware.h
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
}
`

// site loads a site of one kind of chassis.
func site(t testing.TB, hardware, rest string) *inventory.Inventory {
	t.Helper()
	inv, diags, _ := inventory.LoadFS(fstest.MapFS{"site.hcl": {Data: []byte(fmt.Sprintf(base, hardware) + rest)}}, inventory.Options{})
	if diags.HasErrors() {
		t.Fatalf("%+v", diags)
	}
	return inv
}

// checks are the names of what is found, in order.
func checks(inv *inventory.Inventory) string {
	var out []string
	for _, d := range power.Check(inv) {
		out = append(out, d.Severity.String()+" "+d.Check)
	}
	return strings.Join(out, ", ")
}

func near(got, want unit.Watts) bool { return math.Abs(float64(got-want)) < 0.5 }

func wantLoad(t *testing.T, what string, got power.Load, typical, most unit.Watts) {
	t.Helper()
	if !near(got.Typical, typical) || !near(got.Max, most) {
		t.Errorf("%s: got %v typically and %v at most, want %v and %v", what, got.Typical, got.Max, typical, most)
	}
}

const dgx = `
  rack_units = 8
  weight     = "130.45kg"
  power {
    typical  = "8kW"
    max      = "10.2kW"
    supplies = 6
    required = %d
  }`

const dgxRack = `
rack "r01" {
  units     = 48
  max_power = "44kW"
  cooling   = "44kW"
  pdu "a" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "100A"
  }
  pdu "b" {
    feed    = "B"
    phases  = 3
    voltage = "415V"
    current = "100A"
  }
  node "n" {
    count = 4
    name  = "n${count.index + 1}"
    role  = role.w
    unit  = 1 + 8 * count.index
    feeds = ["a", "b"]
  }
}
`

// TestDGXH100 is a rack of four DGX H100 (10.2 kW, six supplies of which four
// carry the load; DGX H100 user guide, power specifications) on two feeds.
func TestDGXH100(t *testing.T) {
	t.Parallel()
	inv := site(t, fmt.Sprintf(dgx, 4), dgxRack)
	p := power.New(inv)
	r, _ := p.Rack("r01")
	wantLoad(t, "rack", r.Load, 32_000, 40_800) // 4 x 8 kW, 4 x 10.2 kW
	if want := unit.Mass(4 * 130.45); math.Abs(float64(r.Weight-want)) > 1e-9 || r.Unknown != 0 || !near(r.Air, 40_800) || r.Liquid != 0 {
		t.Errorf("rack: got %+v", r)
	}
	a := r.PDUs[0]
	wantLoad(t, "PDU a", a.Load, 16_000, 20_400) // half
	if !near(a.Limit, 57_503.9) {                // √3 x 415 V x 100 A x 0.8
		t.Errorf("limit of PDU a: got %v", a.Limit)
	}
	for i, ph := range a.Phases { // each node has one supply on each phase
		wantLoad(t, fmt.Sprintf("phase %d", i+1), ph.Load, 16_000.0/3, 6_800)
		if math.Abs(float64(ph.Amps)-28.38) > 0.01 || ph.LimitAmps != 80 { // 6800 W / (415 V / √3)
			t.Errorf("phase %d: got %v of %v", i+1, ph.Amps, ph.LimitAmps)
		}
	}
	// Three supplies are left, of 10.2 kW / 4 = 2.55 kW each: 7.65 kW a node.
	wantLoad(t, "PDU a after the loss of B", a.Worst, 30_600, 30_600)
	if a.Lost != "B" {
		t.Errorf("PDU a lost feed %q, want B", a.Lost)
	}
	b, _ := p.Feed("B")
	wantLoad(t, "feed B after the loss of A", b.Worst, 30_600, 30_600)
	if got, want := checks(inv), "error power.feed-loss"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

// TestDGXH100Capped is the same rack where three supplies will do (the nodes boot
// with three; their power is capped).
func TestDGXH100Capped(t *testing.T) {
	t.Parallel()
	inv := site(t, fmt.Sprintf(dgx, 3), dgxRack)
	a, _ := power.New(inv).Racks[0].PDU("a")
	wantLoad(t, "PDU a after the loss of B", a.Worst, 32_000, 40_800)
	wantLoad(t, "phase 1 after the loss of B", a.Phases[0].Worst, 32_000.0/3, 13_600)
	if got := checks(inv); got != "" {
		t.Errorf("found %s, want nothing", got)
	}
}

// TestThreeFeeds connects the six supplies to three feeds: any loss leaves four.
func TestThreeFeeds(t *testing.T) {
	t.Parallel()
	rack := strings.Replace(dgxRack, `  node "n" {`, `  pdu "c" {
    feed    = "C"
    phases  = 3
    voltage = "415V"
    current = "63A"
  }
  node "n" {`, 1)
	inv := site(t, fmt.Sprintf(dgx, 4), strings.Replace(rack, `["a", "b"]`, `["a", "b", "c"]`, 1))
	p := power.New(inv)
	for _, f := range p.Feeds {
		wantLoad(t, "feed "+f.Name, f.Load, 32_000.0/3, 13_600)
		wantLoad(t, "feed "+f.Name+" after a loss", f.Worst, 16_000, 20_400)
	}
	if got := checks(inv); got != "" {
		t.Errorf("found %s, want nothing", got)
	}
}

const tray = `
  weight = "30kg"
  power {
    max      = "6.3kW"
    supplies = 0
    liquid   = "85%"
  }`

// nvl72 is a GB200 NVL72: 18 compute trays, 9 switch trays, 8 power shelves of
// six supplies of 5.5 kW.
func nvl72(redundancy string) string {
	var b strings.Builder
	b.WriteString("rack \"nvl\" {\n  units = 48\n  max_weight = \"1.4t\"\n  max_power = \"132kW\"\n  cooling = \"20kW\"\n  liquid_cooling = \"112kW\"\n")
	for i := range 8 {
		u := 1 + i
		if i >= 4 {
			u = 32 + i
		}
		fmt.Fprintf(&b, "  shelf \"p%d\" {\n    unit = %d\n    count = 6\n    capacity = \"5.5kW\"\n    redundancy = %q\n    weight = \"40kg\"\n  }\n", i+1, u, redundancy)
	}
	b.WriteString(`
  switch "nv" {
    count  = 9
    name   = "nv${count.index + 1}"
    unit   = 15 + count.index
    kind   = "nvlink"
    power  = "2kW"
    liquid = "85%"
    weight = "25kg"
  }
  node "t" {
    count = 18
    name  = "t${format("%02d", count.index + 1)}"
    role  = role.w
    unit  = count.index < 10 ? 5 + count.index : 14 + count.index
  }
}
`)
	return b.String()
}

func TestNVL72(t *testing.T) {
	t.Parallel()
	inv := site(t, tray, nvl72("n+n"))
	r := power.New(inv).Racks[0]
	wantLoad(t, "rack", r.Load, 131_400, 131_400)                  // 18 x 6.3 kW + 9 x 2 kW
	if !near(r.Liquid, 111_690) || !near(r.Air, 131_400-111_690) { // 85 % of it
		t.Errorf("heat: got %v into liquid, %v into air", r.Liquid, r.Air)
	}
	if r.Weight != 18*30+9*25+8*40 || r.Unknown != 0 || r.UnknownWeight != 0 {
		t.Errorf("weight: got %v, and %d without", r.Weight, r.UnknownWeight)
	}
	for _, sh := range r.Shelves {
		wantLoad(t, sh.Shelf.Name, sh.Load, 16_425, 16_425) // an eighth
		if sh.Limit != 16_500 || sh.Installed != 33_000 {   // 3 x 5.5 kW, 6 x 5.5 kW
			t.Errorf("%s: got %v of %v", sh.Shelf.Name, sh.Limit, sh.Installed)
		}
	}
	if got := checks(inv); got != "" {
		t.Errorf("found %s, want nothing", got)
	}
}

// TestNVL72Hot is the same rack with trays of 6.5 kW: 135 kW are more than the
// 132 kW that half of the supplies carry, and than the rack and its cooling allow;
// n+1 would do.
func TestNVL72Hot(t *testing.T) {
	t.Parallel()
	hot := strings.Replace(tray, "6.3kW", "6.5kW", 1)
	if got, want := checks(site(t, hot, nvl72("n+n"))), "error power.rack, error cooling.rack, error cooling.rack, error power.shelf"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
	if got, want := checks(site(t, hot, nvl72("n+1"))), "error power.rack, error cooling.rack, error cooling.rack"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

const small = `
  power {
    max      = "%s"
    supplies = 1
  }`

// TestDelta is a 208 V PDU of 30 A: 8,646 W derated. The sources' own example:
// all of 6,180 W on two of the three pairs is below that, and the line that both
// pairs share is over its 24 A.
func TestDelta(t *testing.T) {
	t.Parallel()
	rack := func(outlets string) string {
		return `
rack "r01" {
  pdu "a" {
    feed    = "A"
    phases  = 3
    voltage = "208V"
    current = "30A"
    outlets = 24
  }
  node "n" {
    for_each = { for i, o in ` + outlets + ` : i => o }
    name     = "n${each.key}"
    role     = role.w
    unit     = 1 + tonumber(each.key)
    feeds    = { psu1 = "a/${each.value}" }
  }
}
`
	}
	for _, c := range []struct {
		name, outlets string
		amps          [3]float64
		want          string
	}{
		// 1,030 W each. Two on each pair: 9.90 A a pair, √3 x 9.90 A = 17.15 A a line.
		{"spread", "[1, 2, 3, 4, 5, 6]", [3]float64{17.154, 17.154, 17.154}, "error power.one-feed"},
		// Three on pairs 1 and 2: 14.86 A on lines 1 and 3, √3 x 14.86 = 25.73 A on line 2.
		{"two pairs", "[1, 4, 7, 2, 5, 8]", [3]float64{14.856, 25.731, 14.856}, "error power.phase, error power.one-feed"},
		// All on one pair: 29.71 A on lines 1 and 2, none on line 3.
		{"one pair", "[1, 4, 7, 10, 13, 16]", [3]float64{29.712, 29.712, 0}, "error power.phase, error power.one-feed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := site(t, fmt.Sprintf(small, "1030W"), rack(c.outlets))
			p := power.New(inv).Racks[0].PDUs[0]
			wantLoad(t, "PDU", p.Load, 6_180, 6_180)
			if !near(p.Limit, 8_646.2) {
				t.Errorf("limit: got %v", p.Limit)
			}
			for i, ph := range p.Phases {
				if math.Abs(float64(ph.Amps)-c.amps[i]) > 0.01 {
					t.Errorf("line %d: got %v, want %v", i+1, ph.Amps, c.amps[i])
				}
			}
			if got := checks(inv); got != c.want {
				t.Errorf("found %s, want %s", got, c.want)
			}
		})
	}
}

// TestSinglePhase is 230 V x 32 A x 0.8 = 5,888 W.
func TestSinglePhase(t *testing.T) {
	t.Parallel()
	inv := site(t, fmt.Sprintf(small, "2kW"), `
rack "r01" {
  pdu "a" {
    feed    = "A"
    phases  = 1
    voltage = "230V"
    current = "32A"
  }
  node "n" {
    count = 3
    name  = "n${count.index}"
    role  = role.w
    unit  = 1 + count.index
    feeds = ["a"]
  }
}
`)
	p := power.New(inv)
	pdu := p.Racks[0].PDUs[0]
	wantLoad(t, "PDU", pdu.Load, 6_000, 6_000)
	if !near(pdu.Limit, 5_888) || len(pdu.Phases) != 1 {
		t.Errorf("got %+v", pdu)
	}
	if pdu.Worst != (power.Load{}) || p.Feeds[0].Worst != (power.Load{}) {
		t.Error("with one feed there is no loss to stand")
	}
	if got, want := checks(inv), "error power.pdu, error power.one-feed"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}
