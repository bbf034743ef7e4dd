// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/draw/svg"
)

// element is one element of a drawing that was read back.
type element struct {
	name  string
	attrs map[string]string
	text  string
	in    []*element
}

func (e *element) number(t *testing.T, name string) float64 {
	t.Helper()
	s, ok := e.attrs[name]
	if !ok {
		return 0
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Errorf("<%s %s=%q>: no number", e.name, name, s)
	}
	if _, after, found := strings.Cut(s, "."); found && len(after) > 1 {
		t.Errorf("<%s %s=%q>: more than one decimal", e.name, name, s)
	}
	return v
}

// parse reads XML strictly.
func parse(t *testing.T, r io.Reader) *element {
	t.Helper()
	d := xml.NewDecoder(r)
	stack := []*element{{attrs: map[string]string{}}}
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return stack[0]
		}
		if err != nil {
			t.Fatalf("drawing is no XML: %v", err)
		}
		top := stack[len(stack)-1]
		switch tok := tok.(type) {
		case xml.StartElement:
			e := &element{name: tok.Name.Local, attrs: map[string]string{}}
			for _, a := range tok.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			top.in = append(top.in, e)
			stack = append(stack, e)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			top.text += string(tok)
		}
	}
}

func (e *element) walk(see func(*element)) {
	see(e)
	for _, i := range e.in {
		i.walk(see)
	}
}

// area is a rectangle on the sheet; what is what it holds.
type area struct {
	x1, y1, x2, y2 float64
	what           string
}

func (a area) contains(b area, slop float64) bool {
	return b.x1 >= a.x1-slop && b.x2 <= a.x2+slop && b.y1 >= a.y1-slop && b.y2 <= a.y2+slop
}

func (a area) overlaps(b area) bool {
	return min(a.x2, b.x2)-max(a.x1, b.x1) > 1 && min(a.y2, b.y2)-max(a.y1, b.y1) > 1.5
}

// picture is where the rectangles and texts of a drawing are.
type picture struct {
	rects, texts []area
	ids          map[string]*element
}

// place collects rectangles and texts; groups move what is in them, and use
// elements draw what they name.
func (p *picture) place(t *testing.T, e *element, dx, dy float64) {
	switch e.name {
	case "defs", "title", "desc":
		return
	case "g":
		if tr, ok := e.attrs["transform"]; ok {
			var x, y float64
			if _, err := fmt.Sscanf(tr, "translate(%g %g)", &x, &y); err != nil {
				t.Fatalf("transform %q: %v", tr, err)
			}
			dx, dy = dx+x, dy+y
		}
	case "use":
		target := p.ids[strings.TrimPrefix(e.attrs["href"], "#")]
		if target == nil {
			t.Fatalf("use of %q, which is not there", e.attrs["href"])
		}
		p.place(t, target, dx+e.number(t, "x"), dy+e.number(t, "y"))
		return
	case "rect":
		x, y := dx+e.number(t, "x"), dy+e.number(t, "y")
		p.rects = append(p.rects, area{x, y, x + e.number(t, "width"), y + e.number(t, "height"), e.attrs["fill"]})
	case "text":
		p.texts = append(p.texts, textArea(t, e, dx, dy))
	}
	for _, i := range e.in {
		p.place(t, i, dx, dy)
	}
}

// textArea is the most room that a text takes by the table of widths.
func textArea(t *testing.T, e *element, dx, dy float64) area {
	f := svg.Font{Size: e.number(t, "font-size"), Bold: e.attrs["font-weight"] == "bold"}
	size := f.Size
	if size == 0 {
		size = svg.DefaultSize
	}
	w := svg.TextWidth(e.text, f)
	x, y := dx+e.number(t, "x"), dy+e.number(t, "y")
	from := map[string]float64{"": 0, "middle": w / 2, "end": w}[e.attrs["text-anchor"]]
	if size < 10 {
		t.Errorf("text %q has size %v, which cannot be read in print", e.text, size)
	}
	if strings.HasPrefix(e.attrs["transform"], "rotate(-90") {
		return area{x - size*0.75, y - w + from, x + size*0.2, y + from, e.text}
	}
	return area{x - from, y - size*0.75, x - from + w, y + size*0.2, e.text}
}

// inspect reads sheets back and looks for what nobody could read: text outside
// of the sheet or of its box, labels one over the other, ids twice, links to
// nowhere.
func inspect(t *testing.T, sheets []svg.Sheet, d *svg.Defs) {
	t.Helper()
	for _, s := range sheets {
		var b bytes.Buffer
		if err := svg.WriteSheets(&b, s.Title, []svg.Sheet{s}, d); err != nil {
			t.Fatal(err)
		}
		root := parse(t, &b)
		p := picture{ids: uniqueIDs(t, root)}
		p.place(t, root, 0, 0)
		if len(p.texts) < 2 {
			t.Errorf("%s: only %d texts: nothing is drawn, or this test reads nothing", s.ID, len(p.texts))
		}
		sheet := area{0, 0, s.W, s.H, s.ID}
		for i, text := range p.texts {
			if !sheet.contains(text, 0.5) {
				t.Errorf("%s: %q is outside of the sheet of %v by %v: %+v", s.ID, text.what, s.W, s.H, text)
			}
			if box, ok := p.boxOf(text); ok && (text.x1 < box.x1-1 || text.x2 > box.x2+1 || text.y1 < box.y1-2 || text.y2 > box.y2+2) {
				t.Errorf("%s: %q does not fit into its box: text %+v, box %+v", s.ID, text.what, text, box)
			}
			for _, other := range p.texts[:i] {
				if text.overlaps(other) {
					t.Errorf("%s: %q lies over %q: %+v %+v", s.ID, text.what, other.what, text, other)
				}
			}
		}
		for _, r := range p.rects {
			if !sheet.contains(r, 0.5) {
				t.Errorf("%s: a rectangle is outside of the sheet: %+v", s.ID, r)
			}
		}
	}
}

// boxOf is the smallest rectangle around the middle of a text, but for bars and
// for the frames that a text is only beside.
func (p *picture) boxOf(text area) (area, bool) {
	mx, my := (text.x1+text.x2)/2, (text.y1+text.y2)/2
	best, found, size := area{}, false, math.Inf(1)
	for _, r := range p.rects {
		w, h := r.x2-r.x1, r.y2-r.y1
		if h < 13 || w < 13 || r.what == "none" || mx < r.x1 || mx > r.x2 || my < r.y1 || my > r.y2 {
			continue
		}
		// The level of a PDU, and how full a tile is, lie behind text.
		if behind(r) {
			continue
		}
		if a := w * h; a < size {
			best, found, size = r, true, a
		}
	}
	return best, found
}

// behind reports whether a rectangle is a level behind a text.
func behind(r area) bool {
	return math.Abs(r.x2-r.x1-(stripWidth-2)) < 0.01
}

func uniqueIDs(t *testing.T, root *element) map[string]*element {
	t.Helper()
	ids := map[string]*element{}
	var links []string
	root.walk(func(e *element) {
		if id, ok := e.attrs["id"]; ok {
			if ids[id] != nil {
				t.Errorf("id %q is given twice", id)
			}
			ids[id] = e
		}
		if h, ok := e.attrs["href"]; ok {
			links = append(links, h)
		}
		for name, v := range e.attrs {
			if strings.HasPrefix(v, "url(#") {
				links = append(links, strings.TrimSuffix(strings.TrimPrefix(v, "url("), ")"))
			}
			if name == "style" || strings.HasPrefix(name, "on") {
				t.Errorf("<%s %s=%q>: a policy without inline styles and scripts refuses it", e.name, name, v)
			}
		}
		if l, ok := e.attrs["labelledby"]; ok {
			for _, id := range strings.Fields(l) {
				links = append(links, "#"+id)
			}
		}
	})
	for _, l := range links {
		if !strings.HasPrefix(l, "#") || ids[l[1:]] == nil {
			t.Errorf("the link %q is dead", l)
		}
	}
	return ids
}
