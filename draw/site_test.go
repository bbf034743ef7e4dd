// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"sort"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/inventory/unit"
)

// builder makes sites by hand, so that drawings are tested without the loader
// and its owners.
type builder struct {
	inv  *inventory.Inventory
	plan *power.Plan
}

func newBuilder() *builder {
	b := &builder{inv: &inventory.Inventory{Site: inventory.Site{Name: "test"}}, plan: &power.Plan{}}
	hgx := &inventory.Hardware{Name: "hgx-h100", RackUnits: 8, Weight: 130, Power: inventory.Power{Typical: 7200, Max: 10200, Supplies: 6, Required: 4}, GPUs: []inventory.GPU{{Count: 8, Model: "H100 SXM5 80GB"}}}
	nv := &inventory.Hardware{Name: "gb200", RackUnits: 1, Weight: 30, Power: inventory.Power{Typical: 5000, Max: 6300}, GPUs: []inventory.GPU{{Count: 4}}}
	head := &inventory.Hardware{Name: "r650", RackUnits: 2, Weight: 25, Power: inventory.Power{Typical: 400, Max: 800, Supplies: 2, Required: 1}}
	b.inv.Hardware = []*inventory.Hardware{nv, hgx, head}
	b.inv.Roles = []*inventory.Role{{Name: "login", Hardware: head}, {Name: "tray", Hardware: nv}, {Name: "worker", Hardware: hgx}}
	return b
}

// rack adds a rack with two PDUs.
func (b *builder) rack(name, row string, position int, maxPower unit.Watts) *inventory.Rack {
	r := &inventory.Rack{Name: name, Number: len(b.inv.Racks) + 1, Row: row, Position: position, Units: 48, MaxPower: maxPower, Cooling: 45000, MaxWeight: 1400, Orientation: "front"}
	b.inv.Racks = append(b.inv.Racks, r)
	return r
}

func (b *builder) pdus(r *inventory.Rack) {
	for _, l := range []string{"a", "b"} {
		r.PDUs = append(r.PDUs, &inventory.PDU{Name: r.Name + "/" + l, Label: l, Rack: r, Feed: map[string]string{"a": "A", "b": "B"}[l], Phases: 3, Voltage: 415, Current: 63, Derate: 0.8, Outlets: 36})
	}
}

func (b *builder) node(r *inventory.Rack, name, role string, u int) *inventory.Node {
	n := &inventory.Node{Name: name, Rack: r, Unit: u, Serial: "S" + fmt.Sprintf("%06d", len(b.inv.Nodes))}
	for _, o := range b.inv.Roles {
		if o.Name == role {
			n.Role, n.Hardware = o, o.Hardware
		}
	}
	for i := range n.Hardware.Power.Supplies {
		if len(r.PDUs) > 0 {
			n.Feeds = append(n.Feeds, inventory.Feed{Supply: fmt.Sprintf("psu%d", i+1), PDU: r.PDUs[i%len(r.PDUs)]})
		}
	}
	r.Nodes = append(r.Nodes, n)
	b.inv.Nodes = append(b.inv.Nodes, n)
	return n
}

func (b *builder) leaf(r *inventory.Rack, label string, u, height int) *inventory.Switch {
	s := &inventory.Switch{Name: r.Name + "/" + label, Label: label, Rack: r, Unit: u, Height: height, Ports: 64, Model: "QM9700", OS: "mlnx-os", Power: 1700, Weight: 15, Rail: -1, Plane: -1}
	r.Switches = append(r.Switches, s)
	b.inv.Switches = append(b.inv.Switches, s)
	return s
}

// done computes simple loads: all things share their power over the PDUs of
// their rack, and one PDU carries all when the other feed is lost.
func (b *builder) done() (*inventory.Inventory, *power.Plan) {
	sort.Slice(b.inv.Nodes, func(i, j int) bool { return b.inv.Nodes[i].Name < b.inv.Nodes[j].Name })
	feeds := map[string]*power.Feed{"A": {Name: "A", Limit: 40e6, Lost: "B"}, "B": {Name: "B", Limit: 40e6, Lost: "A"}}
	for _, r := range b.inv.Racks {
		p := power.Rack{Rack: r}
		for _, n := range r.Nodes {
			p.Load.Typical += n.Hardware.Power.Typical
			p.Load.Max += n.Hardware.Power.Max
			p.Weight += n.Hardware.Weight
		}
		for _, s := range r.Switches {
			p.Load.Max += s.Power
			p.Load.Typical += s.Power / 2
			p.Weight += s.Weight
		}
		p.Air = p.Load.Max
		limit := unit.Watts(12071)
		if r.MaxPower > 60000 {
			limit = 30000
		}
		for _, u := range r.PDUs {
			half := power.Load{Typical: p.Load.Typical / 2, Max: p.Load.Max / 2}
			phase := power.Phase{Load: power.Load{Typical: half.Typical / 3, Max: half.Max / 3}, Limit: limit, Worst: power.Load{Typical: half.Typical / 1.5, Max: half.Max / 1.5}}
			p.PDUs = append(p.PDUs, power.PDU{PDU: u, Load: half, Limit: 3 * limit, Phases: []power.Phase{phase, phase, phase}, Worst: p.Load, Lost: map[string]string{"a": "B", "b": "A"}[u.Label]})
			f := feeds[u.Feed]
			f.Load.Max += half.Max
			f.Load.Typical += half.Typical
			f.Worst.Max += p.Load.Max
			f.Worst.Typical += p.Load.Typical
		}
		for _, s := range r.Shelves {
			n := unit.Watts(len(r.Shelves))
			p.Shelves = append(p.Shelves, power.Shelf{Shelf: s, Load: power.Load{Typical: p.Load.Typical / n, Max: p.Load.Max / n}, Limit: s.Capacity * unit.Watts(s.Count-1), Installed: s.Capacity * unit.Watts(s.Count)})
		}
		b.plan.Racks = append(b.plan.Racks, p)
	}
	if len(b.inv.Racks) > 0 && len(b.inv.Racks[0].PDUs) > 0 {
		b.plan.Feeds = []power.Feed{*feeds["A"], *feeds["B"]}
	}
	for i := 0; i < len(b.inv.Nodes); i += 4 {
		var batch power.Batch
		for _, n := range b.inv.Nodes[i:min(i+4, len(b.inv.Nodes))] {
			batch.Names = append(batch.Names, n.Name)
			batch.Watts += n.Hardware.Power.Max
		}
		b.plan.Order = append(b.plan.Order, batch)
	}
	return b.inv, b.plan
}

// oneRack is a rack of four 8-GPU nodes, a login node and two leaves: over its
// PDUs when a feed is lost.
func oneRack() (*inventory.Inventory, *power.Plan) {
	b := newBuilder()
	r := b.rack("r01", "A", 1, 44000)
	b.pdus(r)
	for i := range 4 {
		b.node(r, fmt.Sprintf("r01-u%02d", 1+8*i), "worker", 1+8*i)
	}
	b.node(r, "login-with-a-name-that-is-far-too-long-for-its-box-1", "login", 40)
	b.leaf(r, "leaf-1", 46, 1)
	b.leaf(r, "leaf-2", 44, 2)
	return b.done()
}

// trayRack is a GB200 NVL72: 18 compute trays, 9 switch trays, 8 power shelves.
func trayRack() (*inventory.Inventory, *power.Plan) {
	b := newBuilder()
	r := b.rack("nvl-1", "L", 2, 132000)
	r.Cooling, r.LiquidCooling = 20000, 115000
	unitOf, shelf := 1, 0
	addShelves := func(n int) {
		for range n {
			shelf++
			r.Shelves = append(r.Shelves, &inventory.Shelf{Name: fmt.Sprintf("nvl-1/power-%d", shelf), Label: fmt.Sprintf("power-%d", shelf), Rack: r, Unit: unitOf, Height: 1, Count: 6, Capacity: 5500, Redundancy: "n+1"})
			unitOf++
		}
	}
	addTrays := func(from, n int) {
		for i := range n {
			b.node(r, fmt.Sprintf("nvl-1-t%02d", from+i), "tray", unitOf)
			unitOf++
		}
	}
	unitOf = 3
	addShelves(4)
	addTrays(1, 8)
	for i := range 9 {
		s := b.leaf(r, fmt.Sprintf("nv-%d", i+1), unitOf, 1)
		s.Kind, s.Model, s.Ports, s.Power = "nvlink", "NVL5", 72, 500
		unitOf++
	}
	addTrays(9, 10)
	addShelves(4)
	return b.done()
}

// hall is racks of eight nodes in rows of twenty.
func hall(racks int) (*inventory.Inventory, *power.Plan) {
	b := newBuilder()
	b.inv.Roles[2].Hardware.RackUnits = 5
	for i := range racks {
		limit := unit.Watts(90000)
		if i%37 == 5 {
			limit = 70000
		}
		r := b.rack(fmt.Sprintf("r%04d", i+1), fmt.Sprintf("%d", i/20+1), i%20+1, limit)
		r.Cooling, r.MaxWeight = 90000, 0
		b.pdus(r)
		for j := range 8 - i%3 {
			b.node(r, fmt.Sprintf("r%04d-n%d", i+1, j+1), "worker", 1+5*j)
		}
	}
	return b.done()
}

// leafSpine is a fabric of nodes with eight rails: leaves of units, spines, two
// links a pair where there are few. Switches without a place stand in no rack.
func leafSpine(nodes, leaves, spines, units int, placed bool) func() (*inventory.Inventory, *power.Plan) {
	return func() (*inventory.Inventory, *power.Plan) {
		b := newBuilder()
		f := &inventory.Fabric{Block: inventory.Block{Kind: "infiniband", Name: "compute"}, Rails: 8, Link: 400e9, Topology: "rail-optimized"}
		b.inv.Fabrics = []*inventory.Fabric{f}
		hgx := b.inv.Hardware[1]
		hgx.NICs = []inventory.NIC{{Name: "rail", HCA: true, Fabric: f, Ports: make([]inventory.NICPort, 8)}}
		make1 := func(label string, tier inventory.Tier, i int) *inventory.Switch {
			s := &inventory.Switch{Name: "compute/" + label, Label: label, Model: "QM9700", Ports: 64, Height: 1, Fabric: f, Tier: tier, Rail: -1, Plane: -1}
			if placed {
				for len(b.inv.Racks) <= i/16 {
					b.rack(fmt.Sprintf("net%d", len(b.inv.Racks)+1), "N", 0, 0)
				}
				s.Rack = b.inv.Racks[i/16]
				s.Unit = 48 - len(s.Rack.Switches)
				s.Rack.Switches = append(s.Rack.Switches, s)
			}
			b.inv.Switches = append(b.inv.Switches, s)
			return s
		}
		perUnit := leaves / units
		var tier [2][]*inventory.Switch
		for i := range leaves {
			s := make1(fmt.Sprintf("leaf-u%d-r%d", i/perUnit+1, i%perUnit), inventory.Leaf, i)
			s.ScalableUnit, s.Rail = i/perUnit+1, i%perUnit
			tier[0] = append(tier[0], s)
		}
		for i := range spines {
			tier[1] = append(tier[1], make1(fmt.Sprintf("spine-%d", i+1), inventory.Spine, leaves+i))
		}
		for i := range nodes {
			if i%4 == 0 {
				b.rack(fmt.Sprintf("r%03d", i/4+1), fmt.Sprintf("%d", i/80+1), i/4%20+1, 44000)
			}
			r := b.inv.Racks[len(b.inv.Racks)-1]
			n := b.node(r, fmt.Sprintf("%s-u%02d", r.Name, 1+i%4*8), "worker", 1+i%4*8)
			for rail := range 8 {
				leaf := tier[0][i*units/nodes*perUnit+rail%perUnit]
				b.inv.Cables = append(b.inv.Cables, &inventory.Cable{Fabric: f, Speed: 400e9, Rail: rail, From: inventory.CableEnd{Node: n, NIC: &hgx.NICs[0], Port: rail}, To: inventory.CableEnd{Switch: leaf, Port: 1}})
			}
		}
		per := max(32/spines, 1)
		for i, l := range tier[0] {
			for j := range 32 / per {
				for range per {
					b.inv.Cables = append(b.inv.Cables, &inventory.Cable{Fabric: f, Speed: 400e9, Rail: -1, From: inventory.CableEnd{Switch: l}, To: inventory.CableEnd{Switch: tier[1][(i+j)%spines]}})
				}
			}
		}
		return b.done()
	}
}

// oddSite has what few sites have: a rack without units, one without anything,
// names in other scripts, control characters and markup, a fabric without
// switches.
func oddSite() (*inventory.Inventory, *power.Plan) {
	b := newBuilder()
	b.inv.Site.Name = `"<script>alert(1)</script>" & 'co'`
	r := b.rack("no\u202eunits", "", 0, 0)
	r.Units, r.Cooling, r.MaxWeight, r.Orientation = 0, 0, 0, ""
	b.node(r, "<b>bold</b>&amp;", "login", 0)
	b.node(r, "机架节点一二三四五六七八九十机架节点一二三四五六七八九十", "worker", 0).Serial = "\x00\x1b[31m]]>\ufeff"
	b.rack("", "<row> with a name that is longer than the hall has room for", 3, 0)
	b.node(b.inv.Racks[1], "high", "worker", 47)
	full := b.rack("full", "Ω", 0, 10000)
	full.Orientation = "rear"
	b.pdus(full)
	for i := range 48 {
		b.node(full, fmt.Sprintf("full-u%02d-%s", i+1, "ÄÖÜß"), "tray", i+1)
	}
	b.inv.Fabrics = []*inventory.Fabric{{Block: inventory.Block{Kind: "roce", Name: "em\tpty\n"}}}
	return b.done()
}
