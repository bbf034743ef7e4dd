// SPDX-License-Identifier: Apache-2.0

package netbox

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// Types of terminations.
const (
	anInterface = "dcim.interface"
	aFrontPort  = "dcim.frontport"
	aRearPort   = "dcim.rearport"
)

// breakout are the profiles of cables (NetBox 4.5, dcim/choices.py) whose lane i at the one
// end is the i-th of the other ends; terminations are listed by their connectors.
var breakout = lazyregexp.New(`^breakout-1c(\d+)p-(\d+)c1p$`)

// key is what a termination is, with nothing of the cable in it.
type key struct {
	kind string
	id   int
}

func (t Termination) key() key { return key{t.Type, t.ID} }

func (t Termination) panel() bool { return t.Type == aFrontPort || t.Type == aRearPort }

// String names an interface or a port, quoted.
func (t Termination) String() string { return portName(t.Object.Device, t.Object.Name) }

func portName(device *Named, port string) string {
	if device == nil {
		return strconv.Quote(port)
	}
	return strconv.Quote(device.Name + " " + port)
}

// sides are the terminations of the side that a cable is entered at, and of the other one.
func (x *Cable) sides(b bool) (near, far []Termination) {
	if b {
		return x.B, x.A
	}
	return x.A, x.B
}

// profiled: the profile of a cable has a word.
func (x *Cable) profiled(word string) bool {
	return x.Profile != nil && strings.Contains(x.Profile.Value, word)
}

// lanes is how many lanes a breakout has; 0 where the cable is none, or has not as many
// ends as its profile says.
func (x *Cable) lanes() int {
	if x.Profile == nil {
		return 0
	}
	m := breakout.FindStringSubmatch(x.Profile.Value)
	n := max(len(x.A), len(x.B))
	if m == nil || m[1] != m[2] || m[1] != strconv.Itoa(n) || min(len(x.A), len(x.B)) != 1 {
		return 0
	}
	return n
}

// where is an end of a cable.
type where struct {
	cable *Cable
	b     bool // it is of the B terminations
	index int  // within its side
}

func (w where) termination() Termination {
	near, _ := w.cable.sides(w.b)
	return near[w.index]
}

// lanes are those that a way starts from at an end: of the one end of a breakout its lanes,
// of others 0 alone.
func (w where) lanes() []int {
	near, far := w.cable.sides(w.b)
	n := w.cable.lanes()
	if n == 0 || len(near) > len(far) {
		return []int{0}
	}
	var list []int
	for i := range n {
		list = append(list, i+1)
	}
	return list
}

// panels knows what cables and patch panels join.
type panels struct {
	cables map[key]where
	fronts map[int]FrontPort
	rears  map[int]RearPort
	mapped map[[2]int]int // front port by rear port and position
}

func newPanels(e Export) *panels {
	p := &panels{cables: map[key]where{}, fronts: map[int]FrontPort{}, rears: map[int]RearPort{}, mapped: map[[2]int]int{}}
	for i := range e.Cables {
		if e.Cables[i].gone() != "" {
			continue
		}
		for _, w := range e.Cables[i].ends() {
			p.cables[w.termination().key()] = w
		}
	}
	for _, r := range e.RearPorts {
		p.rears[r.ID] = r
	}
	for _, f := range e.FrontPorts {
		if f.OldRear != nil { // before NetBox 4.5
			f.Rears = []Mapping{{Rear: f.OldRear.ID, RearPosition: f.OldPosition}}
		}
		p.fronts[f.ID] = f
		for _, m := range f.Rears {
			p.mapped[[2]int{m.Rear, m.RearPosition}] = f.ID
		}
	}
	return p
}

// ends are both sides of a cable.
func (x *Cable) ends() (list []where) {
	for i := range x.A {
		list = append(list, where{x, false, i})
	}
	for i := range x.B {
		list = append(list, where{x, true, i})
	}
	return list
}

// circuit is the way from one interface to another.
type circuit struct {
	from, to         Termination
	fromLane, toLane int // of split ports; 0: the port is not split
	cables           []*Cable
	over             []string // ports of panels, in order
	positions        []int    // of what several circuits share; the last is the innermost
	fronts           map[int]bool
}

// follow goes from an interface to the far one. lane is that of a breakout which the
// interface is the one end of; 0: it is not. why is not empty where the way ends before.
func (p *panels) follow(start where, lane int) (c circuit, why string) {
	c = circuit{from: start.termination(), fromLane: lane, fronts: map[int]bool{}}
	if lane > 0 {
		c.positions = []int{lane}
	}
	for {
		c.cables = append(c.cables, start.cable)
		far, split, why := c.across(start)
		switch {
		case why != "":
			return c, why
		case !far.panel():
			if c.to = far; split {
				c.toLane = c.pop()
			}
			if len(c.positions) > 0 {
				return c, fmt.Sprintf("%s is reached over one position of several of a panel, and NetBox does not say which lane of it that is", far)
			}
			return c, ""
		}
		next, why := p.through(&c, far)
		if why != "" {
			return c, why
		}
		at, cabled := p.cables[next]
		if !cabled {
			return c, fmt.Sprintf("port %s of a panel has no cable", c.over[len(c.over)-1])
		}
		start = at
	}
}

// pop takes the innermost position; 0: there is none.
func (c *circuit) pop() (position int) {
	if n := len(c.positions); n > 0 {
		position, c.positions = c.positions[n-1], c.positions[:n-1]
	}
	return position
}

// across is the termination at the other end of a cable. split: the cable is a breakout,
// and the lane of that end is the innermost position.
func (c *circuit) across(w where) (far Termination, split bool, why string) {
	near, others := w.cable.sides(w.b)
	lanes := w.cable.lanes()
	switch {
	case len(near) == 1 && len(others) == 1 && !w.cable.profiled("shuffle"):
		return others[0], false, ""
	case lanes > 0 && len(others) == 1:
		c.positions = append(c.positions, w.index+1)
		return others[0], true, ""
	case lanes > 0:
		if n := c.pop(); n >= 1 && n <= lanes {
			return others[n-1], false, ""
		}
	case w.cable.profiled("trunk-") && !w.cable.profiled("shuffle") && len(near) == len(others):
		return others[w.index], false, ""
	}
	return far, false, fmt.Sprintf("cable #%d joins %s with %s, and NetBox does not say which belongs to which: give it a straight profile there, trunk or breakout, of as many ends", w.cable.ID, nameAll(w.cable.A), nameAll(w.cable.B))
}

// nameAll names terminations.
func nameAll(all []Termination) string {
	var names []string
	for _, t := range all {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

// through goes through a panel, to the port on its other side.
func (p *panels) through(c *circuit, t Termination) (next key, why string) {
	c.over = append(c.over, t.String())
	front, rear := t.ID, 0
	if t.Type == aRearPort {
		rear = t.ID
		position := 1
		if p.rears[rear].Positions > 1 {
			if position = c.pop(); position == 0 {
				return key{}, fmt.Sprintf("rear port %s of a panel has %d positions, and NetBox does not say which it is", t, p.rears[rear].Positions)
			}
		}
		known := false
		if front, known = p.mapped[[2]int{rear, position}]; !known {
			return key{}, fmt.Sprintf("rear port %s of a panel has no front port at position %d", t, position)
		}
	}
	f, known := p.fronts[front]
	switch {
	case !known:
		return key{}, fmt.Sprintf("front port %s of a panel is not in NetBox's list of them", t)
	case len(f.Rears) != 1:
		return key{}, fmt.Sprintf("front port %s of a panel has %d rear ports, and one is followed", portName(f.Device, f.Name), len(f.Rears))
	case c.fronts[front]:
		return key{}, fmt.Sprintf("the way comes back to front port %s of a panel", portName(f.Device, f.Name))
	}
	c.fronts[front] = true
	if t.Type == aRearPort {
		c.over = append(c.over, portName(f.Device, f.Name))
		return key{aFrontPort, front}, ""
	}
	m := f.Rears[0]
	r, known := p.rears[m.Rear]
	if !known {
		return key{}, fmt.Sprintf("the rear port of front port %s of a panel is not in NetBox's list of them", t)
	}
	if r.Positions > 1 {
		c.positions = append(c.positions, m.RearPosition)
	}
	c.over = append(c.over, portName(r.Device, r.Name))
	return key{aRearPort, r.ID}, ""
}

// kind is the type that all cables of a circuit have as the site does; empty: they differ.
func (c *circuit) kind() string {
	for _, x := range c.cables {
		if x.Type != c.cables[0].Type {
			return ""
		}
	}
	return types[c.cables[0].Type]
}

// length is that of all cables; empty where NetBox does not have that of one.
func (c *circuit) length() string {
	sum := 0.0
	for _, x := range c.cables {
		if x.Length == nil || x.LengthUnit == nil || metres[x.LengthUnit.Value] == 0 {
			return ""
		}
		sum += *x.Length * metres[x.LengthUnit.Value]
	}
	return strconv.FormatFloat(math.Round(sum*1000)/1000, 'f', -1, 64) + "m"
}

// gone is the status of a cable that does not lie in the room; empty: it does.
func (x *Cable) gone() string {
	if x.Status != nil && slices.Contains(gone, x.Status.Value) {
		return x.Status.Value
	}
	return ""
}
