// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/inventory/unit"
)

// run is neighbouring racks of a row that have equal PDUs and shelves with equal
// loads: they are drawn once.
type run struct {
	*Rack
	last *Rack
	n    int
}

// alike are the runs of the racks that have PDUs or shelves.
func (d *Drawing) alike(names []string) []run {
	var out []run
	before := ""
	for _, r := range d.racks {
		if !isWanted(r.Name, names) {
			continue
		}
		if len(r.PDUs)+r.Shelves == 0 {
			before = ""
			continue
		}
		if key := r.powerKey(); key != before {
			out, before = append(out, run{Rack: r}), key
		}
		last := &out[len(out)-1]
		last.last, last.n = r, last.n+1
	}
	return out
}

// powerKey is all that the power of a rack is drawn from.
func (v *Rack) powerKey() string {
	key := fmt.Sprintf("%q %.0f %.0f %.0f", v.Row, v.Load.Max, v.Load.Typical, v.MaxPower)
	for _, p := range v.PDUs {
		key += " " + p.key()
	}
	for _, s := range v.power.Shelves {
		key += fmt.Sprintf(" %.0f %.0f %.0f", s.Load.Max, s.Limit, s.Installed)
	}
	return key
}

// key is all that a PDU is drawn from.
func (p PDUNumber) key() string {
	key := fmt.Sprintf("%q %q %.0f %.0f %t", p.Name, p.Feed, p.Load.Max, p.Limit, p.over())
	for _, ph := range p.Phases {
		key += fmt.Sprintf(" %.0f %.0f %.0f", ph.Load.Max, ph.Worst.Max, ph.Limit)
	}
	return key
}

// pduSheet draws racks line by line: a bus for each feed, the PDUs that it feeds,
// and the rack.
func (d *Drawing) pduSheet(number int, racks []run, lay pduLayout, lines int) svg.Sheet {
	const w = sheetWidth
	h := headHeight + 62 + float64(lines)*pduHeight + 12
	title := "PDUs of rack " + racks[0].Name
	if last := racks[len(racks)-1].last; last != racks[0].Rack {
		title = "PDUs of racks " + racks[0].Name + " to " + last.Name
	}
	s := d.newSheet("pdus-"+strconv.Itoa(number), title, "Each rack with its PDUs: the load of each phase against its derated limit, and after the loss of the worst feed.", w, h)
	s.Linked = d.linked
	legendLoad(s.Canvas, 10, headHeight+12, w-20)
	y := headHeight + 52.0
	at := y
	for i, r := range racks {
		h := float64(lay.lines(r.Rack)) * pduHeight
		if i%2 == 0 {
			s.Canvas.Rect(10, at, w-20, h, svg.Paint{Fill: frameFill})
		}
		at += h
	}
	lay.buses(s.Canvas, y, at-y)
	for _, r := range racks {
		s.Canvas.Open("", 10, y)
		d.linkRack(s.Canvas, r.Name, func() { r.powerHead(s.Canvas) })
		r.powerLine(s.Canvas, lay)
		s.Canvas.Close()
		y += float64(lay.lines(r.Rack)) * pduHeight
	}
	return s
}

// pduLayout is the columns of a power diagram: one for each feed where no rack
// has two PDUs on one, else one for each PDU.
type pduLayout struct {
	feeds   []string // of the columns; nil: columns are not those of feeds
	columns int
	width   float64 // of a PDU
}

// The columns of a power diagram.
const (
	columnGap   = 26.0 // for the bus
	mostColumns = 4
	mostColumn  = 700.0
)

func (d *Drawing) layPDUs(racks []run) pduLayout {
	l := pduLayout{feeds: d.feedNames(), columns: 1}
	byFeed := len(l.feeds) > 0 && len(l.feeds) <= mostColumns
	for _, r := range racks {
		seen := map[string]bool{}
		for _, p := range r.PDUs {
			byFeed = byFeed && !seen[p.Feed]
			seen[p.Feed] = true
		}
		l.columns = max(l.columns, min(len(r.PDUs), mostColumns))
	}
	if l.columns < 2 {
		l.columns = 2 // for shelves, and a sheet wide enough for its title
	}
	if !byFeed {
		l.feeds = nil
	} else {
		l.columns = max(len(l.feeds), 2)
	}
	l.width = min(mostColumn, (sheetWidth-20-rackColumn)/float64(l.columns)-columnGap)
	return l
}

// buses draws the feed of each column as a bus bar that runs past its PDUs.
func (l pduLayout) buses(c *svg.Canvas, y, h float64) {
	for i, f := range l.feeds {
		x := 10 + rackColumn + float64(i)*(l.width+columnGap)
		c.Line(x+8, y-8, x+8, y+h-pduHeight/2, svg.Paint{Stroke: svg.Ink, Width: 4})
		c.Fit(x+4, y-14, l.width, svg.Font{Size: 13, Bold: true}, "feed "+f)
	}
}

// lines is how many lines a rack takes: its PDUs, then its shelves.
func (l pduLayout) lines(v *Rack) int {
	n := 1
	if l.feeds == nil {
		n = (len(v.PDUs) + l.columns - 1) / l.columns
	}
	if len(v.PDUs) == 0 {
		n = 0
	}
	if v.Shelves > 0 {
		n++
	}
	return max(n, 1)
}

// place is where a PDU stands: its column and line, from 0.
func (l pduLayout) place(i int, p PDUNumber) (column, line int) {
	if l.feeds != nil {
		return slices.Index(l.feeds, p.Feed), 0
	}
	return i % l.columns, i / l.columns
}

// powerHead draws the rack at the left of its line.
func (v run) powerHead(c *svg.Canvas) {
	name := v.Name
	if v.n > 1 {
		name += " to " + v.last.Name
		c.Fit(8, 59, rackColumn-16, svg.Font{Size: 10, Fill: svg.Soft}, formatCount(v.n, "rack", "racks")+" alike, each as drawn")
	}
	c.Fit(8, 18, rackColumn-16, svg.Font{Size: 12, Bold: true}, name)
	g := v.gauges()[0]
	f := svg.Font{Size: 10, Fill: svg.Soft}
	if g.over() {
		f.Bold, f.Fill = true, svg.Over
	}
	c.Fit(8, 33, rackColumn-16, f, g.words())
	g.barShape(c, 8, 40, rackColumn-24, 8)
}

// powerLine draws the PDUs of a rack, or its shelves.
func (v *Rack) powerLine(c *svg.Canvas, l pduLayout) {
	for i, p := range v.PDUs {
		column, line := l.place(i, p)
		x, y := rackColumn+float64(column)*(l.width+columnGap)+columnGap, float64(line)*pduHeight
		if l.feeds != nil {
			c.Line(x-columnGap+8, pduHeight/2, x, pduHeight/2, svg.Paint{Stroke: svg.Ink, Width: 2})
		}
		c.Open("", x, y)
		p.line(c, l.width)
		c.Close()
	}
	if v.Shelves > 0 {
		c.Open("", 0, float64(l.lines(v)-1)*pduHeight)
		v.shelfLine(c, rackColumn+columnGap, float64(l.columns)*(l.width+columnGap)-columnGap)
		c.Close()
	}
}

// line draws a PDU with its phases; equal ones are one shape.
func (p PDUNumber) line(c *svg.Canvas, w float64) {
	c.Use(fmt.Sprintf("pdu %.0f %s", w, p.key()), 0, 0, func(c *svg.Canvas) { p.lineShape(c, w) })
}

func (p PDUNumber) lineShape(c *svg.Canvas, w float64) {
	const head = 96
	box := svg.Paint{Fill: svg.White, Stroke: svg.Soft, Round: 3}
	if p.over() {
		box.Stroke, box.Width = svg.Over, 2
	}
	c.Rect(0.5, 3.5, w-1, pduHeight-7, box)
	c.Fit(8, 18, head-12, svg.Font{Bold: true}, p.Name)
	small := svg.Font{Size: 10, Fill: svg.Soft}
	c.Fit(8, 31, head-12, small, "feed "+p.Feed)
	c.Fit(8, 43, head-12, small, formatWatts(p.Load.Max))
	of := "of " + formatWatts(p.Limit)
	if p.Limit == 0 {
		of = "no limit"
	}
	c.Fit(8, 54.5, head-12, small, of)
	for i, ph := range p.Phases {
		if i == 3 {
			break
		}
		phaseLine(c, head, 17+float64(i)*16.5, w-head-8, i, ph)
	}
}

// phaseLine draws one phase: the load, and hatched what the worst loss adds.
func phaseLine(c *svg.Canvas, x, y, room float64, i int, ph power.Phase) {
	w := max(60, room-18-190)
	c.Text(x, y, svg.Font{Size: 10, Fill: svg.Soft}, "L"+strconv.Itoa(i+1))
	x += 18
	limit := float64(ph.Limit)
	c.Rect(x, y-9, w, 10, svg.Paint{Fill: svg.White, Stroke: svg.Soft})
	worst := max(ph.Worst.Max, ph.Load.Max)
	over := limit > 0 && float64(worst) > limit*(1+1e-9)
	if limit > 0 {
		load := w * min(float64(ph.Load.Max)/limit, 1)
		fill := svg.Loss
		if over {
			fill = svg.Hatch
		}
		if float64(ph.Load.Max) > limit {
			load = 0 // over without a loss: all of the bar is
		}
		c.Rect(x+load, y-9, w*min(float64(worst)/limit, 1)-load, 10, svg.Paint{Fill: fill})
		c.Rect(x, y-9, load, 10, svg.Paint{Fill: "#8fb3d9"})
	}
	words := []string{formatWatts(ph.Load.Max) + " → " + formatWatts(worst) + " of " + formatWatts(ph.Limit), formatWatts(worst) + " of " + formatWatts(ph.Limit)}
	f := svg.Font{Size: 10}
	if over {
		f.Bold, f.Fill = true, svg.Over
		words = []string{formatWatts(ph.Load.Max) + " → " + formatWatts(worst) + " OVER " + formatWatts(ph.Limit), formatWatts(worst) + " OVER " + formatWatts(ph.Limit), formatWatts(worst) + " OVER"}
	}
	c.Text(x+w+6, y, f, firstFitting(room-18-w-6, f, words))
}

// shelfLine draws the shelves of a tray rack, which share its load.
func (v *Rack) shelfLine(c *svg.Canvas, x, w float64) {
	var load, limit, installed unit.Watts
	for _, s := range v.power.Shelves {
		load, limit, installed = load+s.Load.Max, limit+s.Limit, installed+s.Installed
	}
	c.Rect(x+0.5, 3.5, w-1, pduHeight-7, svg.Paint{Fill: svg.White, Stroke: svg.Soft, Round: 3})
	c.Fit(x+8, 18, w-16, svg.Font{Bold: true}, formatCount(v.Shelves, "power shelf", "power shelves")+", "+formatWatts(installed)+" installed")
	g := gauge{label: "with what its redundancy leaves", value: float64(load), limit: float64(limit), text: formatWatts(load), allowed: formatWatts(limit)}
	f := svg.Font{Size: 10}
	if g.over() {
		f.Bold, f.Fill = true, svg.Over
	}
	c.Fit(x+8, 33, w-16, f, g.label+": "+g.words())
	g.bar(c, x+8, 40, min(w-16, 400), 10)
}

// legendLoad says what the bars mean.
func legendLoad(c *svg.Canvas, x, y, w float64) {
	end := x + w
	put := func(fill, name string) {
		c.Rect(x, y-10, 22, 11, svg.Paint{Fill: fill, Stroke: svg.Soft})
		c.Text(x+27, y, svg.Font{}, name)
		x += 27 + svg.TextWidth(name, svg.Font{}) + 14
	}
	put("#8fb3d9", "most load with all feeds")
	put(svg.Loss, "added by the loss of the worst feed")
	put(svg.Hatch, "over the derated limit, which is the whole bar")
	words := "L1 to L3: the phases of the PDU; a supply between two of them loads both · load → after the loss, of the limit"
	if x+svg.TextWidth(words, svg.Font{}) <= end {
		c.Text(x, y, svg.Font{}, words)
	}
}
