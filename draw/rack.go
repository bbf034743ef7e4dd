// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/internal/fold"
	"github.com/ironrail/ironrail/inventory"
)

// Measures of an elevation.
const (
	unitHeight = 17.0 // of one rack unit
	bodyWidth  = 242.0
	numWidth   = 22.0 // of the unit numbers
	stripWidth = 26.0 // of a PDU
	rackHead   = 52.0
	gaugeLine  = 17.0
	cellMargin = 10.0
	leastCell  = 355.0 // for the gauges
)

// rackCell is racks that are drawn once, as the first of them.
type rackCell struct {
	*Rack
	alike []*Rack // all of them
}

// Racks draws the elevations of these racks. Without names it draws all of them, those
// that are alike but for the names of what stands in them once, unless Options.Each.
// Unknown names are left out: see RackNames.
func (d *Drawing) Racks(names ...string) []svg.Sheet {
	cells := d.rackCells(names)
	width := 0.0 // of a cell
	for _, r := range cells {
		w, _ := r.cell()
		width = max(width, w)
	}
	perSheet := max(1, int(sheetWidth/width))
	if len(cells) > perSheet { // all sheets are equally wide
		width = sheetWidth / float64(perSheet)
	}
	var sheets []svg.Sheet
	for len(cells) > 0 {
		n := min(perSheet, len(cells))
		sheets = append(sheets, d.rackSheet(len(sheets)+1, cells[:n], width, len(cells) > n || len(sheets) > 0))
		cells = cells[n:]
	}
	return sheets
}

// rackCells are the racks that are drawn, in the order of a walk.
func (d *Drawing) rackCells(names []string) (cells []rackCell) {
	index := map[string]int{}
	for _, r := range d.racks {
		if !isWanted(r.Name, names) {
			continue
		}
		if len(names) == 0 && !d.opt.Each && !d.opt.Serials {
			key := d.rackKey(r)
			if at, known := index[key]; known {
				cells[at].alike = append(cells[at].alike, r)
				continue
			}
			index[key] = len(cells)
		}
		cells = append(cells, rackCell{r, []*Rack{r}})
	}
	return cells
}

// rackKey is all that an elevation is drawn from, but for names and places.
func (d *Drawing) rackKey(v *Rack) string {
	var b strings.Builder
	b.WriteString(v.powerKey())
	fmt.Fprintf(&b, "%d %t %d %q", v.Units, v.stacked, v.Unknown, v.rack.Orientation)
	for _, g := range v.gauges() {
		b.WriteString(g.words())
	}
	for _, t := range v.things {
		fmt.Fprintf(&b, "\n%d %d ", t.unit, t.height)
		switch {
		case t.node != nil:
			m, _ := d.mark(t.node)
			fmt.Fprintf(&b, "node %p %p %q", t.node.Role, t.node.Hardware, m.Text)
		case t.sw != nil:
			fmt.Fprintf(&b, "switch %q %q %d %v %q", t.sw.Kind, t.sw.Model, t.sw.Ports, t.sw.Power, t.sw.Label)
		default:
			fmt.Fprintf(&b, "shelf %s", shelfWords(t.shelf))
		}
	}
	return b.String()
}

func isWanted(name string, names []string) bool {
	if len(names) == 0 {
		return true
	}
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// cell is the room that an elevation takes.
func (v *Rack) cell() (w, h float64) {
	return max(leastCell, numWidth+bodyWidth+float64(len(v.PDUs))*(stripWidth+3)) + 2*cellMargin,
		rackHead + unitHeight*float64(v.Units) + 16 + gaugeLine*float64(len(v.gauges())+1)
}

// rackSheet draws racks on one floor, each in a cell; a sheet that is one of several has
// their width.
func (d *Drawing) rackSheet(number int, cells []rackCell, cell float64, several bool) svg.Sheet {
	width, up, down := cell*float64(len(cells)), 0.0, 0.0 // up and down of the floor
	if several {
		width = sheetWidth
	}
	var racks []*Rack
	for _, r := range cells {
		_, h := r.cell()
		body := rackHead + unitHeight*float64(r.Units)
		up, down = max(up, body), max(down, h-body)
		racks = append(racks, r.Rack)
	}
	title := "Rack " + cells[0].name()
	if len(cells) > 1 {
		title = "Racks " + cells[0].name() + " to " + cells[len(cells)-1].name()
	}
	desc := fmt.Sprintf("Elevation of %s, seen from the %s.", formatCount(len(cells), "rack", "racks"), d.opt.Side)
	height := up + down
	s := d.newSheet("racks-"+strconv.Itoa(number), title, desc, width, headHeight+height+24)
	for i, r := range cells {
		id := rackID(r.Name)
		if d.linked {
			for _, a := range r.alike {
				s.Anchors = append(s.Anchors, rackID(a.Name))
			}
			id = ""
		}
		s.Canvas.Open(id, cell*float64(i)+cellMargin, headHeight+up-unitHeight*float64(r.Units)-rackHead)
		d.elevation(s.Canvas, r, cell-2*cellMargin)
		s.Canvas.Close()
	}
	d.legend(s.Canvas, cellMargin, headHeight+height+12, width-2*cellMargin, racks)
	return s
}

// name is the name of the rack, or of those that are alike.
func (r rackCell) name() string {
	names := make([]string, len(r.alike))
	for i, a := range r.alike {
		names[i] = a.Name
	}
	return fold.Names(names)
}

// elevation draws a rack with its PDUs, heading and gauges.
func (d *Drawing) elevation(c *svg.Canvas, v rackCell, width float64) {
	d.rackTitle(c, v, width)
	left := (len(v.PDUs) + 1) / 2
	x, h := 0.0, unitHeight*float64(v.Units)
	strips := v.PDUs
	if d.opt.Side == Front { // PDUs stand at the rear: the first is at the right from the front
		strips = mirrorPDUs(v.PDUs)
		left = len(v.PDUs) - left
	}
	for i, p := range strips {
		if i == left {
			x += numWidth + bodyWidth
		}
		p.strip(c, x+1, rackHead, stripWidth, h)
		x += stripWidth + 3
	}
	body := float64(left) * (stripWidth + 3)
	c.Open("", body, rackHead)
	d.frame(c, v.Rack)
	c.Open("", numWidth, 0)
	d.drawRackItems(c, v.Rack, h)
	c.Close()
	c.Close()
	y := rackHead + h + 20
	for _, g := range v.gauges() {
		g.line(c, 0, y, width)
		y += gaugeLine
	}
	foot := svg.Font{Size: 10, Fill: svg.Soft}
	if len(v.above) > 0 {
		foot.Bold, foot.Fill = true, svg.Over
	}
	c.Fit(0, y, width, foot, v.footer())
}

func mirrorPDUs(p []PDUNumber) []PDUNumber {
	out := make([]PDUNumber, len(p))
	for i := range p {
		out[len(p)-1-i] = p[i]
	}
	return out
}

func (d *Drawing) rackTitle(c *svg.Canvas, v rackCell, width float64) {
	c.Fit(0, 16, width, svg.Font{Size: 15, Bold: true}, v.name())
	where := "no row"
	if v.Row != "" {
		where = "row " + v.Row
	}
	if len(v.alike) > 1 {
		where += " · " + strconv.Itoa(len(v.alike)) + " racks alike, drawn as " + v.Name
	} else if v.Position > 0 {
		where += ", position " + strconv.Itoa(v.Position)
	}
	c.Fit(0, 31, width, svg.Font{Fill: svg.Soft}, where+" · "+v.holds())
	view := string(d.opt.Side) + " view"
	if o := v.rack.Orientation; o != "" && len(v.rack.Switches) > 0 {
		view += " · ports face the " + o
	}
	c.Fit(0, 45, width, svg.Font{Size: 10, Fill: svg.Soft}, view)
}

// holds counts what stands in the rack.
func (v *Rack) holds() string {
	s := formatCount(v.Nodes, "node", "nodes")
	if v.Switches > 0 {
		s += " · " + formatCount(v.Switches, "switch", "switches")
	}
	if v.Shelves > 0 {
		s += " · " + formatCount(v.Shelves, "shelf", "shelves")
	}
	return s
}

// footer says what is free, and what the gauges do not know.
func (v *Rack) footer() string {
	s := ""
	switch {
	case v.stacked:
		s = "units not given"
	case v.Free == 0:
		s = "no unit free"
	default:
		largest := 0
		for _, g := range v.gaps {
			largest = max(largest, g.height)
		}
		s = fmt.Sprintf("%dU of %dU free, largest gap %dU", v.Free, v.Units, largest)
	}
	if len(v.above) > 0 {
		s = "HIGHER THAN THE RACK: " + joinList(v.above) + " · " + s
	}
	if v.Unknown > 0 {
		s += " · power of " + strconv.Itoa(v.Unknown) + " not given"
	}
	return s
}

// frame draws the empty rack with its unit numbers, one shape for all racks of
// its height.
func (d *Drawing) frame(c *svg.Canvas, v *Rack) {
	units, stacked := v.Units, v.stacked
	c.Use(fmt.Sprintf("frame %d %t", units, stacked), 0, 0, func(c *svg.Canvas) {
		h := unitHeight * float64(units)
		c.Rect(numWidth-3, -3, bodyWidth+6, h+6, svg.Paint{Fill: frameFill, Stroke: svg.Ink, Width: 2, Round: 2})
		for u := 1; u <= units; u++ {
			y := h - unitHeight*float64(u)
			if u < units {
				c.Line(numWidth, y, numWidth+bodyWidth, y, svg.Paint{Stroke: svg.Faint})
			}
			if !stacked {
				c.Text(numWidth-6, y+12.5, svg.Font{Size: 10, Anchor: svg.End, Fill: svg.Soft}, strconv.Itoa(u))
			}
		}
	})
}

// drawRackItems draws what stands in the rack, and names the gaps of two units and
// more.
func (d *Drawing) drawRackItems(c *svg.Canvas, v *Rack, h float64) {
	for _, g := range v.gaps {
		if g.height > 1 {
			y := h - unitHeight*float64(g.unit-1+g.height/2) - 4.5 // in one unit, between the lines
			c.Text(bodyWidth/2, y, svg.Font{Anchor: svg.Middle, Fill: svg.Soft}, strconv.Itoa(g.height)+"U free")
		}
	}
	for _, t := range v.things {
		c.Open("", 0, h-unitHeight*float64(t.unit+t.height-1))
		switch {
		case t.node != nil:
			d.chassis(c, t.node)
		case t.sw != nil:
			d.switchBox(c, t.sw)
		default:
			d.shelfBox(c, t.shelf)
		}
		c.Close()
	}
}

// strip draws a PDU beside the rack, filled to its load.
func (p PDUNumber) strip(c *svg.Canvas, x, y, w, h float64) {
	g := gauge{value: float64(p.Load.Max), limit: float64(p.Limit), text: formatWatts(p.Load.Max), allowed: formatWatts(p.Limit)}
	words := p.Name + " · feed " + p.Feed + " · " + g.words()
	key := fmt.Sprintf("strip %s\x00%.1f %.1f %.3f %t", words, w, h, g.value/max(g.limit, 1), p.over())
	c.Use(key, x, y, func(c *svg.Canvas) { p.stripShape(c, g, words, w, h) })
}

func (p PDUNumber) stripShape(c *svg.Canvas, g gauge, words string, w, h float64) {
	const x, y = 0, 0
	c.Rect(x, y, w, h, svg.Paint{Fill: svg.White, Stroke: svg.Soft, Round: 3})
	if g.limit > 0 && g.value > 0 {
		fill := h * min(g.value/g.limit, 1)
		c.Rect(x+1, y+h-fill, w-2, fill, svg.Paint{Fill: loadColour(g.value / g.limit)})
	}
	f := svg.Font{Size: 11, Turned: true, Anchor: svg.Middle}
	if p.over() {
		c.Rect(x+1, y+1, 5, h-2, svg.Paint{Fill: svg.Hatch})
		f.Bold, f.Fill = true, svg.Over
		if !g.over() {
			words += " · OVER after a loss"
		}
	}
	c.Fit(x+w/2+5, y+h/2, h-10, f, words)
}

// ratedPower is what a node draws at most, in words; "" when it is not known.
func ratedPower(n *inventory.Node) string {
	if n.Hardware == nil || n.Hardware.Power.Max == 0 {
		return ""
	}
	return formatWatts(n.Hardware.Power.Max)
}
