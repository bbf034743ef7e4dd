// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Row is the racks of one row.
type Row struct {
	Name  string // "": those without a row
	Load  power.Load
	Racks []*Rack // by position
}

// Rack is one rack in numbers. Limits that were not given are 0.
type Rack struct {
	Name                           string
	Row                            string
	Position                       int
	Units, Free                    int
	Nodes, GPUs, Switches, Shelves int
	Load                           power.Load
	MaxPower                       unit.Watts
	Weight, MaxWeight              unit.Mass
	Air, Cooling                   unit.Watts
	Liquid, LiquidCooling          unit.Watts
	Unknown                        int // things whose power was not given
	PDUs                           []PDUNumber

	rack    *inventory.Rack
	power   *power.Rack // never nil
	things  []thing
	above   []string // names of what would stand higher than the rack
	gaps    []gap
	stacked bool // has no units: things are drawn one above the other
}

// PDUNumber is one PDU of a rack.
type PDUNumber struct {
	Name, Feed string
	Load       power.Load
	Limit      unit.Watts
	Worst      power.Load
	Lost       string
	Phases     []power.Phase
}

// thing is what stands in rack units: one of node, sw and shelf.
type thing struct {
	unit, height int
	node         *inventory.Node
	sw           *inventory.Switch
	shelf        *inventory.Shelf
}

func (t thing) name() string {
	switch {
	case t.node != nil:
		return t.node.Name
	case t.sw != nil:
		return t.sw.Label
	default:
		return t.shelf.Label
	}
}

// gap is free units.
type gap struct{ unit, height int }

func newRack(r *inventory.Rack, p *power.Rack) *Rack {
	if p == nil {
		p = &power.Rack{Rack: r}
	}
	v := &Rack{Name: r.Name, Row: r.Row, Position: r.Position, Units: r.Units, Nodes: len(r.Nodes), Switches: len(r.Switches), Shelves: len(r.Shelves),
		Load: p.Load, MaxPower: r.MaxPower, Weight: p.Weight, MaxWeight: r.MaxWeight, Air: p.Air, Cooling: r.Cooling, Liquid: p.Liquid, LiquidCooling: r.LiquidCooling,
		Unknown: p.Unknown, rack: r, power: p}
	for _, n := range r.Nodes {
		if n.Hardware != nil {
			v.GPUs += n.Hardware.GPUCount()
		}
	}
	loads := map[*inventory.PDU]power.PDU{}
	for _, p := range p.PDUs {
		loads[p.PDU] = p
	}
	for _, u := range r.PDUs {
		p := loads[u]
		v.PDUs = append(v.PDUs, PDUNumber{Name: u.Label, Feed: u.Feed, Load: p.Load, Limit: p.Limit, Worst: p.Worst, Lost: p.Lost, Phases: p.Phases})
	}
	v.place()
	return v
}

// place sorts what stands in the rack by unit, and finds the gaps. In a rack
// without units all things are stacked.
func (v *Rack) place() {
	for _, n := range v.rack.Nodes {
		v.things = append(v.things, thing{unit: n.Unit, height: n.Height(), node: n})
	}
	for _, s := range v.rack.Switches {
		v.things = append(v.things, thing{unit: s.Unit, height: max(s.Height, 1), sw: s})
	}
	for _, s := range v.rack.Shelves {
		v.things = append(v.things, thing{unit: s.Unit, height: max(s.Height, 1), shelf: s})
	}
	slices.SortStableFunc(v.things, func(a, b thing) int { return cmp.Compare(a.unit, b.unit) })
	if v.stacked = v.Units == 0 || slices.ContainsFunc(v.things, func(t thing) bool { return t.unit == 0 }); v.stacked {
		v.Units = 0
		for i := range v.things {
			v.things[i].unit = v.Units + 1
			v.Units += v.things[i].height
		}
		return
	}
	v.things = slices.DeleteFunc(v.things, func(t thing) bool {
		high := t.unit+t.height-1 > v.Units
		if high {
			v.above = append(v.above, t.name())
		}
		return high
	})
	next := 1
	for _, t := range v.things {
		if t.unit > next {
			v.gaps = append(v.gaps, gap{next, t.unit - next})
		}
		next = max(next, t.unit+t.height)
	}
	if next <= v.Units {
		v.gaps = append(v.gaps, gap{next, v.Units - next + 1})
	}
	for _, g := range v.gaps {
		v.Free += g.height
	}
}

// newRows groups racks that are sorted by row.
func newRows(racks []*Rack) []*Row {
	var rows []*Row
	for _, r := range racks {
		if len(rows) == 0 || rows[len(rows)-1].Name != r.Row {
			rows = append(rows, &Row{Name: r.Row})
		}
		row := rows[len(rows)-1]
		row.Racks = append(row.Racks, r)
		row.Load.Typical += r.Load.Typical
		row.Load.Max += r.Load.Max
	}
	return rows
}

// title is the row in words.
func (r *Row) title() string {
	if r.Name == "" {
		return "Racks without a row"
	}
	return "Row " + r.Name
}

// formatWatts is power for people: three digits do.
func formatWatts(w unit.Watts) string {
	switch {
	case w >= 999_950:
		return formatDecimals(float64(w)/1e6, 2) + "MW"
	case w >= 1000:
		return formatDecimals(float64(w)/1e3, 1) + "kW"
	default:
		return formatDecimals(float64(w), 0) + "W"
	}
}

func formatKilograms(m unit.Mass) string { return formatThousands(int(m+0.5)) + "kg" }

// formatDecimals writes v with at most n decimals and no zeros at the end.
func formatDecimals(v float64, n int) string {
	s := strconv.FormatFloat(v, 'f', n, 64)
	if n > 0 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// formatThousands writes n with commas.
func formatThousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// formatShare returns a part of a limit in percent, such as "93%".
func formatShare(v, limit float64) string {
	return strconv.FormatFloat(v/limit*100, 'f', 0, 64) + "%"
}

// RackNames are the racks, by row and position.
func (d *Drawing) RackNames() []string {
	return namesOf(d.racks, func(r *Rack) string { return r.Name })
}

// RowNames are the rows.
func (d *Drawing) RowNames() []string { return namesOf(d.rows, func(r *Row) string { return r.Name }) }

// FabricNames are the fabrics.
func (d *Drawing) FabricNames() []string {
	return namesOf(d.fabrics, func(f *Fabric) string { return f.Name })
}

func namesOf[T any](list []T, name func(T) string) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = name(t)
	}
	return out
}
