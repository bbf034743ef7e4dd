// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// site has nodes with the given number of rails at a speed, on a fabric kind.
func site(kind string, nodes, rails, unitSize int, speed unit.BitRate, soft string) *inventory.Inventory {
	f := &inventory.Fabric{Block: inventory.Block{Kind: kind, Name: "rail"}, Rails: rails, UnitSize: unitSize}
	nic := inventory.NIC{Name: "rail", HCA: kind == "infiniband", Fabric: f, Speed: speed, SoftwareRDMA: soft}
	for r := range rails {
		nic.Ports = append(nic.Ports, inventory.NICPort{Rail: r, PCI: fmt.Sprintf("0000:%02x:00.0", 0x18+r)})
	}
	hw := &inventory.Hardware{Name: "h", NICs: []inventory.NIC{{Name: "mgmt", Speed: 25e9, Network: &inventory.Network{Name: "boot"}}, nic}}
	inv := &inventory.Inventory{}
	for i := range nodes {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: fmt.Sprintf("n%02d", i), Hardware: hw})
	}
	return inv
}

func rail(node, r int) PortID { return PortID{Node: fmt.Sprintf("n%02d", node), NIC: "rail", Index: r} }

func write(t *testing.T, m *Model, a, b PortID, size int64) Flow {
	t.Helper()
	f, err := m.Write(Question{Test: "t", From: a, To: b, Size: size})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The figures that public limits and the lab's measurements ask for.
func TestRates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		kind     string
		speed    unit.BitRate
		soft     string
		size     int64
		low, top float64 // bytes a second
	}{
		{"400G RoCE", "roce", 400e9, "", 1 << 20, 0.96 * 50e9, 49.2e9},
		{"400G RoCE at 64 KiB", "roce", 400e9, "", 64 << 10, 0.96 * 50e9, 49.2e9},
		{"NDR", "infiniband", 400e9, "", 8 << 20, 0.96 * 50e9, 50e9},
		{"HDR", "infiniband", 200e9, "", 8 << 20, 0.96 * 25e9, 25e9},
		{"100G", "roce", 100e9, "", 1 << 20, 0.96 * 12.5e9, 12.5e9},
		{"small messages", "roce", 400e9, "", 256, 1.9e9, 2.3e9},
		{"soft RoCE, emulated", "roce", 0, "rxe", 64 << 10, 12e6, 14e6},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := New(site(c.kind, 2, 1, 0, c.speed, c.soft), 1)
			if f := write(t, m, rail(0, 0), rail(1, 0), c.size); f.Average < c.low || f.Average > c.top || f.Peak < f.Average {
				t.Errorf("got %.4g B/s, want %.4g to %.4g", f.Average, c.low, c.top)
			}
		})
	}
}

// The published table that the curve is fitted to, in Gb/s (ROCm's network
// documentation, bidirectional, so that the wire is at 204.57).
func TestKneeFitsTheTable(t *testing.T) {
	t.Parallel()
	for size, gbits := range map[int64]float64{256: 16.32, 512: 34.41, 1024: 66.92, 2048: 126.20, 4096: 188.56, 65536: 203.85, 1048576: 204.57} {
		if got := messageRateOf(204.57e9/8, size) * 8 / 1e9; math.Abs(got-gbits) > 0.07*gbits {
			t.Errorf("%d B: got %.2f Gb/s, table %.2f", size, got, gbits)
		}
	}
}

func TestHops(t *testing.T) {
	t.Parallel()
	m := New(site("roce", 4, 2, 2, 400e9, ""), 1)
	near, far := write(t, m, rail(0, 0), rail(1, 0), 1<<20), write(t, m, rail(0, 0), rail(2, 0), 1<<20)
	if near.Hop != SameLeaf || far.Hop != OtherLeaf || far.Latency <= near.Latency {
		t.Errorf("near %+v, far %+v", near, far)
	}
	if _, err := m.Write(Question{From: rail(0, 0), To: rail(1, 1), Size: 1}); !errors.Is(err, errNoPath) {
		t.Errorf("two rails of RoCE: %v", err)
	}
	ib := New(site("infiniband", 2, 2, 0, 400e9, ""), 1)
	if f := write(t, ib, rail(0, 0), rail(1, 1), 1<<20); f.Hop != OtherLeaf {
		t.Errorf("two rails of InfiniBand: %+v", f)
	}
}

func TestCablesNameLeaves(t *testing.T) {
	t.Parallel()
	inv := site("roce", 2, 1, 0, 400e9, "")
	nic := &inv.Nodes[0].Hardware.NICs[1]
	for i, n := range inv.Nodes {
		sw := &inventory.Switch{Name: fmt.Sprintf("r01/leaf-%d", i)}
		a, b := inventory.CableEnd{Node: n, NIC: nic}, inventory.CableEnd{Switch: sw, Port: 1}
		if i == 1 {
			a, b = b, a
		}
		inv.Cables = append(inv.Cables, &inventory.Cable{From: a, To: b})
	}
	m := New(inv, 1)
	if leaf, _, _ := m.Leaf(rail(1, 0)); leaf != "r01/leaf-1" {
		t.Errorf("leaf %q", leaf)
	}
	if f := write(t, m, rail(0, 0), rail(1, 0), 1<<20); f.Hop != OtherLeaf {
		t.Errorf("%+v", f)
	}
}

// A fault of one cable is seen on every path over it, both ways, and counted
// there alone.
func TestFaults(t *testing.T) {
	t.Parallel()
	bad := rail(1, 0)
	for _, c := range []struct {
		name    string
		fault   func(*Model) error
		most    float64 // share of the good rate
		counted bool
	}{
		{"one lane of four", func(m *Model) error { return m.SetLanes(bad, 1) }, 0.26, false},
		{"errors", func(m *Model) error { return m.SetErrors(bad, 1e-7) }, 0.9, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := New(site("roce", 3, 2, 0, 400e9, ""), 1)
			good := write(t, m, rail(0, 0), rail(2, 0), 1<<20)
			if err := c.fault(m); err != nil {
				t.Fatal(err)
			}
			before := m.Counters(bad)
			for _, pair := range [][2]PortID{{bad, rail(0, 0)}, {rail(0, 0), bad}, {rail(2, 0), bad}} {
				if f := write(t, m, pair[0], pair[1], 1<<20); f.Average > c.most*good.Average {
					t.Errorf("%v: %.3g of %.3g B/s", pair, f.Average, good.Average)
				}
				m.Carry(pair[0], pair[1], 1, 10<<30)
			}
			if f := write(t, m, rail(0, 0), rail(2, 0), 1<<20); f != good {
				t.Errorf("a healthy pair went from %+v to %+v", good, f)
			}
			after := m.Counters(bad)
			if grew := after.SymbolError > before.SymbolError && after.OutOfSequence > 0 && after.PortRcvErrors > 0; grew != c.counted {
				t.Errorf("counters %+v", after)
			}
			for _, p := range []PortID{rail(0, 0), rail(2, 0), rail(1, 1)} {
				if k := m.Counters(p); k.SymbolError+k.PortRcvErrors+k.OutOfSequence+k.LinkErrorRecovery != 0 {
					t.Errorf("%s counts errors: %+v", p, k)
				}
			}
		})
	}
}

func TestBrokenLinks(t *testing.T) {
	t.Parallel()
	m := New(site("roce", 3, 2, 0, 400e9, ""), 1)
	q := Question{From: rail(0, 0), To: rail(1, 0), Size: 1 << 20}
	for _, c := range []struct {
		name string
		do   func() error
		want error
	}{
		{"down", func() error { return m.SetDown(rail(1, 0), true) }, errDown},
		{"up", func() error { return m.SetDown(rail(1, 0), false) }, nil},
		{"a storm of errors", func() error { return m.SetErrors(rail(1, 0), 1e-4) }, ErrLoss},
		{"clean", func() error { return m.SetErrors(rail(1, 0), 0) }, nil},
		{"swapped", func() error { return m.Swap(rail(1, 0), rail(1, 1)) }, errNoPath},
		{"swapped back", func() error { return m.Swap(rail(1, 0), rail(1, 1)) }, nil},
		{"swapped on one rail", func() error { return m.Swap(rail(1, 0), rail(2, 0)) }, nil},
	} {
		if err := c.do(); err != nil {
			t.Fatal(c.name, err)
		}
		if _, err := m.Write(q); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if m.Counters(rail(1, 0)).LinkDowned != 1 {
		t.Error("the loss of light was not counted")
	}
	for _, err := range []error{m.SetLanes(rail(0, 0), 0), m.SetLanes(rail(0, 0), 5), m.SetErrors(rail(0, 0), -1), m.SetErrors(rail(0, 0), math.NaN()), m.SetDown(rail(9, 0), true), m.Swap(rail(0, 0), rail(9, 9))} {
		if err == nil {
			t.Error("a knob beyond its range was taken")
		}
	}
}

func TestAllReduce(t *testing.T) {
	t.Parallel()
	m := New(site("roce", 4, 1, 0, 0, "rxe"), 1)
	members := []PortID{rail(0, 0), rail(1, 0), rail(2, 0), rail(3, 0)}
	d, err := m.AllReduce(Reduction{Members: members, Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if bus := float64(1<<20) / d.Seconds() * 1.5; bus < 10e6 || bus > emulatedTCP {
		t.Errorf("busbw %.3g B/s", bus)
	}
	if err := m.SetDown(rail(2, 0), true); err != nil {
		t.Fatal(err)
	}
	if _, err := m.AllReduce(Reduction{Members: members, Size: 1}); !errors.Is(err, errDown) {
		t.Errorf("got %v", err)
	}
	fast := New(site("roce", 2, 1, 0, 400e9, ""), 1)
	small, _ := fast.AllReduce(Reduction{Members: members[:2], Size: 8})
	if small <= 0 || small.Microseconds() > 100 {
		t.Errorf("8 bytes take %v", small)
	}
}

// The same seed gives the same figures in any order, another seed others.
func TestNoiseRepeats(t *testing.T) {
	t.Parallel()
	inv := site("roce", 3, 1, 0, 400e9, "")
	a, b, c := New(inv, 7), New(inv, 7), New(inv, 8)
	write(t, b, rail(2, 0), rail(1, 0), 1<<20)
	fa, fb, fc := write(t, a, rail(0, 0), rail(1, 0), 1<<20), write(t, b, rail(0, 0), rail(1, 0), 1<<20), write(t, c, rail(0, 0), rail(1, 0), 1<<20)
	if fa != fb || fa == fc {
		t.Errorf("%+v, %+v, %+v", fa, fb, fc)
	}
}
