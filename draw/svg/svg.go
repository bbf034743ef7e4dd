// SPDX-License-Identifier: Apache-2.0

// Package svg writes drawings as SVG: shapes and text by presentation attributes
// only, so that a drawing keeps its looks where style sheets are refused (SVG 1.1
// section 6.4, CSP Level 3). Numbers have at most one decimal, so that the same
// drawing is the same bytes. All text is escaped, and is measured by a table of
// widths before it is placed. A Canvas belongs to one goroutine.
package svg

import (
	"math"
	"strconv"
)

// The colours of text and lines: on white, ink has a contrast of 17:1, Soft of
// 7:1, Over of 9:1.
const (
	Ink   = "#1b1f24"
	Soft  = "#57606a"
	Faint = "#d0d7de" // of lines, never of text
	White = "#ffffff"
	Over  = "#8b0a14"
)

// Paint is how a shape looks. An empty colour is none.
type Paint struct {
	Fill, Stroke string
	Width        float64 // of the stroke; 0: 1
	Dash         string  // as stroke-dasharray
	Round        float64 // radius of the corners of a rectangle
}

// Anchor is which part of a text its place names.
type Anchor uint8

// The anchors.
const (
	Start Anchor = iota
	Middle
	End
)

// Font is how a text looks. The zero Font is ink of DefaultSize.
type Font struct {
	Size   float64 // 0: DefaultSize
	Bold   bool
	Anchor Anchor
	Fill   string // "": Ink
	Turned bool   // reads upwards
}

// DefaultSize is the size of text in user units. A sheet of 1,500 units is
// printed 400 mm wide on A3, which makes it 8.3 points.
const DefaultSize = 11

func (f Font) size() float64 {
	if f.Size == 0 {
		return DefaultSize
	}
	return f.Size
}

// Canvas is a drawing in the making. The zero Canvas is empty and ready.
type Canvas struct {
	buf  []byte
	defs *Defs
}

// NewCanvas returns an empty canvas that may use shapes of defs.
func NewCanvas(defs *Defs) *Canvas { return &Canvas{defs: defs} }

// Bytes is what was drawn so far; it is valid until the next call.
func (c *Canvas) Bytes() []byte { return c.buf }

func (c *Canvas) raw(s string) { c.buf = append(c.buf, s...) }

// appendNumber appends v with at most one decimal.
func appendNumber(b []byte, v float64) []byte {
	n := int64(math.Round(v * 10))
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	b = strconv.AppendInt(b, n/10, 10)
	if n%10 != 0 {
		b = append(b, '.', byte('0'+n%10))
	}
	return b
}

func (c *Canvas) attr(name string, v float64) {
	c.raw(" ")
	c.raw(name)
	c.raw(`="`)
	c.buf = appendNumber(c.buf, v)
	c.raw(`"`)
}

func (c *Canvas) word(name, v string) {
	c.raw(" ")
	c.raw(name)
	c.raw(`="`)
	c.buf = appendEscaped(c.buf, v)
	c.raw(`"`)
}

func (c *Canvas) paint(p Paint) {
	if p.Fill == "" {
		c.raw(` fill="none"`)
	} else {
		c.word("fill", p.Fill)
	}
	if p.Stroke == "" {
		return
	}
	c.word("stroke", p.Stroke)
	if p.Width != 0 && p.Width != 1 {
		c.attr("stroke-width", p.Width)
	}
	if p.Dash != "" {
		c.word("stroke-dasharray", p.Dash)
	}
}

// The fills of rectangles that are hatched: of what is over its limit, and of
// what is added when a feed is lost. They are drawn as lines: printing to PDF
// takes minutes for a large page with as many patterns.
const (
	Hatch = "hatch"
	Loss  = "loss"
)

// Rect draws a rectangle from its upper left corner.
func (c *Canvas) Rect(x, y, w, h float64, p Paint) {
	switch p.Fill {
	case Hatch:
		p.Fill = "#f8d7da"
		c.rect(x, y, w, h, p)
		c.hatch(x, y, w, h, 8, Paint{Stroke: "#c1121f", Width: 2.5})
	case Loss:
		p.Fill = White
		c.rect(x, y, w, h, p)
		c.hatch(x, y, w, h, 5, Paint{Stroke: Soft})
	default:
		c.rect(x, y, w, h, p)
	}
}

// hatch draws lines at 45 degrees, a step apart, that end at the sides of a
// rectangle.
func (c *Canvas) hatch(x, y, w, h, step float64, p Paint) {
	if w < 1 || h < 1 {
		return
	}
	c.raw(`<path d="`)
	for k := step - h; k < w; k += step {
		from, to := max(0, -k), min(h, w-k)
		if to-from < 0.5 {
			continue
		}
		for i, v := range []float64{x + k + from, y + h - from, x + k + to, y + h - to} {
			c.raw([]string{"M", " ", "L", " "}[i])
			c.buf = appendNumber(c.buf, v)
		}
	}
	c.raw(`"`)
	p.Fill = ""
	c.paint(p)
	c.raw("/>")
}

func (c *Canvas) rect(x, y, w, h float64, p Paint) {
	c.raw("<rect")
	c.attr("x", x)
	c.attr("y", y)
	c.attr("width", max(w, 0))
	c.attr("height", max(h, 0))
	if p.Round > 0 {
		c.attr("rx", p.Round)
	}
	c.paint(p)
	c.raw("/>")
}

// Line draws a straight line.
func (c *Canvas) Line(x1, y1, x2, y2 float64, p Paint) {
	c.Path(p, x1, y1, x2, y2)
}

// Path draws a line from point to point; the coordinates come in pairs.
func (c *Canvas) Path(p Paint, xy ...float64) {
	c.raw(`<path d="M`)
	for i, v := range xy {
		switch {
		case i == 0:
		case i == 2:
			c.raw("L")
		default:
			c.raw(" ")
		}
		c.buf = appendNumber(c.buf, v)
	}
	c.raw(`"`)
	p.Fill = ""
	c.paint(p)
	c.raw("/>")
}

// Curve draws a line that leaves its first point and reaches its last one
// upright.
func (c *Canvas) Curve(x1, y1, x2, y2 float64, p Paint) {
	mid := (y1 + y2) / 2
	c.raw(`<path d="M`)
	for i, v := range []float64{x1, y1, x1, mid, x2, mid, x2, y2} {
		if i == 2 {
			c.raw("C")
		} else if i > 0 {
			c.raw(" ")
		}
		c.buf = appendNumber(c.buf, v)
	}
	c.raw(`"`)
	p.Fill = ""
	c.paint(p)
	c.raw("/>")
}

// Text writes s with its baseline at y. It is not clipped: see Fit.
func (c *Canvas) Text(x, y float64, f Font, s string) { c.text(x, y, f, s, "") }

// Fit writes s into w units from x: what is too long is clipped, and whole in
// the tooltip.
func (c *Canvas) Fit(x, y, w float64, f Font, s string) {
	short := ClipText(s, f, w)
	if short == s {
		c.text(x, y, f, s, "")
		return
	}
	c.text(x, y, f, short, s)
}

func (c *Canvas) text(x, y float64, f Font, s, title string) {
	if s == "" {
		return
	}
	c.raw("<text")
	c.attr("x", x)
	c.attr("y", y)
	if f.Size != 0 && f.Size != DefaultSize {
		c.attr("font-size", f.Size)
	}
	if f.Bold {
		c.raw(` font-weight="bold"`)
	}
	switch f.Anchor {
	case Middle:
		c.raw(` text-anchor="middle"`)
	case End:
		c.raw(` text-anchor="end"`)
	}
	if f.Fill != "" && f.Fill != Ink {
		c.word("fill", f.Fill)
	}
	if f.Turned {
		c.raw(` transform="rotate(-90 `)
		c.buf = appendNumber(c.buf, x)
		c.raw(" ")
		c.buf = appendNumber(c.buf, y)
		c.raw(`)"`)
	}
	c.raw(">")
	if title != "" {
		c.Title(title)
	}
	c.buf = appendEscaped(c.buf, s)
	c.raw("</text>")
}

// Title gives what is open a tooltip; it must come first in it.
func (c *Canvas) Title(s string) {
	c.raw("<title>")
	c.buf = appendEscaped(c.buf, s)
	c.raw("</title>")
}

// Open begins a group that is moved by x and y; id may be empty. Close ends it.
func (c *Canvas) Open(id string, x, y float64) {
	c.raw("<g")
	if id != "" {
		c.word("id", id)
	}
	if x != 0 || y != 0 {
		c.raw(` transform="translate(`)
		c.buf = appendNumber(c.buf, x)
		c.raw(" ")
		c.buf = appendNumber(c.buf, y)
		c.raw(`)"`)
	}
	c.raw(">")
}

// Close ends a group.
func (c *Canvas) Close() { c.raw("</g>") }

// Link begins a link to an id of the same document; Unlink ends it.
func (c *Canvas) Link(id string) {
	c.raw("<a")
	c.word("href", "#"+id)
	c.raw(">")
}

// Unlink ends a link.
func (c *Canvas) Unlink() { c.raw("</a>") }

// Use draws the shape of that key at x and y; it is drawn by draw when it is
// wanted for the first time.
func (c *Canvas) Use(key string, x, y float64, draw func(*Canvas)) {
	id := c.defs.shape(key, draw)
	c.raw(`<use href="#`)
	c.raw(id)
	c.raw(`"`)
	if x != 0 {
		c.attr("x", x)
	}
	if y != 0 {
		c.attr("y", y)
	}
	c.raw("/>")
}

// Append adds what another canvas has.
func (c *Canvas) Append(o *Canvas) { c.buf = append(c.buf, o.buf...) }
