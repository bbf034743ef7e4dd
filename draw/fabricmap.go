// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/internal/natural"
	"github.com/ironrail/ironrail/inventory"
)

// Measures of a fabric map.
const (
	gutterWidth = 190.0
	mapLeft     = gutterWidth + 10
	mapWidth    = sheetWidth - mapLeft - 10
)

// railStrokes are the colours of the links of rails, which their leaves name.
var railStrokes = [...]string{"#0b5394", "#a61c00", "#38761d", "#674ea7", "#b45f06", "#134f5c", "#741b47", "#594500"}

// Maps draws these fabrics; all of them without names.
func (d *Drawing) Maps(names ...string) []svg.Sheet {
	var sheets []svg.Sheet
	for i, f := range d.fabrics {
		if isWanted(f.Name, names) {
			sheets = append(sheets, d.fabricSheet(i+1, f))
		}
	}
	return sheets
}

// The most that a map draws link by link.
const (
	mostLinks = 560
	mostNodes = 40
	mostLeafs = 16
)

func (d *Drawing) fabricSheet(number int, f *Fabric) svg.Sheet {
	title := "Fabric " + f.Name + ": " + f.Kind
	if f.Topology != "" {
		title += ", " + f.Topology
	}
	title += ", " + formatCount(f.Nodes, "node", "nodes")
	s := d.newSheet("fabric-"+strconv.Itoa(number), title, f.words(), sheetWidth, 0)
	links, most := len(f.access), 0
	for _, p := range f.pairs {
		links += p.n
	}
	for _, t := range f.Tiers {
		most = max(most, t.Switches)
	}
	switch {
	case len(f.Tiers) == 0:
		s.Canvas.Text(10, headHeight+20, svg.Font{Size: 12}, "No switch of the site belongs to this fabric, and no topology computes any.")
		s.H = headHeight + 40
	case links <= mostLinks && f.Nodes <= mostNodes && most <= mostLeafs:
		s.H = d.everyLink(s.Canvas, f)
	default:
		s.H = d.grouped(s.Canvas, f)
	}
	return s
}

// words is the fabric for those who do not see it.
func (f *Fabric) words() string {
	s := "Map of the fabric: "
	for _, t := range f.Tiers {
		s += fmt.Sprintf("%s %s, ", formatThousands(t.Switches), tierName(inventory.Tier(t.Name), t.Switches))
	}
	for i, l := range f.Links {
		if i > 0 {
			s += ", "
		}
		s += l.words() + " from " + l.From + " to " + l.To
	}
	return s + "."
}

// words is for example "1,024 × 400Gbps".
func (l *LinkSet) words() string {
	if l.Speed == 0 {
		return formatCount(l.Count, "link", "links")
	}
	return formatThousands(l.Count) + " × " + l.Speed.String()
}

// capacity is the sum of the links.
func (l *LinkSet) capacity() string {
	if l.Speed == 0 {
		return ""
	}
	total := float64(l.Speed) * float64(l.Count)
	if total >= 1e15 {
		return formatDecimals(total/1e15, 2) + "Pbps"
	}
	return formatDecimals(total/1e12, 1) + "Tbps"
}

// link returns the links between two tiers.
func (f *Fabric) link(from, to string) *LinkSet {
	for _, l := range f.Links {
		if l.From == from && l.To == to {
			return l
		}
	}
	return nil
}

// called is what the switches of a tier are called.
func (f *Fabric) called(t *TierSet, n int) string {
	if f.Kind == "nvlink" {
		return pluralOf(n, "switch tray", "switch trays")
	}
	return tierName(inventory.Tier(t.Name), n)
}

// gutterTier writes what a tier is, at the left.
func (f *Fabric) gutterTier(c *svg.Canvas, y float64, t *TierSet) {
	bold, soft := svg.Font{Size: 13, Bold: true}, svg.Font{Size: 10.5, Fill: svg.Soft}
	c.Fit(10, y, gutterWidth-15, bold, formatThousands(t.Switches)+" "+f.called(t, t.Switches))
	model := t.Model
	for _, s := range t.list {
		if s.Model != model {
			model = "several models"
			break
		}
	}
	c.Fit(10, y+16, gutterWidth-15, soft, model)
	if t.Unplaced > 0 {
		c.Fit(10, y+31, gutterWidth-15, soft, formatThousands(t.Unplaced)+" not placed yet")
	}
}

// gutterLink writes what links there are between two tiers.
func (f *Fabric) gutterLink(c *svg.Canvas, y float64, from, to string) {
	l := f.link(from, to)
	if l == nil {
		return
	}
	c.Fit(10, y, gutterWidth-15, svg.Font{}, l.words())
	more := l.capacity()
	if up, down := f.link(from, to), f.link(tierBelow(from), from); from != "node" && up != nil && down != nil && up.Speed > 0 && down.Speed > 0 {
		more += fmt.Sprintf(", down to up %s : 1", formatDecimals(float64(down.Count)*float64(down.Speed)/(float64(up.Count)*float64(up.Speed)), 2))
	}
	soft := svg.Font{Size: 10, Fill: svg.Soft}
	c.Fit(10, y+15, gutterWidth-15, soft, more)
	if n, highs := f.even(from, to); n > 0 {
		c.Fit(10, y+29, gutterWidth-15, soft, fmt.Sprintf("each %s: %d to each of %d", from, n, highs))
	}
}

// even is how many links each switch of a tier has to each of how many above it;
// 0 when they differ.
func (f *Fabric) even(from, to string) (links, highs int) {
	degree := map[*inventory.Switch]int{}
	for _, p := range f.pairs {
		if tierNames[f.tier[p.low]] != from || tierNames[f.tier[p.high]] != to {
			continue
		}
		if links == 0 {
			links = p.n
		}
		if p.n != links {
			return 0, 0
		}
		degree[p.low]++
	}
	for _, t := range f.Tiers {
		if t.Name != from || len(t.list) == 0 {
			continue
		}
		highs = degree[t.list[0]]
		for _, s := range t.list {
			if degree[s] != highs {
				return 0, 0
			}
		}
	}
	return links, highs
}

func tierBelow(tier string) string { return tierNames[max(slices.Index(tierNames[:], tier)-1, 0)] }

// box is a place of a map, with the links that end in it.
type box struct {
	x, y, w, h float64
	up, down   []*strand
}

// strand is one link of a map.
type strand struct {
	low, high *box
	x1, x2    float64
	rail      int
	names     [2]string // of the lower end and the higher one
}

// everyLink draws a small fabric: each switch, each node, each link. It returns
// the height.
func (d *Drawing) everyLink(c *svg.Canvas, f *Fabric) float64 {
	const switchHeight = 46.0
	between := 150 + min(float64(len(f.access)+len(f.pairs)), 300)/2
	boxes := map[any]*box{}
	y := float64(headHeight + 10)
	for i := range f.Tiers {
		t := f.Tiers[len(f.Tiers)-1-i]
		spreadBoxes(boxes, t.list, y, switchHeight, 150)
		y += switchHeight + between
	}
	nodes := f.linked()
	height, turned := 30.0, false
	if len(nodes) > 0 && mapWidth/float64(len(nodes))-6 < 80 {
		height, turned = 120, true
	}
	spreadBoxes(boxes, nodes, y, height, 120)
	d.drawStrands(c, f.strands(boxes))
	y = headHeight + 10
	for i := range f.Tiers {
		t := f.Tiers[len(f.Tiers)-1-i]
		f.gutterTier(c, y+18, t)
		for _, s := range t.list {
			f.mapSwitch(c, s, boxes[s])
		}
		lower := "node"
		if i < len(f.Tiers)-1 {
			lower = f.Tiers[len(f.Tiers)-2-i].Name
		}
		f.gutterLink(c, y+switchHeight+between/2, lower, t.Name)
		y += switchHeight + between
	}
	c.Fit(10, y+18, gutterWidth-15, svg.Font{Size: 13, Bold: true}, formatCount(len(nodes), "node", "nodes")+" with links")
	for _, n := range nodes {
		d.mapNode(c, n, boxes[n], turned)
	}
	return y + height + 12
}

// drawStrands draws links, those that stand out above the others.
func (d *Drawing) drawStrands(c *svg.Canvas, all []*strand) {
	for _, s := range all {
		stroke := svg.Paint{Stroke: svg.Soft}
		if s.rail >= 0 {
			stroke.Stroke = railStrokes[s.rail%len(railStrokes)]
		}
		c.Curve(s.x1, s.high.y+s.high.h, s.x2, s.low.y, stroke)
	}
	if d.opt.Marks == nil {
		return
	}
	for _, s := range all {
		if d.opt.Marks(s.names[0], s.names[1], s.rail) {
			c.Curve(s.x1, s.high.y+s.high.h, s.x2, s.low.y, svg.Paint{Stroke: svg.White, Width: 7})
			c.Curve(s.x1, s.high.y+s.high.h, s.x2, s.low.y, svg.Paint{Stroke: svg.Over, Width: 4})
		}
	}
}

// linked are the nodes with a link, as they stand in the room.
func (f *Fabric) linked() []*inventory.Node {
	seen := map[*inventory.Node]bool{}
	var out []*inventory.Node
	for _, a := range f.access {
		if a.node != nil && !seen[a.node] {
			seen[a.node] = true
			out = append(out, a.node)
		}
	}
	slices.SortFunc(out, func(a, b *inventory.Node) int { return natural.Compare(a.Name, b.Name) })
	return out
}

// spreadBoxes places boxes side by side over the map.
func spreadBoxes[T comparable](boxes map[any]*box, list []T, y, h, most float64) {
	slot := mapWidth / float64(max(len(list), 1))
	w := min(slot-6, most)
	for i, t := range list {
		boxes[t] = &box{x: mapLeft + slot*float64(i) + (slot-w)/2, y: y, w: w, h: h}
	}
}

// strands are all links, each with a place of its own at both boxes: sorted by
// where the other end is, so that few cross.
func (f *Fabric) strands(boxes map[any]*box) []*strand {
	var out []*strand
	add := func(low, high *box, rail int, names ...string) {
		if low == nil || high == nil {
			return
		}
		s := &strand{low: low, high: high, rail: rail, names: [2]string(names)}
		out = append(out, s)
		low.up, high.down = append(low.up, s), append(high.down, s)
	}
	for _, a := range f.access {
		if a.node != nil && a.sw != nil {
			add(boxes[a.node], boxes[a.sw], a.rail, a.node.Name, a.sw.Name)
		}
	}
	for _, p := range f.pairs {
		for range p.n {
			add(boxes[p.low], boxes[p.high], p.low.Rail, p.low.Name, p.high.Name)
		}
	}
	for _, b := range boxes {
		slices.SortStableFunc(b.up, func(p, q *strand) int { return int(p.high.x - q.high.x) })
		slices.SortStableFunc(b.down, func(p, q *strand) int { return int(p.low.x - q.low.x) })
		for i, s := range b.up {
			s.x2 = b.x + b.w*(float64(i)+1)/(float64(len(b.up))+1)
		}
		for i, s := range b.down {
			s.x1 = b.x + b.w*(float64(i)+1)/(float64(len(b.down))+1)
		}
	}
	return out
}

// mapSwitch draws a switch of a small fabric.
func (f *Fabric) mapSwitch(c *svg.Canvas, s *inventory.Switch, b *box) {
	c.Open("", b.x, b.y)
	c.Title(switchWords(s))
	p := svg.Paint{Fill: switchFillOf(s), Stroke: svg.Ink, Round: 3}
	font := svg.Font{Bold: true, Fill: svg.White, Anchor: svg.Middle}
	if s.Rack == nil {
		p, font.Fill = svg.Paint{Fill: svg.White, Stroke: svg.Ink, Dash: "5 3", Round: 3}, ""
	}
	c.Rect(0, 0, b.w, b.h, p)
	c.Text(b.w/2, 19, font, svg.ClipText(s.Label, font, b.w-8))
	words := []string{placeOfSwitch(s)}
	if s.Rail >= 0 && f.tier[s] == 1 {
		rail := "rail " + strconv.Itoa(s.Rail)
		words = []string{rail + " · " + placeOfSwitch(s), rail, "r" + strconv.Itoa(s.Rail)}
	}
	small := svg.Font{Size: 10, Fill: font.Fill, Anchor: svg.Middle}
	c.Text(b.w/2, 35, small, firstFitting(b.w-8, small, words))
	c.Close()
}

// placeOfSwitch says where a switch stands.
func placeOfSwitch(s *inventory.Switch) string {
	if s.Rack == nil {
		return "no place"
	}
	if s.Unit == 0 {
		return s.Rack.Name
	}
	return s.Rack.Name + " u" + strconv.Itoa(s.Unit)
}

func (d *Drawing) mapNode(c *svg.Canvas, n *inventory.Node, b *box, turned bool) {
	c.Open("", b.x, b.y)
	fill := svg.White
	if n.Role != nil || d.opt.Nodes != nil {
		fill = d.nodeFill(n)
	}
	c.Rect(0, 0, b.w, b.h, svg.Paint{Fill: fill, Stroke: svg.Soft, Round: 2})
	if d.bad(n) {
		c.Rect(1, 1, b.w-2, 5, svg.Paint{Fill: svg.Hatch})
	}
	f := svg.Font{Anchor: svg.Middle, Turned: turned}
	room := b.w - 8
	if turned {
		room = b.h - 8
	}
	c.Fit(b.w/2+map[bool]float64{true: 4}[turned], b.h/2+map[bool]float64{false: 4}[turned], room, f, n.Name)
	c.Close()
}
