// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strconv"

	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/inventory"
)

// Measures of the hall plan.
const (
	tileHeight = 44.0
	tileGap    = 4.0
	rowLabel   = 120.0
	mostTiles  = 20 // in a line
)

// hallLine is one line of tiles; nil is a free place.
type hallLine struct {
	row   *Row
	first bool
	racks []*Rack
}

// Hall draws the plan of the hall: rows of tiles, one a rack, with what stands in
// it and its load; and what has no place yet.
func (d *Drawing) Hall() []svg.Sheet {
	var lines []hallLine
	most := 1
	for _, row := range d.rows {
		for i, l := range cutBalanced(row.places(), mostTiles) {
			lines = append(lines, hallLine{row: row, first: i == 0, racks: l})
			most = max(most, len(l))
		}
	}
	var sheets []svg.Sheet
	const perSheet = (sheetHeight - headHeight - 30) / int(tileHeight+tileGap)
	for i, part := range cutBalanced(lines, perSheet) {
		sheets = append(sheets, d.hallSheet(i+1, part, max(most, 6)))
	}
	if s, ok := d.unplaced(); ok {
		sheets = append(sheets, s)
	}
	return sheets
}

// places are the racks of the row by position, with nil where no rack stands;
// without positions, or with odd ones, one after the other.
func (r *Row) places() []*Rack {
	last := r.Racks[len(r.Racks)-1].Position
	if r.Racks[0].Position < 1 || last > 2*len(r.Racks)+8 {
		return r.Racks
	}
	out := make([]*Rack, last)
	for _, v := range r.Racks {
		if out[v.Position-1] != nil {
			return r.Racks
		}
		out[v.Position-1] = v
	}
	return out
}

func (d *Drawing) hallSheet(number int, lines []hallLine, most int) svg.Sheet {
	w := float64(sheetWidth)
	tile := min(150, (w-20-rowLabel)/float64(most)-tileGap)
	w = max(640, 20+rowLabel+float64(most)*(tile+tileGap))
	h := headHeight + 30 + float64(len(lines))*(tileHeight+tileGap)
	title := fmt.Sprintf("Hall: %s in %s", formatCount(len(d.racks), "rack", "racks"), formatCount(len(d.rows), "row", "rows"))
	id := "hall"
	if number > 1 {
		id, title = "hall-"+strconv.Itoa(number), title+", continued"
	}
	s := d.newSheet(id, title, "Plan of the hall: a tile for each rack with its nodes, its most power, and the share of the power that it may draw.", w, h)
	s.Linked = d.linked
	for i, l := range lines {
		y := headHeight + float64(i)*(tileHeight+tileGap)
		if l.first {
			bold := svg.Font{Size: 13, Bold: true}
			name := l.row.Name
			if name == "" {
				name = "no row"
			}
			s.Canvas.Fit(10, y+17, rowLabel-10, bold, name)
			s.Canvas.Fit(10, y+32, rowLabel-10, svg.Font{Size: 10, Fill: svg.Soft}, fmt.Sprintf("%d · %s", len(l.row.Racks), formatWatts(l.row.Load.Max)))
		}
		for j, r := range l.racks {
			s.Canvas.Open("", 10+rowLabel+float64(j)*(tile+tileGap), y)
			if r == nil {
				s.Canvas.Rect(0.5, 0.5, tile-1, tileHeight-1, svg.Paint{Stroke: svg.Faint, Dash: "3 3"})
			} else {
				d.linkRack(s.Canvas, r.Name, func() { d.tile(s.Canvas, r, tile) })
			}
			s.Canvas.Close()
		}
	}
	if d.opt.Nodes != nil {
		standingLegend(s.Canvas, 10, h-10, w)
	} else {
		hallLegend(s.Canvas, h-10)
	}
	return s
}

// tile draws a rack of the hall plan.
func (d *Drawing) tile(c *svg.Canvas, v *Rack, w float64) {
	if d.opt.Nodes != nil {
		d.standingTile(c, v, w)
		return
	}
	g := v.gauges()[0]
	fill := svg.White
	if g.limit > 0 {
		fill = loadColour(g.value / g.limit)
	}
	over := v.over()
	tip := v.Name + ": " + v.holds() + ", " + g.words() + ", " + v.footer()
	if len(over) > 0 {
		fill = overFill
		tip += ", over: " + joinList(over)
	}
	c.Title(tip)
	c.Rect(0.5, 0.5, w-1, tileHeight-1, svg.Paint{Fill: fill, Stroke: svg.Soft, Round: 3})
	if v.Units > 0 { // how full it is
		used := (tileHeight - 6) * float64(v.Units-v.Free) / float64(v.Units)
		c.Rect(3, tileHeight-3-used, 3, used, svg.Paint{Fill: svg.Soft})
	}
	if len(over) > 0 {
		c.Rect(w-6, 2, 4, tileHeight-4, svg.Paint{Fill: svg.Hatch})
	}
	room := w - 17
	c.Fit(9, 13, room, svg.Font{Bold: true}, v.Name)
	small := svg.Font{Size: 10}
	what := []string{formatCount(v.Nodes, "node", "nodes"), strconv.Itoa(v.Nodes) + " n"}
	if v.Nodes == 0 && v.Switches > 0 {
		what = []string{formatCount(v.Switches, "switch", "switches"), strconv.Itoa(v.Switches) + " sw"}
	}
	load := []string{formatWatts(v.Load.Max)}
	if g.limit > 0 {
		load = []string{formatWatts(v.Load.Max) + " " + formatShare(g.value, g.limit), formatShare(g.value, g.limit)}
		if svg.TextWidth(load[0], small) > room { // the power takes the place of the nodes
			what = []string{formatWatts(v.Load.Max)}
		}
	}
	c.Text(9, 26, small, firstFitting(room, small, what))
	if len(over) > 0 {
		small.Fill, small.Bold = svg.Over, true
		load = []string{"OVER " + load[0], "OVER " + load[len(load)-1], "OVER"}
	}
	c.Text(9, 39, small, firstFitting(room, small, load))
}

// standingTile draws a rack of the hall plan by how its nodes stand.
func (d *Drawing) standingTile(c *svg.Canvas, v *Rack, w float64) {
	worst, words := d.stand(v)
	c.Title(v.Name + ": " + v.holds() + ", accepted " + words)
	c.Rect(0.5, 0.5, w-1, tileHeight-1, svg.Paint{Fill: standings[worst].fill, Stroke: svg.Soft, Round: 3})
	if worst == Bad {
		c.Rect(w-6, 2, 4, tileHeight-4, svg.Paint{Fill: svg.Hatch})
	}
	room := w - 17
	c.Fit(9, 13, room, svg.Font{Bold: true}, v.Name)
	c.Fit(9, 26, room, svg.Font{Size: 10}, v.holds())
	c.Fit(9, 39, room, svg.Font{Size: 10}, words)
}

func joinList(list []string) string {
	s := ""
	for i, l := range list {
		if i > 0 {
			s += ", "
		}
		s += l
	}
	return s
}

func hallLegend(c *svg.Canvas, y float64) {
	x := 10.0
	put := func(fill, name string) {
		c.Rect(x, y-10, 16, 12, svg.Paint{Fill: fill, Stroke: svg.Soft})
		c.Text(x+21, y, svg.Font{}, name)
		x += 21 + svg.TextWidth(name, svg.Font{}) + 12
	}
	put(loadColour(0), "to 40%")
	put(loadColour(0.5), "to 70%")
	put(loadColour(0.8), "to 90%")
	put(loadColour(1), "to 100%")
	put(svg.Hatch, "over a limit")
	c.Rect(x, y-10, 4, 12, svg.Paint{Fill: svg.Soft})
	c.Text(x+9, y, svg.Font{}, "units in use")
}

// unplaced draws the switches that a topology computes and that stand in no rack.
func (d *Drawing) unplaced() (svg.Sheet, bool) {
	type group struct {
		name        string
		n           int
		model       string
		first, last *inventory.Switch
	}
	var groups []*group
	byName := map[string]*group{}
	total := 0
	for _, s := range d.inv.Switches {
		if s.Rack != nil {
			continue
		}
		total++
		name := "switches"
		if s.Fabric != nil {
			name = s.Fabric.Name + ": " + tierName(s.Tier, 2)
		}
		g := byName[name+s.Model]
		if g == nil {
			g = &group{name: name, model: s.Model, first: s}
			byName[name+s.Model] = g
			groups = append(groups, g)
		}
		g.n, g.last = g.n+1, s
	}
	if total == 0 {
		return svg.Sheet{}, false
	}
	const boxWidth, boxHeight, perLine = 360.0, 74.0, 4
	lines := float64((len(groups) + perLine - 1) / perLine)
	w := max(640, 20+float64(min(len(groups), perLine))*(boxWidth+10))
	s := d.newSheet("unplaced", "Not placed yet: "+formatCount(total, "switch", "switches"), "Switches that the fabrics need and that stand in no rack yet.", w, headHeight+lines*(boxHeight+10)+6)
	for i, g := range groups {
		s.Canvas.Open("", 10+float64(i%perLine)*(boxWidth+10), headHeight+float64(i/perLine)*(boxHeight+10))
		s.Canvas.Rect(0.5, 0.5, boxWidth-1, boxHeight-1, svg.Paint{Fill: svg.White, Stroke: svg.Ink, Dash: "6 4", Round: 3})
		s.Canvas.Fit(12, 22, boxWidth-24, svg.Font{Size: 13, Bold: true}, formatThousands(g.n)+" × "+g.name)
		s.Canvas.Fit(12, 41, boxWidth-24, svg.Font{}, g.model)
		names := g.first.Name
		if g.n > 1 {
			names += " to " + g.last.Name
		}
		s.Canvas.Fit(12, 59, boxWidth-24, svg.Font{Size: 10, Fill: svg.Soft}, names)
		s.Canvas.Close()
	}
	return s, true
}
