// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// spread cables four nodes to two leaves, and each leaf to two spines twice.
func spread(kind string) *inventory.Inventory {
	inv := site(kind, 4, 1, 0, 400e9, "")
	at := map[string]*inventory.Switch{}
	for _, name := range []string{"leaf-1", "leaf-2", "spine-1", "spine-2"} {
		at[name] = &inventory.Switch{Name: name, Tier: inventory.Leaf}
		if name[0] == 's' {
			at[name].Tier = inventory.Spine
		}
		inv.Switches = append(inv.Switches, at[name])
	}
	for i, n := range inv.Nodes {
		inv.Cables = append(inv.Cables, &inventory.Cable{From: inventory.CableEnd{Node: n, NIC: &n.Hardware.NICs[1]}, To: inventory.CableEnd{Switch: at[fmt.Sprintf("leaf-%d", i/2+1)], Port: i + 1}})
	}
	for l := range 2 {
		for k := range 4 {
			inv.Cables = append(inv.Cables, &inventory.Cable{From: inventory.CableEnd{Switch: at[fmt.Sprintf("leaf-%d", l+1)], Port: 33 + k}, To: inventory.CableEnd{Switch: at[fmt.Sprintf("spine-%d", k/2+1)], Port: 1 + 2*l + k%2}})
		}
	}
	return inv
}

// used lists the ports of a leaf to the spines that sent something.
func used(m *Model, leaf string) (n int, packets int64) {
	for port := 33; port < 37; port++ {
		if c, ok := m.SwitchCounters(SwitchPort{Switch: leaf, Number: port}); ok && c.XmitPackets > 0 {
			n, packets = n+1, packets+c.XmitPackets
		}
	}
	return n, packets
}

// TestWays: a flow between leaves takes one spine and is counted at both ends of its
// cables; on InfiniBand all flows to a port take the same, elsewhere flows spread.
func TestWays(t *testing.T) {
	t.Parallel()
	for kind, spreads := range map[string]bool{"infiniband": false, "roce": true} {
		m := New(spread(kind), 1)
		m.Carry(rail(0, 0), rail(2, 0), 16, 16<<20)
		n, sent := used(m, "leaf-1")
		if n == 0 || spreads != (n > 1) || sent != 16<<20/rdmaMTU {
			t.Errorf("%s: 16 flows left by %d cables with %d packets", kind, n, sent)
		}
		if back, _ := used(m, "leaf-2"); back != 0 {
			t.Errorf("%s: %d cables carried the other way", kind, back)
		}
		m.Carry(rail(0, 0), rail(1, 0), 1, 1<<20)
		if _, again := used(m, "leaf-1"); again != sent {
			t.Errorf("%s: what stays on a leaf went up", kind)
		}
	}
}

// TestTrunkFaults: a slow cable, one with errors in one direction, and a slow spine act
// on what goes over them and on nothing else.
func TestTrunkFaults(t *testing.T) {
	t.Parallel()
	m := New(spread("infiniband"), 1)
	a, b := rail(0, 0), rail(2, 0)
	there, back := write(t, m, a, b, 1<<20), write(t, m, b, a, 1<<20)
	m.Carry(a, b, 1, 1<<30)
	at := SwitchPort{Switch: "leaf-1"}
	for port := 33; port < 37; port++ {
		if c, _ := m.SwitchCounters(SwitchPort{Switch: "leaf-1", Number: port}); c.XmitPackets > 0 {
			at.Number = port
		}
	}
	if err := m.SetTrunkShare(at, 0.5); err != nil {
		t.Fatal(err)
	}
	if got := write(t, m, a, b, 1<<20).Average / there.Average; got < 0.49 || got > 0.51 {
		t.Errorf("a cable of half its rate passes %.2f", got)
	}
	if err := m.SetTrunkShare(at, 1); err != nil {
		t.Fatal(err)
	}
	up := SwitchPort{Switch: fmt.Sprintf("spine-%d", (at.Number-33)/2+1), Number: 1 + (at.Number-33)%2}
	if err := m.SetTrunkErrors(up, 1e-7); err != nil {
		t.Fatal(err)
	}
	m.Carry(a, b, 1, 1<<30)
	low, _ := m.SwitchCounters(at)
	if c, _ := m.SwitchCounters(up); c.RcvErrors == 0 || c.SymbolError == 0 || low.RcvErrors != 0 {
		t.Errorf("errors of what goes up: %+v at the spine, %+v at the leaf", c, low)
	}
	if write(t, m, a, b, 1<<20).Average > 0.95*there.Average || write(t, m, b, a, 1<<20).Average != back.Average {
		t.Error("errors act in the other direction, or not at all")
	}
	if err := m.SetTrunkErrors(up, 0); err != nil {
		t.Fatal(err)
	}
	if err := m.SetSwitchShare(up.Switch, 0.7); err != nil {
		t.Fatal(err)
	}
	if got := write(t, m, a, b, 1<<20).Average / there.Average; got < 0.69 || got > 0.71 {
		t.Errorf("a spine of seven tenths passes %.2f", got)
	}
	if m.SetTrunkShare(SwitchPort{Switch: "leaf-1", Number: 1}, 0.5) == nil || m.SetTrunkErrors(at, 2) == nil || m.SetTrunkShare(at, 0) == nil {
		t.Error("what there is not was set")
	}
}
