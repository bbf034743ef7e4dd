// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"

	"github.com/ironrail/ironrail/draw/svg"
)

// gauge is a value against its limit.
type gauge struct {
	label        string
	value, limit float64 // limit 0: not given
	mark         float64 // a second value, such as the typical load; 0: none
	text         string  // the value in words
	allowed      string  // the limit in words
}

func (g gauge) over() bool { return g.limit > 0 && g.value > g.limit*(1+1e-9) }

// words is the gauge as text.
func (g gauge) words() string {
	switch {
	case g.limit == 0:
		return g.text + ", no limit given"
	case g.over():
		return g.text + " of " + g.allowed + " · " + formatShare(g.value, g.limit) + " OVER"
	default:
		return g.text + " of " + g.allowed + " · " + formatShare(g.value, g.limit)
	}
}

// bar draws the bar of a gauge: its whole width is the limit.
func (g gauge) bar(c *svg.Canvas, x, y, w, h float64) {
	frame := svg.Paint{Fill: svg.White, Stroke: svg.Soft}
	if g.limit == 0 {
		frame = svg.Paint{Stroke: svg.Soft, Dash: "2 3"}
	}
	c.Rect(x, y, w, h, frame)
	if g.limit > 0 && g.value > 0 {
		p := svg.Paint{Fill: "#8fb3d9"}
		if g.over() {
			p.Fill = svg.Hatch
		}
		c.Rect(x, y, w*min(g.value/g.limit, 1), h, p)
	}
	if g.limit > 0 && g.mark > 0 && g.mark <= g.limit {
		c.Line(x+w*g.mark/g.limit, y-1.5, x+w*g.mark/g.limit, y+h+1.5, svg.Paint{Stroke: svg.Ink, Width: 1.5})
	}
}

// line draws label, bar and words in one line of w units; equal gauges are one
// shape.
func (g gauge) line(c *svg.Canvas, x, y, w float64) {
	key := fmt.Sprintf("gauge %s\x00%s\x00%.0f %.3f %.3f", g.label, g.words(), w, g.value/max(g.limit, 1), g.mark/max(g.limit, 1))
	c.Use(key, x, y, func(c *svg.Canvas) { g.lineShape(c, w) })
}

func (g gauge) lineShape(c *svg.Canvas, w float64) {
	const x, y = 0, 0
	const labelWidth, barWidth = 44, 92
	c.Text(x, y, svg.Font{Size: 10, Fill: svg.Soft}, g.label)
	g.bar(c, x+labelWidth, y-9, barWidth, 10)
	f := svg.Font{Size: 10}
	if g.over() {
		f.Bold, f.Fill = true, svg.Over
	}
	c.Fit(x+labelWidth+barWidth+8, y, w-labelWidth-barWidth-8, f, g.words())
}

// barShape draws the bar of a gauge as a shape that equal ones share.
func (g gauge) barShape(c *svg.Canvas, x, y, w, h float64) {
	key := fmt.Sprintf("bar %.1f %.1f %.3f %.3f %t %t", w, h, g.value/max(g.limit, 1), g.mark/max(g.limit, 1), g.over(), g.limit > 0)
	c.Use(key, x, y, func(c *svg.Canvas) { g.bar(c, 0, 0, w, h) })
}

// gauges are the limits of a rack: power, weight, and heat into air and liquid.
func (v *Rack) gauges() []gauge {
	out := []gauge{
		{label: "power", value: float64(v.Load.Max), limit: float64(v.MaxPower), mark: float64(v.Load.Typical), text: formatWatts(v.Load.Max), allowed: formatWatts(v.MaxPower)},
		{label: "air", value: float64(v.Air), limit: float64(v.Cooling), text: formatWatts(v.Air), allowed: formatWatts(v.Cooling)},
	}
	if v.Liquid > 0 || v.LiquidCooling > 0 {
		out = append(out, gauge{label: "liquid", value: float64(v.Liquid), limit: float64(v.LiquidCooling), text: formatWatts(v.Liquid), allowed: formatWatts(v.LiquidCooling)})
	}
	if v.Weight > 0 || v.MaxWeight > 0 {
		out = append(out, gauge{label: "weight", value: float64(v.Weight), limit: float64(v.MaxWeight), text: formatKilograms(v.Weight), allowed: formatKilograms(v.MaxWeight)})
	}
	return out
}

// over names the limits that the rack is over.
func (v *Rack) over() []string {
	var out []string
	for _, g := range v.gauges() {
		if g.over() {
			out = append(out, g.label)
		}
	}
	if len(v.above) > 0 {
		out = append(out, "units")
	}
	for _, p := range v.PDUs {
		if p.over() {
			out = append(out, "PDU "+p.Name)
		}
	}
	return out
}

// over reports whether the PDU or one of its phases is over its limit, with all
// feeds or after the worst loss.
func (p PDUNumber) over() bool {
	if p.Limit > 0 && max(p.Load.Max, p.Worst.Max) > p.Limit*(1+1e-9) {
		return true
	}
	for _, ph := range p.Phases {
		if ph.Limit > 0 && max(ph.Load.Max, ph.Worst.Max) > ph.Limit*(1+1e-9) {
			return true
		}
	}
	return false
}
