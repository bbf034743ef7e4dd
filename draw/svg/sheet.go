// SPDX-License-Identifier: Apache-2.0

package svg

import (
	"bytes"
	"io"
	"strconv"
)

// Sheet is one drawing of a document.
type Sheet struct {
	ID      string // unique in the document
	Title   string
	Desc    string // what is seen, for those who do not see it
	W, H    float64
	Canvas  *Canvas
	Anchors []string // further ids that lead here
	Linked  bool     // has links inside
}

// Defs are the shapes that a document draws many times. They belong to the
// canvases of one document.
type Defs struct {
	ids map[string]string
	buf bytes.Buffer
}

// NewDefs returns no shapes.
func NewDefs() *Defs { return &Defs{ids: map[string]string{}} }

// shape returns the id of the shape of that key.
func (d *Defs) shape(key string, draw func(*Canvas)) string {
	if id, ok := d.ids[key]; ok {
		return id
	}
	c := NewCanvas(d)
	draw(c) // may add shapes itself
	id := "s" + strconv.Itoa(len(d.ids)+1)
	d.ids[key] = id
	d.buf.WriteString(`<g id="` + id + `">`)
	d.buf.Write(c.buf)
	d.buf.WriteString("</g>\n")
	return id
}

// gap is the room between the sheets of one file.
const gap = 24

// WriteSheets writes the sheets as one SVG file, one below the other.
func WriteSheets(w io.Writer, title string, sheets []Sheet, d *Defs) error {
	var width, height float64
	desc := ""
	for i, s := range sheets {
		width = max(width, s.W)
		height += s.H
		if i > 0 {
			height += gap
			desc += " "
		}
		desc += s.Desc
	}
	c := &Canvas{}
	c.raw(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	c.begin(Sheet{ID: "drawing", Title: title, Desc: desc, W: width, H: height})
	c.raw("<defs>")
	c.buf = append(c.buf, d.buf.Bytes()...)
	c.raw("</defs>\n")
	c.Rect(0, 0, width, height, Paint{Fill: White})
	y := 0.0
	for _, s := range sheets {
		c.raw("\n")
		c.Open(s.ID, 0, y)
		c.Append(s.Canvas)
		c.Close()
		y += s.H + gap
	}
	c.raw("\n</svg>\n")
	_, err := w.Write(c.buf)
	return err
}

// begin opens an svg element of the size of s.
func (c *Canvas) begin(s Sheet) {
	c.raw(`<svg xmlns="http://www.w3.org/2000/svg"`)
	if s.Linked {
		c.raw(` role="group"`)
	} else {
		c.raw(` role="img"`)
	}
	c.word("aria-labelledby", s.ID+"-t "+s.ID+"-d")
	c.attr("width", s.W)
	c.attr("height", s.H)
	c.raw(` viewBox="0 0 `)
	c.buf = appendNumber(c.buf, s.W)
	c.raw(" ")
	c.buf = appendNumber(c.buf, s.H)
	c.raw(`"`)
	c.word("font-family", FontFamily)
	c.attr("font-size", DefaultSize)
	c.word("fill", Ink)
	c.raw(">")
	for _, t := range [][3]string{{"title", s.ID + "-t", s.Title}, {"desc", s.ID + "-d", s.Desc}} {
		c.raw("<" + t[0])
		c.word("id", t[1])
		c.raw(">")
		c.buf = appendEscaped(c.buf, t[2])
		c.raw("</" + t[0] + ">")
	}
	c.raw("\n")
}

// Inline writes the sheet as an svg element of an HTML page, which has the
// shapes of its document elsewhere: see Shapes.
func (s Sheet) Inline(w io.Writer) error {
	c := &Canvas{}
	c.begin(s)
	c.Append(s.Canvas)
	c.raw("</svg>\n")
	_, err := w.Write(c.buf)
	return err
}

// Shapes writes an svg element without a size that holds the shapes of a page.
func (d *Defs) Shapes(w io.Writer) error {
	_, err := io.WriteString(w, `<svg xmlns="http://www.w3.org/2000/svg" width="0" height="0" aria-hidden="true" font-family="`+FontFamily+`" font-size="11" fill="`+Ink+`"><defs>`+d.buf.String()+"</defs></svg>\n")
	return err
}
