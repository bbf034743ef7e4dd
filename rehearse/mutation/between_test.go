// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/isolate"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/transfer"
	"github.com/ironrail/ironrail/validate/trunk"
)

// counted is what the port of a node counted before a test and after it.
type counted struct{ Before, After rail.PortCounters }

// TestPorts changes what the ports of nodes count while a collective loads them.
func TestPorts(t *testing.T) {
	t.Parallel()
	var four [4]counted
	for i := range four {
		// After a minute they stand just below their limits.
		count := func(symbols, recoveries int64) rail.PortCounters {
			return rail.PortCounters{"speed": 400_000, "carrier_changes": 2, "symbol_error": symbols, "link_downed": 1, "link_error_recovery": recoveries, "port_rcv_errors": symbols,
				"local_link_integrity_errors": 1, "excessive_buffer_overrun_errors": 1, "rx_crc_errors": symbols}
		}
		four[i] = counted{count(100, 1), count(690, 6)}
	}
	mutate(t, "ports", four, func(four [4]counted) (v verdict) {
		var ends []rail.End
		before, after := map[string]rail.PortCounters{}, map[string]rail.PortCounters{}
		for i, c := range four {
			e := rail.End{Node: &inventory.Node{Name: fmt.Sprintf("n%d", i+1)}, Port: fabric.Port{Device: "mlx5_0"}}
			ends, before[e.Key()], after[e.Key()] = append(ends, e), c.Before, c.After
		}
		for _, p := range rail.DegradedPorts(ends, before, after, time.Minute) {
			v.add(p.Node.Name, p.Describe())
		}
		return v
	})
}

// add adds what is found of a node.
func (v *verdict) add(node, text string) {
	if node == "n1" {
		v.faults = append(v.faults, text)
	} else {
		v.others = append(v.others, text)
	}
}

// atTrunk is what both ends of a cable between switches counted while a test ran.
type atTrunk struct{ Lower, Upper fabric.SwitchCounters }

// TestTrunks changes what the switches of four cables between a leaf and a spine count while
// transfers load them.
func TestTrunks(t *testing.T) {
	t.Parallel()
	f := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "compute"}}
	leaf := &inventory.Switch{Name: "leaf", Fabric: f, Tier: inventory.Leaf}
	spine := &inventory.Switch{Name: "spine", Fabric: f, Tier: inventory.Spine}
	inv := &inventory.Inventory{Fabrics: []*inventory.Fabric{f}}
	var four [4]atTrunk
	for i := range four {
		inv.Cables = append(inv.Cables, &inventory.Cable{From: inventory.CableEnd{Switch: leaf, Port: i + 1}, To: inventory.CableEnd{Switch: spine, Port: i + 1}})
		loaded := fabric.SwitchCounters{Sent: 1_000_000, Received: 1_000_000, Errors: 690} // just below the limit
		four[i] = atTrunk{loaded, loaded}
	}
	nodes := []*inventory.Node{{Name: "n1", Hardware: &inventory.Hardware{NICs: []inventory.NIC{{Fabric: f}}}}}
	mutate(t, "switches", four, func(four [4]atTrunk) (v verdict) {
		now := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
		began := true
		read := func(context.Context, *inventory.Fabric) (map[fabric.SwitchPort]fabric.SwitchCounters, error) {
			all := map[fabric.SwitchPort]fabric.SwitchCounters{}
			for i, c := range four {
				if began {
					c = atTrunk{fabric.SwitchCounters{Errors: 100}, fabric.SwitchCounters{Errors: 100}}
				}
				all[inv.Cables[i].From.String()], all[inv.Cables[i].To.String()] = c.Lower, c.Upper
			}
			return all, nil
		}
		w := trunk.BeginAll(t.Context(), inv, nodes, read, now)
		began = false
		loads := w.End(t.Context(), now.Add(time.Minute))
		for _, worn := range loads[f.Name].Worn {
			v.add(map[bool]string{true: "n1"}[worn.Trunk == "leaf/1"], worn.String())
		}
		v.notes = loads.NotTested()
		return v
	})
}

// carried is what transfers from one node to each of the three others carried.
type carried struct{ To []transferred }

// transferred is a transfer as it is changed.
type transferred struct {
	Bw   float64
	Why  string
	Leaf string
}

// TestPairs changes what transfers of one node to the others carried, of nodes that are on one
// leaf: the parts that the decoder names are those of that node.
func TestPairs(t *testing.T) {
	t.Parallel()
	h := &inventory.Hardware{Name: "h"}
	var four [4]carried
	for i := range four {
		for k := range 3 {
			four[i].To = append(four[i].To, transferred{Bw: 48e9 + float64(i+k)*1e7, Leaf: "leaf-1"})
		}
	}
	mutate(t, "pairs", four, func(four [4]carried) (v verdict) {
		var all []*transfer.Transfer
		end := func(i int) rail.End {
			return rail.End{Node: &inventory.Node{Name: fmt.Sprintf("n%d", i+1), Hardware: h}, Need: rail.Need{Least: 45e9}}
		}
		for i, c := range four {
			for k, x := range c.To {
				to := k
				if to >= i { // a list that is shorter has no transfer to the last
					to++
				}
				// What arrives at a node, and what it sends, goes over its one port.
				there := &transfer.Transfer{From: end(i), To: end(to), Bw: x.Bw, Why: x.Why, FromLeaf: x.Leaf, ToLeaf: four[to].To[0].Leaf, Tries: 1}
				back := &transfer.Transfer{From: end(to), To: end(i), Bw: x.Bw, Why: x.Why, FromLeaf: four[to].To[0].Leaf, ToLeaf: x.Leaf, Tries: 1}
				all = append(all, there, back)
			}
		}
		transfer.Compare(all)
		var ms []isolate.Measurement
		for _, x := range all {
			ms = append(ms, x.Measurement())
			if x.Bad() {
				v.add(map[bool]string{true: "n1"}[x.From.Node.Name == "n1" || x.To.Node.Name == "n1"], x.Name()+" "+x.Outcome())
			}
		}
		if found := isolate.FindSuspects(ms); len(found.Suspects) == 1 && slices.Contains([]string{"n2", "n3", "n4"}, found.Suspects[0].Node) {
			v.others = append(v.others, found.Suspects[0].String())
		}
		return v
	})
}
