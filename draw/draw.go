// SPDX-License-Identifier: Apache-2.0

// Package draw makes the drawings of a site: elevations of racks, rows and the
// hall, the power from the building's feeds to the racks, and the maps of the
// fabrics; each as SVG, all of them as one HTML page for print, and their numbers
// as data. It computes nothing that is decided elsewhere: loads come from
// inventory/power, switches and links from the inventory, cables from
// fabric/cable. It is pure: the same site is drawn in the same bytes.
//
// Sheets are at most 1,500 units wide, which is the printable width of A3 (ISO
// 216) at 96 dots an inch, and rarely above 1,030 high; the smallest text has 10
// units, 7.5 points on A3 and 5.3 points on A4.
package draw

import (
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/draw/cost"
	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
)

// The size of a sheet, in user units.
const (
	sheetWidth  = 1500
	sheetHeight = 1030
)

// Side is from where a rack is seen.
type Side string

// The sides.
const (
	Front Side = "front"
	Rear  Side = "rear"
)

// Options are how a site is drawn. The zero value is the front without serials.
type Options struct {
	Side    Side
	Serials bool // write the serials of nodes
	Each    bool // draw racks that are alike one by one
	Errors  int  // that check found: sheets say that they show a site with errors
	// Marks reports whether a link of a map stands out: between a node, or a switch below,
	// and a switch, on a rail or on none (-1). Maps of grouped nodes have no single links. nil:
	// none does.
	Marks func(low, high string, rail int) bool
	// Nodes is how nodes stand, by name: they are drawn in those colours, and not in
	// those of their roles. Nil: as the site is written.
	Nodes map[string]Mark
	// Of is what Nodes is from, such as "state of 2026-03-01 12:05": sheets say it.
	Of string
}

// Drawing is a site that is being drawn. It belongs to one goroutine.
type Drawing struct {
	inv     *inventory.Inventory
	plan    *power.Plan
	opt     Options
	defs    *svg.Defs
	racks   []*Rack // by row and position
	rows    []*Row
	fabrics []*Fabric
	byRack  map[*inventory.Rack]*Rack
	roles   map[string]int // colour of a role
	linked  bool           // sheets may link to each other
	cost    *cost.Cost     // nil: no prices are given
}

// New prepares the drawings of a site with the power that was computed for it.
func New(inv *inventory.Inventory, plan *power.Plan, o Options) *Drawing {
	if o.Side == "" {
		o.Side = Front
	}
	d := &Drawing{inv: inv, plan: plan, opt: o, defs: svg.NewDefs(), byRack: map[*inventory.Rack]*Rack{}, roles: map[string]int{}}
	d.cost = cost.New(inv, plan)
	for i, r := range inv.Roles {
		d.roles[r.Name] = i
	}
	loads := map[*inventory.Rack]*power.Rack{}
	for i := range plan.Racks {
		loads[plan.Racks[i].Rack] = &plan.Racks[i]
	}
	for _, r := range inv.Racks {
		v := newRack(r, loads[r])
		d.racks = append(d.racks, v)
		d.byRack[r] = v
	}
	slices.SortFunc(d.racks, func(a, b *Rack) int { return a.rack.CompareWalk(b.rack) })
	d.rows = newRows(d.racks)
	d.fabrics = newFabrics(inv)
	return d
}

// Defs are the shapes that the sheets use.
func (d *Drawing) Defs() *svg.Defs { return d.defs }

// newSheet begins a sheet with its title line; what is drawn starts below
// headHeight.
func (d *Drawing) newSheet(id, title, desc string, w, h float64) svg.Sheet {
	c := svg.NewCanvas(d.defs)
	font := svg.Font{Size: 16, Bold: true}
	c.Fit(10, 22, w-20, font, title)
	right := "site " + d.inv.Site.Name
	if d.opt.Of != "" {
		right = d.opt.Of + " · " + right
	}
	used := 10 + svg.TextWidth(title, font) + 20
	if d.opt.Errors > 0 {
		warn := fmt.Sprintf("%s · %d %s: not to be built", right, d.opt.Errors, pluralOf(d.opt.Errors, "error", "errors"))
		d.corner(c, w, used, svg.Font{Size: 12, Bold: true, Anchor: svg.End, Fill: svg.Over}, warn)
	} else {
		d.corner(c, w, used, svg.Font{Size: 12, Anchor: svg.End, Fill: svg.Soft}, right)
	}
	c.Line(10, 30, w-10, 30, svg.Paint{Stroke: svg.Ink, Width: 1.5})
	return svg.Sheet{ID: id, Title: title, Desc: desc, W: w, H: h, Canvas: c}
}

// headHeight is the room of the title line of a sheet.
const headHeight = 40

// corner writes the text at the right end of the title line where there is room.
func (d *Drawing) corner(c *svg.Canvas, w, used float64, f svg.Font, s string) {
	if room := w - 10 - used; room > 60 {
		c.Text(w-10, 22, f, svg.ClipText(s, f, room))
	}
}

// rackID is the id of a rack's elevation.
func rackID(name string) string { return svg.ElementID("rack", name) }

// linkRack makes what is drawn a link to the rack's elevation, where there is one.
func (d *Drawing) linkRack(c *svg.Canvas, name string, draw func()) {
	if !d.linked {
		draw()
		return
	}
	c.Link(rackID(name))
	draw()
	c.Unlink()
}

func pluralOf(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// formatCount returns a number with what is counted.
func formatCount(n int, one, many string) string {
	return formatThousands(n) + " " + pluralOf(n, one, many)
}
