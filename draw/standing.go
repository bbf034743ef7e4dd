// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/inventory"
)

// Standing is how a node stands, as its drawings show it.
type Standing int

// The standings, from the one that a rack is shown by where its nodes differ.
const (
	Bad     Standing = iota // something was found of it, or it is late
	Waiting                 // held, or waiting, or left out
	Working                 // something is done to it
	Good                    // accepted
	Unknown                 // nothing was done, or nothing is known
)

// Mark is what is known of a node: how it stands, and in a few words.
type Mark struct {
	Standing Standing
	Text     string // such as "accepted" or "quarantined: GPU"
}

// standings are the fills of nodes with the words of the legend.
var standings = [...]struct{ fill, name string }{
	Bad: {"#fde4e6", "something was found, or late"}, Waiting: {"#fbeec2", "held, waiting, left out"}, Working: {"#d6e8fa", "worked on"}, Good: {"#d3edd3", "accepted"}, Unknown: {svg.White, "nothing known"},
}

// mark returns what is known of a node; false where a drawing shows no standings.
func (d *Drawing) mark(n *inventory.Node) (Mark, bool) {
	if d.opt.Nodes == nil {
		return Mark{}, false
	}
	if m, ok := d.opt.Nodes[n.Name]; ok {
		return m, true
	}
	return Mark{Unknown, "not known"}, true
}

// nodeFill is the colour of a node: how it stands, where that is drawn, else its role.
func (d *Drawing) nodeFill(n *inventory.Node) string {
	if m, ok := d.mark(n); ok {
		return standings[m.Standing].fill
	}
	if n.Role == nil {
		return d.roleFill("")
	}
	return d.roleFill(n.Role.Name)
}

// bad reports whether a node is drawn as one of which something was found.
func (d *Drawing) bad(n *inventory.Node) bool {
	m, ok := d.mark(n)
	return ok && m.Standing == Bad
}

// stand counts the nodes of a rack by how they stand. The first is the worst.
func (d *Drawing) stand(v *Rack) (worst Standing, words string) {
	var count [len(standings)]int
	for _, n := range v.rack.Nodes {
		m, _ := d.mark(n)
		count[m.Standing]++
	}
	worst = Unknown
	for s, n := range count {
		if n > 0 {
			worst = Standing(s)
			break
		}
	}
	if len(v.rack.Nodes) == 0 {
		return worst, ""
	}
	parts := []string{fmt.Sprintf("%d of %d", count[Good], len(v.rack.Nodes))}
	if count[Bad] > 0 {
		parts = append(parts, fmt.Sprintf("%d bad", count[Bad]))
	}
	return worst, strings.Join(parts, " · ")
}

// standingLegend writes what the colours of nodes mean, and returns where it ends.
func standingLegend(c *svg.Canvas, x, y, end float64) float64 {
	for s, k := range standings {
		need := 22 + svg.TextWidth(k.name, svg.Font{}) + 14
		if x+need > end {
			return x
		}
		c.Rect(x, y-10, 16, 12, svg.Paint{Fill: k.fill, Stroke: svg.Soft})
		if Standing(s) == Bad {
			c.Rect(x, y-10, 5, 12, svg.Paint{Fill: svg.Hatch})
		}
		c.Text(x+21, y, svg.Font{}, k.name)
		x += need
	}
	return x
}
