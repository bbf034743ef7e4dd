// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"github.com/ironrail/ironrail/draw/cost"
	"github.com/ironrail/ironrail/inventory/power"
)

// Number is a quantity in the unit that its name says, with one decimal at most.
type Number float64

// MarshalJSON writes the number.
func (n Number) MarshalJSON() ([]byte, error) {
	return []byte(formatDecimals(float64(n), 1)), nil
}

// Numbers is what the drawings show, as data. Limits that were not given are 0.
type Numbers struct {
	Site     string        `json:"site"`
	Rows     []RowNumbers  `json:"rows"`
	Feeds    []FeedNumbers `json:"feeds"`
	SwitchOn []Batch       `json:"switch_on"` // in this order
	Fabrics  []*Fabric     `json:"fabrics"`
	Cost     *cost.Cost    `json:"cost,omitempty"` // where the site gives prices
}

// LoadNumbers is what is drawn.
type LoadNumbers struct {
	Typical Number `json:"typical_watts"`
	Max     Number `json:"max_watts"`
}

// RowNumbers is a row.
type RowNumbers struct {
	Name  string        `json:"name"` // "": racks without a row
	Load  LoadNumbers   `json:"load"`
	Racks []RackNumbers `json:"racks"` // by position
}

// RackNumbers is a rack.
type RackNumbers struct {
	Name          string       `json:"name"`
	Position      int          `json:"position"`
	Units         int          `json:"units"`
	Free          int          `json:"free_units"`
	Nodes         int          `json:"nodes"`
	GPUs          int          `json:"gpus"`
	Switches      int          `json:"switches"`
	Shelves       int          `json:"shelves"`
	Load          LoadNumbers  `json:"load"`
	MaxPower      Number       `json:"max_power_watts"`
	Weight        Number       `json:"weight_kg"`
	MaxWeight     Number       `json:"max_weight_kg"`
	Air           Number       `json:"air_watts"`
	Cooling       Number       `json:"cooling_watts"`
	Liquid        Number       `json:"liquid_watts"`
	LiquidCooling Number       `json:"liquid_cooling_watts"`
	Unknown       int          `json:"unknown_power"` // things whose power was not given
	Over          []string     `json:"over"`          // limits that it is over, also after a loss
	PDUs          []PDUNumbers `json:"pdus"`
}

// PDUNumbers is a PDU.
type PDUNumbers struct {
	Name   string         `json:"name"`
	Feed   string         `json:"feed"`
	Load   LoadNumbers    `json:"load"`
	Limit  Number         `json:"limit_watts"`
	Worst  LoadNumbers    `json:"worst"`
	Lost   string         `json:"lost"` // the feed whose loss is the worst
	Phases []PhaseNumbers `json:"phases"`
}

// PhaseNumbers is a phase of a PDU.
type PhaseNumbers struct {
	Load  LoadNumbers `json:"load"`
	Limit Number      `json:"limit_watts"`
	Worst LoadNumbers `json:"worst"`
}

// FeedNumbers is a feed of the building.
type FeedNumbers struct {
	Name  string      `json:"name"`
	Load  LoadNumbers `json:"load"`
	Limit Number      `json:"limit_watts"`
	Worst LoadNumbers `json:"worst"`
	Lost  string      `json:"lost"`
}

// Batch is what may be switched on at one time.
type Batch struct {
	Names []string `json:"names"`
	Watts Number   `json:"watts"`
}

// Numbers returns what the drawings show.
func (d *Drawing) Numbers() Numbers {
	n := Numbers{Site: d.inv.Site.Name, Rows: []RowNumbers{}, Fabrics: d.fabrics, Cost: d.cost, Feeds: []FeedNumbers{}, SwitchOn: []Batch{}}
	for _, r := range d.rows {
		row := RowNumbers{Name: r.Name, Load: loadNumbers(r.Load)}
		for _, v := range r.Racks {
			row.Racks = append(row.Racks, v.numbers())
		}
		n.Rows = append(n.Rows, row)
	}
	for _, f := range d.plan.Feeds {
		n.Feeds = append(n.Feeds, FeedNumbers{f.Name, loadNumbers(f.Load), Number(f.Limit), loadNumbers(f.Worst), f.Lost})
	}
	for _, b := range d.plan.Order {
		n.SwitchOn = append(n.SwitchOn, Batch{b.Names, Number(b.Watts)})
	}
	return n
}

func loadNumbers(l power.Load) LoadNumbers { return LoadNumbers{Number(l.Typical), Number(l.Max)} }

func (v *Rack) numbers() RackNumbers {
	n := RackNumbers{Name: v.Name, Position: v.Position, Units: v.Units, Free: v.Free, Nodes: v.Nodes, GPUs: v.GPUs, Switches: v.Switches, Shelves: v.Shelves,
		Load: loadNumbers(v.Load), MaxPower: Number(v.MaxPower), Weight: Number(v.Weight), MaxWeight: Number(v.MaxWeight), Air: Number(v.Air), Cooling: Number(v.Cooling),
		Liquid: Number(v.Liquid), LiquidCooling: Number(v.LiquidCooling), Unknown: v.Unknown, Over: append([]string{}, v.over()...), PDUs: []PDUNumbers{}}
	for _, p := range v.PDUs {
		out := PDUNumbers{Name: p.Name, Feed: p.Feed, Load: loadNumbers(p.Load), Limit: Number(p.Limit), Worst: loadNumbers(p.Worst), Lost: p.Lost, Phases: []PhaseNumbers{}}
		for _, ph := range p.Phases {
			out.Phases = append(out.Phases, PhaseNumbers{loadNumbers(ph.Load), Number(ph.Limit), loadNumbers(ph.Worst)})
		}
		n.PDUs = append(n.PDUs, out)
	}
	return n
}
