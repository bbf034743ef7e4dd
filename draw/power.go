// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"

	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Measures of the power diagram.
const (
	feedBox    = 150.0 // height of the feeds
	pduHeight  = 62.0  // of a rack's line
	rackColumn = 190.0

	linesOfSheet = (sheetHeight - headHeight - 74) / int(pduHeight)
)

// Power draws the power of the site: the building's feeds, the PDUs that they
// reach with their phases, the racks; then the order of switching on.
func (d *Drawing) Power(names ...string) []svg.Sheet {
	var sheets []svg.Sheet
	if len(names) == 0 {
		sheets = append(sheets, d.feedSheet())
	}
	racks := d.alike(names)
	for number := 1; len(racks) > 0; number++ {
		lay, n, lines := d.layPDUs(racks), 0, 0
		for n < len(racks) && (n == 0 || lines+lay.lines(racks[n].Rack) <= linesOfSheet) {
			lines += lay.lines(racks[n].Rack)
			n++
		}
		sheets = append(sheets, d.pduSheet(number, racks[:n], lay, lines))
		racks = racks[n:]
	}
	if len(names) == 0 {
		sheets = append(sheets, d.orderSheets()...)
	}
	return sheets
}

// feedNames are the building's feeds: those with loads, then others that PDUs
// name.
func (d *Drawing) feedNames() []string {
	var out []string
	seen := map[string]bool{}
	add := func(n string) {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	for _, f := range d.plan.Feeds {
		add(f.Name)
	}
	for _, r := range d.racks {
		for _, p := range r.PDUs {
			add(p.Feed)
		}
	}
	return out
}

// feedSheet draws the feeds, and what each row draws.
func (d *Drawing) feedSheet() svg.Sheet {
	const rowLine, perLine, w = 22.0, 4, sheetWidth
	boxWidth := min(480, (w-20+12)/float64(max(1, min(len(d.plan.Feeds), perLine)))-12)
	rows := d.rows
	if len(rows) > 36 {
		rows = rows[:36]
	}
	boxes := (len(d.plan.Feeds) + perLine - 1) / perLine
	words := d.energyWords()
	h := headHeight + float64(boxes)*(feedBox+12) + 64 + 18*float64(min(len(words), 1)) + rowLine*float64(len(rows)+1)
	s := d.newSheet("power", "Power: "+formatWatts(d.total().Max)+" at most, "+formatWatts(d.total().Typical)+" typical", "The building's feeds with their loads, their limits and the load after the worst loss; then the load of each row.", w, h)
	s.Linked = d.linked
	y := float64(headHeight)
	for i, f := range d.plan.Feeds {
		s.Canvas.Open("", 10+float64(i%perLine)*(boxWidth+12), y+float64(i/perLine)*(feedBox+12))
		d.feedBox(s.Canvas, f, boxWidth)
		s.Canvas.Close()
	}
	y += float64(boxes) * (feedBox + 12)
	if boxes == 0 {
		s.Canvas.Text(10, y+16, svg.Font{Size: 12}, "No PDU of this site names a feed.")
	}
	if words != "" {
		y += 18
		s.Canvas.Fit(10, y, w-20, svg.Font{Size: 12}, words)
	}
	y += 42
	s.Canvas.Text(10, y, svg.Font{Bold: true, Size: 13}, "By row")
	for _, r := range rows {
		y += rowLine
		d.rowPower(s.Canvas, r, y, w)
	}
	if len(rows) < len(d.rows) {
		s.Canvas.Text(10, y+rowLine, svg.Font{Fill: svg.Soft}, "and "+formatCount(len(d.rows)-len(rows), "row", "rows")+" more")
	}
	return s
}

// energyWords says what the racks take in a year, and what it costs; empty without prices.
func (d *Drawing) energyWords() string {
	if d.cost == nil {
		return ""
	}
	words := fmt.Sprintf("A year at typical power: %s MWh in the racks", formatThousands(int(d.cost.Energy/1000)))
	if d.cost.Building != d.cost.Energy {
		words += fmt.Sprintf(", %s MWh with what the building takes", formatThousands(int(d.cost.Building/1000)))
	}
	if d.cost.Year > 0 {
		words += fmt.Sprintf(": %s %s", d.cost.Currency, formatThousands(int(d.cost.Year)))
	}
	return words + "."
}

func (d *Drawing) total() power.Load {
	var l power.Load
	for _, r := range d.rows {
		l.Typical += r.Load.Typical
		l.Max += r.Load.Max
	}
	return l
}

// feedBox draws one feed of the building.
func (d *Drawing) feedBox(c *svg.Canvas, f power.Feed, w float64) {
	now := gauge{label: "max", value: float64(f.Load.Max), limit: float64(f.Limit), mark: float64(f.Load.Typical), text: formatWatts(f.Load.Max), allowed: formatWatts(f.Limit)}
	worst := gauge{label: "loss of " + f.Lost, value: float64(f.Worst.Max), limit: float64(f.Limit), text: formatWatts(f.Worst.Max), allowed: formatWatts(f.Limit)}
	over := now.over() || worst.over()
	p := svg.Paint{Fill: svg.White, Stroke: svg.Ink, Width: 1.5, Round: 4}
	if over {
		p.Fill, p.Stroke = overFill, svg.Over
	}
	c.Rect(0.5, 0.5, w-1, feedBox-1, p)
	c.Fit(14, 27, w-28, svg.Font{Size: 16, Bold: true}, "Feed "+f.Name)
	racks, pdus := d.onFeed(f.Name)
	c.Fit(14, 45, w-28, svg.Font{Fill: svg.Soft}, formatCount(pdus, "PDU", "PDUs")+" in "+formatCount(racks, "rack", "racks")+", typical "+formatWatts(f.Load.Typical))
	now.wide(c, 14, 66, w-28)
	if f.Lost != "" {
		worst.wide(c, 14, 108, w-28)
	} else {
		c.Text(14, 118, svg.Font{Fill: svg.Soft}, "no other feed to lose")
	}
}

// wide draws a gauge in two lines: words, and a bar below.
func (g gauge) wide(c *svg.Canvas, x, y, w float64) {
	f := svg.Font{}
	if g.over() {
		f.Bold, f.Fill = true, svg.Over
	}
	c.Fit(x, y, w, f, g.label+": "+g.words())
	g.bar(c, x, y+6, w, 12)
}

func (d *Drawing) onFeed(feed string) (racks, pdus int) {
	for _, r := range d.racks {
		n := 0
		for _, p := range r.PDUs {
			if p.Feed == feed {
				n++
			}
		}
		if pdus += n; n > 0 {
			racks++
		}
	}
	return racks, pdus
}

// rowPower is one line of the table of rows.
func (d *Drawing) rowPower(c *svg.Canvas, r *Row, y, w float64) {
	var limit unit.Watts
	over := 0
	for _, v := range r.Racks {
		limit += v.MaxPower
		if v.MaxPower == 0 {
			limit = 0
			break
		}
	}
	for _, v := range r.Racks {
		if len(v.over()) > 0 {
			over++
		}
	}
	c.Fit(10, y, 150, svg.Font{}, r.title())
	c.Text(170, y, svg.Font{Fill: svg.Soft}, formatCount(len(r.Racks), "rack", "racks"))
	g := gauge{value: float64(r.Load.Max), limit: float64(limit), mark: float64(r.Load.Typical), text: formatWatts(r.Load.Max), allowed: formatWatts(limit)}
	g.bar(c, 250, y-10, 200, 11)
	f := svg.Font{}
	words := g.words()
	if over > 0 {
		f.Bold, f.Fill = true, svg.Over
		words += " · " + formatCount(over, "rack", "racks") + " over a limit"
	}
	c.Fit(462, y, w-472, f, words)
}
