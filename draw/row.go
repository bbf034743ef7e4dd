// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strconv"

	"github.com/ironrail/ironrail/draw/svg"
)

// Measures of a row.
const (
	smallUnit   = 6.0 // of a rack unit
	smallWidth  = 104.0
	smallMargin = 5.0
	rowsTop     = 34.0 // name and load above a rack
	rowsFoot    = 34.0
)

// Rows draws the racks of these rows side by side; of all rows without names.
func (d *Drawing) Rows(names ...string) []svg.Sheet {
	var sheets []svg.Sheet
	for i, row := range d.rows {
		if isWanted(row.Name, names) {
			sheets = append(sheets, d.rowSheets(i+1, row)...)
		}
	}
	return sheets
}

// rowSheets draws a row: lines of racks, as many on a sheet as it is high.
func (d *Drawing) rowSheets(number int, row *Row) []svg.Sheet {
	const perLine = 13
	var sheets []svg.Sheet
	lines := cutBalanced(row.Racks, perLine)
	for len(lines) > 0 {
		n, h := 0, headHeight+28.0
		for n < len(lines) && (n == 0 || h+lineHeight(lines[n]) <= sheetHeight) {
			h += lineHeight(lines[n])
			n++
		}
		sheets = append(sheets, d.rowSheet(number, len(sheets), row, lines[:n], h))
		lines = lines[n:]
	}
	return sheets
}

func cutChunks[T any](list []T, size int) [][]T {
	var out [][]T
	for len(list) > size {
		out, list = append(out, list[:size]), list[size:]
	}
	return append(out, list)
}

// cutBalanced cuts a list into as few parts as chunks, of about the same size.
func cutBalanced[T any](list []T, size int) [][]T {
	parts := max((len(list)+size-1)/size, 1)
	return cutChunks(list, (len(list)+parts-1)/parts)
}

// firstFitting returns the first of the words that fits into w units, else the last.
func firstFitting(w float64, f svg.Font, words []string) string {
	for _, s := range words {
		if svg.TextWidth(s, f) <= w {
			return s
		}
	}
	return svg.ClipText(words[len(words)-1], f, w)
}

func lineHeight(racks []*Rack) float64 {
	units := 0
	for _, r := range racks {
		units = max(units, r.Units)
	}
	return rowsTop + smallUnit*float64(units) + rowsFoot + 14
}

func (d *Drawing) rowSheet(number, part int, row *Row, lines [][]*Rack, h float64) svg.Sheet {
	most := 0
	for _, l := range lines {
		most = max(most, len(l))
	}
	w, pitch := max(520, 20+float64(most)*(smallWidth+2*smallMargin)), smallWidth+2*smallMargin
	if most >= 8 { // spread over the sheet
		w, pitch = sheetWidth, (sheetWidth-20)/float64(most)
	}
	id, title := "row-"+strconv.Itoa(number), row.title()
	if part > 0 {
		id += "-" + strconv.Itoa(part+1)
		title += ", continued"
	}
	title += fmt.Sprintf(": %s, %s", formatCount(len(row.Racks), "rack", "racks"), formatWatts(row.Load.Max))
	s := d.newSheet(id, title, fmt.Sprintf("The racks of one row side by side, from the %s.", d.opt.Side), w, h)
	s.Linked = d.linked
	y := float64(headHeight)
	for _, line := range lines {
		floor := y + lineHeight(line) - 14 - rowsFoot
		x := 10.0
		for _, r := range line {
			s.Canvas.Open("", x+(pitch-smallWidth)/2, floor)
			d.linkRack(s.Canvas, r.Name, func() { d.smallRack(s.Canvas, r) })
			s.Canvas.Close()
			x += pitch
		}
		y += lineHeight(line)
	}
	d.legend(s.Canvas, 15, h-10, w-30, row.Racks)
	return s
}

// smallRack draws a rack that stands on y 0.
func (d *Drawing) smallRack(c *svg.Canvas, v *Rack) {
	h := smallUnit * float64(v.Units)
	c.Title(v.Name + ": " + v.holds() + ", " + v.gauges()[0].words())
	c.Fit(0, -h-20, smallWidth, svg.Font{Size: 12, Bold: true}, v.Name)
	g := v.gauges()[0]
	f := svg.Font{Size: 10, Fill: svg.Soft}
	words := []string{formatWatts(v.Load.Max)}
	if g.limit > 0 {
		words = []string{formatWatts(v.Load.Max) + " · " + formatShare(g.value, g.limit), words[0]}
	}
	if len(v.over()) > 0 {
		f.Bold, f.Fill = true, svg.Over
		words = []string{words[0] + " OVER", formatWatts(v.Load.Max) + " OVER", "OVER"}
	}
	c.Text(0, -h-7, f, firstFitting(smallWidth, f, words))
	c.Use(fmt.Sprintf("small frame %d", v.Units), 0, -h, func(c *svg.Canvas) {
		c.Rect(-1.5, -1.5, smallWidth+3, h+3, svg.Paint{Fill: frameFill, Stroke: svg.Ink, Width: 1.5})
	})
	for _, t := range v.things {
		d.smallThing(c, t)
	}
	y := 9.0
	for i, g := range v.gauges() {
		if i < 4 {
			g.barShape(c, 0, y-4, smallWidth, 4)
			y += 7
		}
	}
}

// smallThing draws a node, switch or shelf; its name where it is high enough.
func (d *Drawing) smallThing(c *svg.Canvas, t thing) {
	y, h := -smallUnit*float64(t.unit+t.height-1), smallUnit*float64(t.height)
	fill, f, name := shelfFill, svg.Font{Size: 10}, ""
	switch {
	case t.node != nil:
		name = t.node.Name
		if t.node.Role != nil || d.opt.Nodes != nil {
			fill = d.nodeFill(t.node)
		}
	case t.sw != nil:
		name, fill, f.Fill = t.sw.Label, switchFillOf(t.sw), svg.White
	default:
		name = t.shelf.Label
	}
	c.Use(fmt.Sprintf("small %d %s", t.height, fill), 0, y, func(c *svg.Canvas) {
		c.Rect(0.5, 0.5, smallWidth-1, h-1, svg.Paint{Fill: fill, Stroke: svg.Soft, Width: 0.7})
	})
	if t.node != nil && d.bad(t.node) {
		c.Rect(smallWidth-6, y+1, 5, h-2, svg.Paint{Fill: svg.Hatch})
	}
	if t.height >= 2 {
		c.Text(4, y+h/2+3.5, f, svg.ClipText(name, f, smallWidth-8))
	}
}
