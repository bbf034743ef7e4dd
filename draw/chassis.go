// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/inventory"
)

// chassis draws a node: one shape for all of its role, hardware and height, and
// its own name.
func (d *Drawing) chassis(c *svg.Canvas, n *inventory.Node) {
	height, role, hardware := n.Height(), "", ""
	if n.Role != nil {
		role = n.Role.Name
	}
	if n.Hardware != nil {
		hardware = n.Hardware.Name
	}
	words := nodeWords(n, role, hardware)
	key := "node " + strconv.Itoa(height) + "\x00" + role + "\x00" + hardware
	mark, marked := d.mark(n)
	if marked {
		words += ": " + mark.Text
		key += "\x00" + mark.Text + strconv.Itoa(int(mark.Standing))
	}
	c.Title(words)
	c.Use(key, 0, 0, func(c *svg.Canvas) { d.chassisShape(c, height, role, hardware, n) })
	f := svg.Font{Bold: true}
	if height == 1 {
		c.Fit(9, 12.5, 120, f, n.Name)
		return
	}
	f.Size = 12
	c.Fit(9, 14.5, bodyWidth-75, f, n.Name)
	if d.opt.Serials && n.Serial != "" {
		s := svg.Font{Size: 10}
		if height == 2 {
			s.Anchor = svg.End
			c.Text(bodyWidth-9, 29, s, svg.ClipText("SN "+n.Serial, s, 110))
		} else {
			c.Fit(9, 3*unitHeight-6+unitHeight*float64(min(height-3, 1)), bodyWidth-18, s, "SN "+n.Serial)
		}
	}
}

// nodeWords is the tooltip of a node.
func nodeWords(n *inventory.Node, role, hardware string) string {
	s := n.Name + ": " + role + ", unit " + strconv.Itoa(n.Unit)
	if h := n.Height(); h > 1 {
		s += " to " + strconv.Itoa(n.Unit+h-1)
	}
	if hardware != "" {
		s += ", " + hardware
	}
	if p := ratedPower(n); p != "" {
		s += ", " + p
	}
	if n.Serial != "" {
		s += ", serial " + n.Serial
	}
	return s
}

// chassisShape draws a node without its name.
func (d *Drawing) chassisShape(c *svg.Canvas, height int, role, hardware string, n *inventory.Node) {
	power := ratedPower(n)
	h := unitHeight * float64(height)
	c.Rect(0.5, 0.5, bodyWidth-1, h-1, svg.Paint{Fill: d.nodeFill(n), Stroke: svg.Soft, Round: 2})
	mark, marked := d.mark(n)
	if mark.Standing == Bad && marked {
		c.Rect(1, 1, 4, h-2, svg.Paint{Fill: svg.Hatch})
	}
	for _, x := range []float64{5, bodyWidth - 5} {
		c.Line(x, 1, x, h-1, svg.Paint{Stroke: svg.Faint})
	}
	right := svg.Font{Anchor: svg.End}
	if height == 1 {
		right.Size = 10
		small := svg.Font{Size: 10, Fill: svg.Soft}
		if marked {
			role = mark.Text
		}
		c.Text(134, 12.5, small, svg.ClipText(role, small, 74))
		c.Text(bodyWidth-9, 12.5, right, power)
		return
	}
	c.Text(bodyWidth-9, 14.5, right, power)
	small := svg.Font{Size: 10.5, Fill: svg.Soft}
	room := bodyWidth - 18.0
	if height == 2 && d.opt.Serials {
		room -= 115
	}
	second := role + " · " + hardware
	if marked {
		second, small.Fill = mark.Text, svg.Ink
	}
	c.Text(9, 29, small, svg.ClipText(second, small, room))
	if height > 3 || height == 3 && !d.opt.Serials {
		c.Text(9, 45, small, svg.ClipText(describeGPUs(n), small, room))
	}
}

// describeGPUs returns the GPUs of a node in words.
func describeGPUs(n *inventory.Node) string {
	s := ""
	if n.Hardware == nil {
		return s
	}
	for _, g := range n.Hardware.GPUs {
		if s != "" {
			s += ", "
		}
		s += strings.TrimSpace(strconv.Itoa(g.Count) + " × " + g.Model)
	}
	return s
}

// switchBox draws a switch with its name.
func (d *Drawing) switchBox(c *svg.Canvas, s *inventory.Switch) {
	c.Title(switchWords(s))
	rear := s.Rack.Orientation != "" && s.Rack.Orientation != string(d.opt.Side)
	key := fmt.Sprintf("switch %d %t %s\x00%s\x00%d\x00%s", s.Height, rear, s.Kind, s.Model, s.Ports, formatWatts(s.Power))
	c.Use(key, 0, 0, func(c *svg.Canvas) { switchShape(c, s, rear) })
	c.Fit(9, 11.5, 96, svg.Font{Bold: true, Fill: svg.White}, s.Label)
}

// switchWords is the tooltip of a switch.
func switchWords(s *inventory.Switch) string {
	w := s.Name + ": switch"
	if s.Unit > 0 {
		w += ", unit " + strconv.Itoa(s.Unit)
	}
	for _, more := range []string{s.Model, s.Kind, s.OS, s.Airflow} {
		if more != "" {
			w += ", " + more
		}
	}
	if s.Fabric != nil {
		w += ", fabric " + s.Fabric.Name
	}
	if s.Tier != inventory.NoTier {
		w += ", " + string(s.Tier)
	}
	return w
}

// switchShape draws a switch without its name: its ports are seen from the side
// that they face.
func switchShape(c *svg.Canvas, s *inventory.Switch, rear bool) {
	h := unitHeight * float64(max(s.Height, 1))
	c.Rect(0.5, 0.5, bodyWidth-1, h-1, svg.Paint{Fill: switchFillOf(s), Stroke: svg.Ink, Round: 2})
	if !rear {
		c.Line(9, h-2, bodyWidth-9, h-2, svg.Paint{Stroke: "#9fb3c8", Width: 1.6, Dash: "4 2"})
	}
	f := svg.Font{Size: 10, Anchor: svg.End, Fill: svg.White}
	c.Text(bodyWidth-9, 11.5, f, firstFitting(bodyWidth-9-112, f, switchParts(s)))
	if rear && s.Height > 1 {
		c.Text(9, 28, svg.Font{Size: 10, Fill: svg.White}, "ports at the "+s.Rack.Orientation)
	}
}

// switchParts is what is written on a switch, the most first.
func switchParts(s *inventory.Switch) []string {
	kind, ports, draws := "", "", ""
	if s.Kind == "nvlink" {
		kind = "NVLink"
	}
	if s.Ports > 0 {
		ports = strconv.Itoa(s.Ports) + "p"
	}
	if s.Power > 0 {
		draws = formatWatts(s.Power)
	}
	return []string{joinDotted(kind, s.Model, ports, draws), joinDotted(kind, s.Model, draws), joinDotted(kind, draws), joinDotted(s.Model, draws)}
}

// joinDotted joins the words that are not empty.
func joinDotted(words ...string) string {
	s := ""
	for _, w := range words {
		if w != "" && s != "" {
			s += " · "
		}
		s += w
	}
	return s
}

// shelfBox draws a power shelf.
func (d *Drawing) shelfBox(c *svg.Canvas, s *inventory.Shelf) {
	c.Title(s.Name + ": power shelf, " + shelfWords(s))
	key := fmt.Sprintf("shelf %d\x00%s", s.Height, shelfWords(s))
	c.Use(key, 0, 0, func(c *svg.Canvas) {
		h := unitHeight * float64(max(s.Height, 1))
		c.Rect(0.5, 0.5, bodyWidth-1, h-1, svg.Paint{Fill: shelfFill, Stroke: svg.Soft, Round: 2})
		f := svg.Font{Size: 10, Anchor: svg.End}
		c.Text(bodyWidth-9, 12.5, f, svg.ClipText(shelfWords(s), f, bodyWidth-9-112))
	})
	c.Fit(9, 12.5, 96, svg.Font{Bold: true}, s.Label)
}

func shelfWords(s *inventory.Shelf) string {
	w := fmt.Sprintf("%d × %s", s.Count, formatWatts(s.Capacity))
	if s.Redundancy != "" {
		w += " · " + s.Redundancy
	}
	return w
}
