// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/url"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/web/view"
)

// Measures of an elevation, in units of its drawing.
const (
	rackWidth  = 176
	itemLeft   = 3
	oneLine    = 14 // lowest height of an item with a name
	twoLines   = 27 // and with a text below
	shortName  = 17 // signs that fit beside a mark
	shortText  = 28
	unitLow    = 9  // height of a rack unit
	unitHigh   = 14 // where nodes are one unit high
	timeWidth  = 1000
	timeLeft   = 190 // room of the names of steps
	timeHead   = 18
	timeLine   = 17
	mostTicks  = 6
	leastWidth = 2 // of a bar
)

// drawnRack is an elevation.
type drawnRack struct {
	Name  string
	Nodes int
	Up    int
	W, H  int
	Items []drawnItem
}

// drawnItem is a thing in it.
type drawnItem struct {
	view.Item
	X, Y, W, H   int
	NameY, TextY int // of the baselines; 0: there is no room
	MarkX        int
	Class        view.Tone
	Mark, Short  string
	Text         string
	Href, Label  string
	Node, Tiny   bool
}

// gear is the class of what is no node.
const gear view.Tone = "gear"

// drawRack lays a rack out: units from below, and what has no unit on top of each other.
func drawRack(r view.Rack) drawnRack {
	unit := unitLow
	for _, i := range r.Items {
		if i.Height == 1 && i.Kind == "node" {
			unit = unitHigh
		}
	}
	out := drawnRack{Name: r.Name, Nodes: r.Nodes, W: rackWidth, H: unit*max(r.Units, 1) + 4}
	for _, c := range r.Counts {
		if view.ToneOf(c.State) == view.Good {
			out.Up += c.Nodes
		}
	}
	next := 1 // the unit of what has none
	for _, i := range r.Items {
		at := i.Unit
		if at == 0 {
			at = next
		}
		next = at + i.Height
		d := drawnItem{Item: i, X: itemLeft, W: rackWidth - 2*itemLeft, H: max(unit*i.Height-2, 3), Y: out.H - 2 - unit*(at+i.Height-1) + 1, MarkX: rackWidth - 8}
		d.describe()
		d.Tiny = d.H < oneLine-2
		d.NameY = d.Y + min(d.H/2+4, 12)
		if d.Tiny {
			d.NameY = d.Y + d.H/2 + 3
		}
		if d.H >= twoLines && d.Text != "" {
			d.TextY = d.Y + 23
		}
		if d.Y < 0 { // higher than the rack: check says so
			out.H -= d.Y - 2
			for j := range out.Items {
				out.Items[j].shift(2 - d.Y)
			}
			d.shift(2 - d.Y)
		}
		out.Items = append(out.Items, d)
	}
	return out
}

func (d *drawnItem) shift(by int) {
	d.Y += by
	if d.NameY > 0 {
		d.NameY += by
	}
	if d.TextY > 0 {
		d.TextY += by
	}
}

// describe fills in what an item says and where it leads.
func (d *drawnItem) describe() {
	path := (&url.URL{Path: d.Name}).EscapedPath()
	d.Short, d.Text = clip(d.Name, shortName), clip(d.Item.Text, shortText)
	switch {
	case d.Kind == "node":
		d.Node, d.Class, d.Mark, d.Href = true, view.ToneOf(d.State), view.MarkOf(d.State), "/node/"+path
		d.Label = d.Name + ": " + stateWords(d.State, d.Item.Text)
		if d.Item.Text == string(d.State) || d.Class == view.Good {
			d.Text = ""
		}
	case d.Kind == "switch":
		d.Class, d.Href, d.Label = gear, "/switch/"+path, "switch "+d.Name
		if d.Bad {
			d.Class, d.Mark, d.Label = view.Bad, view.MarkOf("quarantined"), "switch "+d.Name+": a finding suspects it"
		}
	default:
		d.Class, d.Href, d.Label = gear, "#", d.Item.Text+" "+d.Name
	}
}

// clip shortens a text.
func clip(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most-1]) + "…"
}

// drawnTimeline is steps in time.
type drawnTimeline struct {
	W, H  int
	Ticks []tick
	Bars  []bar
}

type tick struct {
	X, Y int
	Text string
}

type bar struct {
	X, W, WaitX, WaitW, BarY, TextY int
	Tone                            view.Tone
	Name, Title                     string
}

// drawTimeline lays the steps out, a line for each.
func drawTimeline(t view.Timeline) drawnTimeline {
	span := max(t.To.Sub(t.From), time.Second)
	at := func(d time.Duration) int {
		return timeLeft + int(int64(timeWidth-timeLeft-10)*int64(d/time.Millisecond)/max(1, int64(span/time.Millisecond)))
	}
	out := drawnTimeline{W: timeWidth, H: timeHead + timeLine*len(t.Steps) + 4}
	for i, s := range t.Steps {
		begin, end := s.Started.Sub(t.From), s.Started.Sub(t.From)+time.Duration(s.Took)*time.Millisecond
		y := timeHead + timeLine*i
		b := bar{X: at(begin), BarY: y + 3, TextY: y + 12, Tone: toneOfStep(s), Name: clip(s.Step, 30)}
		b.W = max(leastWidth, at(end)-b.X)
		if s.Waited > 0 {
			b.WaitX = at(begin - time.Duration(s.Waited)*time.Millisecond)
			b.WaitW = max(0, b.X-b.WaitX)
		}
		b.Title = s.Step + " " + s.State + ", " + formatMillis(s.Took)
		if s.Text != "" {
			b.Title += ": " + s.Text
		}
		out.Bars = append(out.Bars, b)
	}
	step := tickStep(span)
	for d := time.Duration(0); d <= span; d += step {
		out.Ticks = append(out.Ticks, tick{at(d), out.H, clock.Text(d)})
	}
	return out
}

// tickStep is a round time of which at most mostTicks fit.
func tickStep(span time.Duration) time.Duration {
	for _, d := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour} {
		if span/d <= mostTicks {
			return d
		}
	}
	return max(24*time.Hour, (span / mostTicks).Round(24*time.Hour))
}
