// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"html/template"
	"strings"
)

// drawing is an SVG within the page. Texts in it are escaped. Nothing is said by colour
// alone: what is bad is crossed out or hatched, so that it shows in a copy without colours.
type drawing struct {
	strings.Builder
}

// newDrawing begins a drawing of a size in pixels that shrinks with the page.
func newDrawing(width, height float64, says string) *drawing {
	d := &drawing{}
	d.addf(`<svg role="img" aria-label="%s" viewBox="0 0 %g %g" width="%g" height="%g">`, safe(says), width, height, width, height)
	return d
}

func (d *drawing) addf(format string, values ...any) { fmt.Fprintf(d, format, values...) }

// rect draws a rectangle; class is one of the page's.
func (d *drawing) rect(class string, x, y, w, h float64) {
	d.addf(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, class, x, y, w, h)
}

// titled draws a rectangle that says something when it is pointed at.
func (d *drawing) titled(class, says string, x, y, w, h float64) {
	d.addf(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`, class, x, y, w, h, safe(says))
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.addf(`<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

// cross crosses a rectangle out.
func (d *drawing) cross(x, y, w, h float64) {
	d.addf(`<path class="cross" d="M%.1f %.1fl%.1f %.1fm0 %.1fl%.1f %.1f"/>`, x+1, y+1, w-2, h-2, -(h - 2), -(w - 2), h-2)
}

// text writes a text whose anchor is start, middle or end.
func (d *drawing) text(class, anchor string, x, y float64, text string) {
	d.addf(`<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`, class, anchor, x, y, safe(text))
}

// end returns the drawing.
func (d *drawing) end() template.HTML {
	d.WriteString("</svg>")
	return template.HTML(d.String()) //nolint:gosec // every text in it went through safe
}

// safe escapes a text for the terminal and for HTML.
func safe(text string) string { return html.EscapeString(clean(text)) }

// Sizes of a distribution, in pixels.
const (
	spreadWidth  = 240.0
	spreadHeight = 46.0
	leastBar     = 3.0 // of a bin that is not empty: one slow rail among thousands shows
)

// Draw shows a distribution: a bar for each bin, the bad ones hatched, and dashed lines at
// the limits; many limits are a band from the least to the most.
func (s *spread) Draw() template.HTML {
	d := newDrawing(spreadWidth, spreadHeight, fmt.Sprintf("%s: %s; %s; %s", s.Check, s.Counts(), s.Range(), s.Limit()))
	low, high := s.bounds()
	x := func(v float64) float64 { return spreadWidth * (v - low) / (high - low) }
	floor := spreadHeight - 2
	good, bad := s.count()
	most := 1
	for i := range bins {
		most = max(most, good[i]+bad[i])
	}
	tall := func(n int) float64 {
		if n == 0 {
			return 0
		}
		return max(leastBar, (floor-4)*float64(n)/float64(most))
	}
	if n := len(s.Limits); n > 1 {
		from, to := x(s.Limits[0].Value), x(s.Limits[n-1].Value)
		d.rect("band", from, 0, to-from, floor)
	}
	w := spreadWidth / bins
	for i := range bins {
		g, b := tall(good[i]), tall(bad[i])
		at := float64(i) * w
		if g > 0 {
			d.rect("bar", at+.5, floor-g, w-1, g)
		}
		if b > 0 {
			d.rect("badbar", at+.5, max(0, floor-g-b), w-1, b)
			d.rect("hatch", at+.5, max(0, floor-g-b), w-1, b)
		}
	}
	for i, l := range s.Limits {
		if i == 0 || i == len(s.Limits)-1 {
			d.line("limit", x(l.Value), 0, x(l.Value), floor)
		}
	}
	d.line("axis", 0, floor, spreadWidth, floor)
	return d.end()
}

// Sizes of the map of rails, in pixels.
const (
	railsWide  = 960.0
	railsLabel = 92.0 // left of a line: the name of the rail
	railHeight = 11.0
	railNodes  = 128 // in a line, at most
	railWidest = 26.0
	slowRail   = 90.0 // percent of the median of a rail, from which on a cell is darkest
)

// draw shows the rails against the nodes: lines of at most 128 nodes, and in each a row
// for a rail. A cell is darker the less it carries beside the median of its rail; one that
// failed is crossed out.
func (m railMap) draw() template.HTML {
	lines := (len(m.Nodes) + railNodes - 1) / railNodes
	block := railHeight*float64(len(m.Rails)) + 18
	d := newDrawing(railsWide, float64(lines)*block, fmt.Sprintf("%d rails of %d nodes", len(m.Rails), len(m.Nodes)))
	w := min(railWidest, (railsWide-railsLabel)/float64(min(len(m.Nodes), railNodes)))
	for i := range lines {
		names := m.Nodes[i*railNodes : min(len(m.Nodes), (i+1)*railNodes)]
		top := float64(i) * block
		for k, rail := range m.Rails {
			y := top + float64(k)*railHeight
			d.text("label", "end", railsLabel-6, y+railHeight-2.5, rail)
			for j, node := range names {
				m.cell(d, node, rail, railsLabel+float64(j)*w, y, w)
			}
		}
		foot := top + railHeight*float64(len(m.Rails)) + 10
		d.text("label", "start", railsLabel, foot, names[0])
		if len(names) > 1 {
			d.text("label", "end", railsLabel+w*float64(len(names)), foot, names[len(names)-1])
		}
	}
	return d.end()
}

// cell draws one rail of one node.
func (m railMap) cell(d *drawing, node, rail string, x, y, w float64) {
	c, ok := m.cells[node][rail]
	switch {
	case !ok:
		d.titled("empty", node+" "+rail+": not measured", x+.4, y+.4, w-.8, railHeight-.8)
	case c.Failed:
		d.titled("failed", fmt.Sprintf("%s %s: %s, failed", node, rail, c.Figure), x+.4, y+.4, w-.8, railHeight-.8)
		d.cross(x+.4, y+.4, w-.8, railHeight-.8)
	default:
		of := 100.0
		if usual := m.usual[rail]; usual > 0 {
			of = 100 * c.Value / usual
		}
		d.titled("heat"+heatOf(of, 100, slowRail), fmt.Sprintf("%s %s: %s, %.0f%% of the rail's median, %.0f%% of the limit", node, rail, c.Figure, of, c.Percent), x+.4, y+.4, w-.8, railHeight-.8)
	}
}

// heatOf is a shade from 0 (light) to 4 (dark), as v goes from light to dark.
func heatOf(v, light, dark float64) string {
	return fmt.Sprint(min(max(int(5*(v-light)/(dark-light)), 0), 4))
}

// Sizes of the map of racks, in pixels.
const (
	racksWide = 960.0
	manyRacks = 20 // more are drawn small, without figures
)

// rackDrawing is the map of the racks.
type rackDrawing struct {
	*drawing
	in         Input
	status     map[string]Status
	warm       map[string]float64
	cool, hot  float64 // of all nodes, °C
	unit, wide float64 // of one unit, and of a rack
	figures    bool
}

// drawRacks shows the racks with what stands in each unit. A node is darker the warmer its
// warmest GPU got under load; one that is not accepted has a symbol, and is crossed
// out when something was found of it.
func drawRacks(in Input) template.HTML {
	r := &rackDrawing{in: in, status: map[string]Status{}, warm: warmth(in), unit: 8, wide: 46, figures: true}
	for _, n := range in.Nodes {
		r.status[n.Name] = n.Status
	}
	for _, v := range r.warm {
		if r.hot == 0 || v < r.cool {
			r.cool = v
		}
		r.hot = max(r.hot, v)
	}
	if len(in.Racks) > manyRacks {
		r.unit, r.wide, r.figures = 4, 22, false
	}
	tall := 1
	for _, x := range in.Racks {
		tall = max(tall, x.tall())
	}
	perLine := int(racksWide / (r.wide + 2))
	lines := (len(in.Racks) + perLine - 1) / perLine
	block := float64(tall)*r.unit + 26
	r.drawing = newDrawing(racksWide, float64(lines)*block, fmt.Sprintf("%d racks", len(in.Racks)))
	for i, x := range in.Racks {
		r.rack(x, float64(i%perLine)*(r.wide+2), float64(i/perLine)*block+12, float64(tall)*r.unit)
	}
	return r.end()
}

// tall is how many units a rack has, or what stands in it.
func (x Rack) tall() int {
	n := x.Units
	for _, p := range x.Places {
		n = max(n, p.Unit+max(p.Height, 1)-1)
	}
	return max(n, len(x.Places)) // without units they stand one above the other
}

// rack draws one rack, whose name stands above it and whose unit 1 is at the bottom.
func (r *rackDrawing) rack(x Rack, left, top, height float64) {
	name := x.Name
	if !r.figures && len(name) > 5 {
		name = name[len(name)-5:]
	}
	r.text("label", "middle", left+r.wide/2, top-3, name)
	own := float64(x.tall()) * r.unit
	r.rect("rack", left+.5, top+height-own, r.wide-1, own)
	for i, p := range x.Places {
		unit := p.Unit
		if unit == 0 {
			unit = i + 1
		}
		h := float64(max(p.Height, 1)) * r.unit
		r.place(x.Name, p, left+1.5, top+height-float64(unit-1)*r.unit-h+.5, r.wide-3, h-1)
	}
}

// place draws what stands in some units.
func (r *rackDrawing) place(rack string, p Place, x, y, w, h float64) {
	if p.Kind != NodePlace {
		r.titled("device", fmt.Sprintf("%s, rack %s, unit %d", p.Name, rack, p.Unit), x, y, w, h)
		return
	}
	status, known := r.status[p.Name]
	says, class := fmt.Sprintf("%s, rack %s, unit %d: %s", p.Name, rack, p.Unit, status), "node"
	warm, measured := r.warm[p.Name]
	if measured {
		says += fmt.Sprintf(", %.0f °C", warm)
		class = "heat" + heatOf(warm, r.cool, max(r.hot, r.cool+5))
	}
	words := ""
	if measured {
		words = fmt.Sprintf("%.0f", warm)
	}
	switch {
	case !known:
		class, says = "empty", p.Name+": not in this report"
	case status.failed():
		class = "failed"
	case status != Accepted:
		class, words = "open", symbols[status]
	}
	r.titled(class, says, x, y, w, h)
	if status.failed() {
		r.cross(x, y, w, h)
		words = ""
	}
	if words != "" && h >= 8 && (r.figures || class == "open") {
		ink := "figure"
		if class == "heat3" || class == "heat4" {
			ink = "light"
		}
		r.text(ink, "middle", x+w/2, y+h/2+3, words)
	}
}
