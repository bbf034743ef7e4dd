// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"math"
	"slices"
	"strconv"

	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// grouped draws a large fabric: boxes of switches, tier by tier, and the links
// between them as bundles. It returns the height.
func (d *Drawing) grouped(c *svg.Canvas, f *Fabric) float64 {
	y := float64(headHeight + 10)
	boxes := map[*GroupSet]*box{}
	panels := make([]*box, len(f.Tiers))
	const between = 84.0
	for i := range f.Tiers {
		t := f.Tiers[len(f.Tiers)-1-i]
		panels[i] = layGroups(boxes, t, y)
		y += panels[i].h + between
	}
	for i := range len(f.Tiers) - 1 {
		high, low := f.Tiers[len(f.Tiers)-1-i], f.Tiers[len(f.Tiers)-2-i]
		if len(high.groups) > 1 && oneLine(boxes, high) && oneLine(boxes, low) || len(high.groups) == 1 && oneLine(boxes, low) {
			f.bundles(c, boxes, low, high)
		} else {
			words := "every link, as counted at the left"
			if f.inPods(low.Name, high.Name) {
				words = "within each pod, as counted at the left"
			}
			drawBus(c, panels[i+1], panels[i], words)
		}
	}
	for i := range f.Tiers {
		t := f.Tiers[len(f.Tiers)-1-i]
		p := panels[i]
		f.gutterTier(c, p.y+18, t)
		lower := "node"
		if i < len(f.Tiers)-1 {
			lower = f.Tiers[len(f.Tiers)-2-i].Name
		}
		f.gutterLink(c, p.y+max(p.h, 52)+between/2-18, lower, t.Name)
		for _, g := range t.groups {
			f.groupBox(c, t, g, boxes[g])
		}
	}
	y = panels[len(panels)-1].y + max(panels[len(panels)-1].h, 52) + 24
	c.Text(mapLeft, y+8, svg.Font{Size: 13, Bold: true}, f.nodeWords())
	return y + 34
}

// nodeWords says which nodes the leaves serve.
func (f *Fabric) nodeWords() string {
	if f.Kind == "nvlink" {
		return formatCount(f.Nodes, "node", "nodes") + " in domains"
	}
	s := formatCount(len(f.linked()), "node", "nodes") + " with links"
	if rest := f.Nodes - len(f.linked()); rest > 0 {
		s += ", " + formatThousands(rest) + " with ports and without links"
	}
	return s
}

// layGroups places the groups of a tier in lines, and returns their panel.
func layGroups(boxes map[*GroupSet]*box, t *TierSet, y float64) *box {
	const perLine, gap = 9, 8.0
	n := len(t.groups)
	lines := (n + perLine - 1) / perLine
	columns := (n + lines - 1) / lines
	h, w := 56.0, (mapWidth+gap)/float64(columns)-gap
	most := 0
	for _, g := range t.groups {
		most = max(most, g.Switches)
	}
	chips := lines == 1 && most <= mostChips(w)
	if chips {
		h = 98
	}
	for i, g := range t.groups {
		boxes[g] = &box{x: mapLeft + float64(i%columns)*(w+gap), y: y + float64(i/columns)*(h+gap), w: w, h: h}
	}
	return &box{x: mapLeft, y: y, w: mapWidth, h: float64(lines)*(h+gap) - gap}
}

// The room of one switch in the box of its group: at least for the number of its
// rail, at most for its name and place.
const (
	chipWidth = 30.0
	mostChip  = 110.0
)

func mostChips(w float64) int { return int((w - 12) / chipWidth) }

func oneLine(boxes map[*GroupSet]*box, t *TierSet) bool {
	return boxes[t.groups[0]].y == boxes[t.groups[len(t.groups)-1]].y
}

// groupBox draws a group with its numbers, and its switches where there is room.
func (f *Fabric) groupBox(c *svg.Canvas, t *TierSet, g *GroupSet, b *box) {
	c.Open("", b.x, b.y)
	words := formatThousands(g.Switches) + " " + f.called(t, g.Switches)
	short := words
	if g.Nodes > 0 {
		words += " · " + formatCount(g.Nodes, "node", "nodes")
		short = formatCount(g.Nodes, "node", "nodes")
	}
	links := formatThousands(g.Down) + " down"
	arrows := "↓" + formatThousands(g.Down)
	if g.Up > 0 {
		links += " · " + formatThousands(g.Up) + " up"
		arrows += " ↑" + formatThousands(g.Up)
	}
	if g.Down+g.Up == 0 {
		links = "no link in the site"
		if f.Kind == "nvlink" {
			links = "joined by the rack's backplane"
		}
	}
	c.Title(g.Name + ": " + words + ", links " + links)
	p := svg.Paint{Fill: svg.White, Stroke: svg.Ink, Round: 4, Width: 1.2}
	for _, s := range g.list {
		if s.Rack == nil {
			p.Dash = "5 3"
			break
		}
	}
	c.Rect(0, 0, b.w, b.h, p)
	c.Fit(8, 17, b.w-16, svg.Font{Bold: true}, g.Name)
	small := svg.Font{Size: 10}
	c.Text(8, 32, small, firstFitting(b.w-16, small, []string{words, short}))
	small.Fill = svg.Soft
	c.Text(8, 47, small, firstFitting(b.w-16, small, []string{links, arrows}))
	if b.h > 60 {
		w := min((b.w-12)/float64(len(g.list)), mostChip)
		for i, s := range g.list {
			f.chip(c, t, s, i, 8+float64(i)*w, 56, w-4)
		}
	}
	c.Close()
}

// chip draws one switch in the box of its group: its name and place, or only its
// rail or number.
func (f *Fabric) chip(c *svg.Canvas, t *TierSet, s *inventory.Switch, i int, x, y, w float64) {
	names := []string{s.Label, strconv.Itoa(i + 1)}
	if t.Name == "leaf" && s.Rail >= 0 {
		names[1] = "r" + strconv.Itoa(s.Rail)
		names[0] = "rail " + strconv.Itoa(s.Rail)
	}
	c.Open("", x, y)
	c.Title(switchWords(s))
	p, font := svg.Paint{Fill: switchFillOf(s), Round: 2}, svg.Font{Size: 10, Anchor: svg.Middle, Fill: svg.White}
	if s.Rack == nil {
		p, font.Fill = svg.Paint{Fill: svg.White, Stroke: svg.Ink, Dash: "3 2", Round: 2}, ""
	}
	c.Rect(0.5, 0.5, w, 33, p)
	if place := placeOfSwitch(s); svg.TextWidth(place, font) <= w-4 && svg.TextWidth(names[0], font) <= w-4 {
		c.Text(w/2, 14, font, names[0])
		c.Text(w/2, 28, font, place)
	} else {
		c.Text(w/2, 21, font, firstFitting(w-2, font, names))
	}
	c.Close()
}

// bundles draws the links between the groups of two tiers: the wider, the more.
func (f *Fabric) bundles(c *svg.Canvas, boxes map[*GroupSet]*box, low, high *TierSet) {
	type ends struct{ low, high *GroupSet }
	n := map[ends]int{}
	for _, p := range f.pairs {
		n[ends{f.members[p.low], f.members[p.high]}] += p.n
	}
	speed := unit.BitRate(0)
	if l := f.link(low.Name, high.Name); l != nil {
		speed = l.Speed
	}
	for _, l := range low.groups {
		for j, h := range high.groups {
			links := n[ends{l, h}]
			if links == 0 {
				continue
			}
			a, b := boxes[l], boxes[h]
			x1, x2 := a.x+a.w/2, b.x+b.w*float64(slices.Index(low.groups, l)+1)/float64(len(low.groups)+1)
			if len(high.groups) > 1 {
				x1 = a.x + a.w*float64(j+1)/float64(len(high.groups)+1)
			}
			c.Curve(x2, b.y+b.h, x1, a.y, svg.Paint{Stroke: "#5b7083", Width: 1.5 + math.Log2(float64(links))/2})
			if len(high.groups) == 1 {
				words := formatThousands(links) + " ×"
				if speed > 0 {
					words = formatThousands(links) + " × " + speed.String()
				}
				drawLabel(c, x1, a.y-14, a.w, words)
			}
		}
	}
}

// drawLabel writes on a link.
func drawLabel(c *svg.Canvas, x, y, room float64, words string) {
	f := svg.Font{Size: 10, Anchor: svg.Middle}
	words = svg.ClipText(words, f, room-10)
	w := svg.TextWidth(words, f) + 8
	c.Rect(x-w/2, y-10, w, 14, svg.Paint{Fill: svg.White})
	c.Text(x, y, f, words)
}

// inPods reports whether all links between two tiers stay in their pod.
func (f *Fabric) inPods(from, to string) bool {
	seen := false
	for _, p := range f.pairs {
		if tierNames[f.tier[p.low]] != from || tierNames[f.tier[p.high]] != to {
			continue
		}
		if p.low.Pod == 0 || p.low.Pod != p.high.Pod {
			return false
		}
		seen = true
	}
	return seen
}

// drawBus draws the links between two panels that have too many groups for lines.
func drawBus(c *svg.Canvas, low, high *box, words string) {
	p := svg.Paint{Stroke: "#5b7083", Width: 4}
	y1, y2 := high.y+high.h+14, low.y-14
	mid := mapLeft + mapWidth/2
	c.Line(high.x, y1, high.x+high.w, y1, p)
	c.Line(low.x, y2, low.x+low.w, y2, p)
	c.Line(mid, y1, mid, y2, p)
	drawLabel(c, mid, (y1+y2)/2+4, 300, words)
}
