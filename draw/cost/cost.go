// SPDX-License-Identifier: Apache-2.0

// Package cost multiplies what a site has by the prices that its files give: nodes,
// switches, cables with their spares, and the energy of a year. Nothing is priced that the
// files do not price, and what is left out is named.
package cost

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/fabric/cable"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/power"
)

// hours are those of a year.
const hours = 8760

// Line is things of one name: a hardware block, the model of a switch, or the part of a cable.
type Line struct {
	Name  string  `json:"name"`
	Count int     `json:"count"`
	Each  float64 `json:"each"` // 0: not priced

	part string // of a cable: its name without the length
}

// Total is the price of all of them.
func (l Line) Total() float64 { return float64(l.Count) * l.Each }

// Cost is what a site costs, in its currency.
type Cost struct {
	Currency string  `json:"currency"`
	Lines    []Line  `json:"lines"` // what is priced, the dearest first
	Left     []Line  `json:"not_priced"`
	Total    float64 `json:"total"` // of the lines
	// Energy is what the racks take in a year at typical power, in kWh; Building with what
	// the building takes beside it, by its PUE; Year the price of that, 0 without one.
	Energy   float64 `json:"rack_kwh_a_year"`
	Building float64 `json:"building_kwh_a_year"`
	Year     float64 `json:"energy_a_year"`
}

// New computes the costs of a site; nil where its files give no prices.
func New(inv *inventory.Inventory, plan *power.Plan) *Cost {
	p := inv.Site.Prices
	if p == nil {
		return nil
	}
	c := &Cost{Currency: p.Currency, Lines: []Line{}, Left: []Line{}}
	for _, l := range count(inv) {
		if l.Each = priceOf(p, l); l.Each > 0 {
			c.Lines = append(c.Lines, l)
			c.Total += l.Total()
		} else {
			c.Left = append(c.Left, l)
		}
	}
	slices.SortStableFunc(c.Lines, func(a, b Line) int { return cmp.Compare(b.Total(), a.Total()) })
	for _, r := range plan.Racks {
		c.Energy += float64(r.Load.Typical) * hours / 1000
	}
	c.Building = c.Energy * p.PUE
	c.Year = c.Building * p.KWh
	return c
}

// count counts what has a name that can be priced.
func count(inv *inventory.Inventory) (lines []Line) {
	at := map[string]int{}
	add := func(name, part string, n int) {
		if name == "" {
			return
		}
		i, known := at[name]
		if !known {
			i, at[name] = len(lines), len(lines)
			lines = append(lines, Line{Name: name, part: part})
		}
		lines[i].Count += n
	}
	for _, n := range inv.Nodes {
		if n.Hardware != nil {
			add(n.Hardware.Name, "", 1)
		}
	}
	for _, s := range inv.Switches {
		add(s.Model, "", 1)
	}
	for _, i := range cable.CountBill(cable.ListRuns(inv)) {
		name := i.Part
		if name != "" && i.Length > 0 {
			name += " " + i.Length.String()
		}
		add(name, i.Part, i.Count+i.Spares)
	}
	return lines
}

// priceOf is the price of a thing by its name: of a cable also by its part, whatever its length.
func priceOf(p *inventory.Prices, l Line) float64 {
	if each, ok := p.Each[l.Name]; ok || l.part == "" {
		return each
	}
	return p.Each[l.part]
}

// Check warns of prices of what the site does not have.
func Check(inv *inventory.Inventory) (diags diag.List) {
	p := inv.Site.Prices
	if p == nil {
		return nil
	}
	var names []string
	for _, l := range count(inv) {
		names = append(names, l.Name)
		if l.part != "" && !slices.Contains(names, l.part) {
			names = append(names, l.part)
		}
	}
	for _, name := range p.Names {
		if !slices.Contains(names, name) {
			diags.Add("prices.unknown", p.Places[name], "A price of nothing", fmt.Sprintf("Nothing of this site is called %q: prices are those of hardware blocks, models of switches and parts of cables, as `ironrail draw cables --bill` names them.%s", name, diag.DidYouMean(name, names))).Warn()
		}
	}
	return diags
}
