// SPDX-License-Identifier: Apache-2.0

package cable

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Check looks at every cable of the site: whether its ends are of one speed,
// whether a cable of its type is sold for that speed and goes as far as it must,
// and whether one that was given is as long as its way. Cables with an end that
// has no place have no way, which the topology says already. What is wrong with
// many cables alike is one finding.
func Check(inv *inventory.Inventory) diag.List {
	c := checker{builder: newBuilder(inv), groups: map[groupKey]*group{}}
	var slab []*inventory.Cable // of the cable that is looked at
	for _, h := range inv.Cables {
		if h.Splitter != nil {
			continue
		}
		slab = append(slab[:0], h)
		if len(c.halves) > 0 {
			slab = append(slab, c.halves[h]...)
		}
		r := Run{Cables: slab}
		c.fill(&r)
		c.run(&r)
	}
	return append(samePlace(inv), c.findings()...)
}

// samePlace reports racks that stand where another one does: ways to one of them
// are wrong, and so are drawings.
func samePlace(inv *inventory.Inventory) diag.List {
	type place struct {
		row      string
		position int
	}
	first := map[place]*inventory.Rack{}
	var found diag.List
	for _, r := range inv.Racks {
		at := place{r.Row, r.Position}
		if r.Position == 0 {
			continue
		}
		if was := first[at]; was != nil {
			row := "the racks without a row"
			if r.Row != "" {
				row = fmt.Sprintf("row %q", r.Row)
			}
			found.Add("rack.position", r.Ranges.Position, "Two racks in one place", fmt.Sprintf("Racks %q and %q are both at position %d of %s. Correct position or row of one of them, or leave position out to have racks stand in the order of number.", was.Name, r.Name, r.Position, row)).
				Also("the first one", was.Ranges.Position).In(r.Decl)
			continue
		}
		first[at] = r
	}
	return found
}

// checker groups what it finds. It belongs to one goroutine.
type checker struct {
	*builder
	groups map[groupKey]*group
	found  []*group // in the order of the cables
}

// groupKey is one cause: findings of one key are one finding.
type groupKey struct {
	check  string
	kind   string
	typ    string
	a, b   unit.BitRate
	length unit.Length
	fabric *inventory.Fabric
	nic    *inventory.NIC
	node   string // whose override allows the check: it is said of this node alone
}

// group is one finding about one or more cables.
type group struct {
	key     groupKey
	at      hcl.Range
	in      hcl.Range
	summary string
	detail  string      // about the first, or the worst
	advice  string      // what to do next
	worst   unit.Length // by which the cable was picked
	also    string      // what the second place is
	alsoAt  hcl.Range
	warn    bool
	names   []string // of the first few cables
	count   int
	nodes   map[string]bool // at most two: a finding is about a node when it is about one only
}

// run looks at one cable.
func (c *checker) run(r *Run) {
	c.speed(r)
	if r.Speed == 0 {
		c.length(r)
		return
	}
	s := c.shelf(r)
	w := c.cableOf(r)
	first := r.Cables[0]
	switch {
	case len(s) == 0:
		c.length(r)
	case first.Type != "" && !slices.Contains(s.types(w.splitter), first.Type):
		c.wrongType(r, s.types(w.splitter), w.splitter)
	case first.Type != "" && w.need > s.reach(w):
		c.tooFar(r, s, w)
	case r.Route > 0 && r.Part == "":
		c.nothingReaches(r, s, w)
	default:
		c.length(r)
	}
}

// speed compares what the ends are made for.
func (c *checker) speed(r *Run) {
	for _, h := range r.Cables {
		a, b := endSpeed(r, &h.From), endSpeed(r, &h.To)
		if a == 0 || b == 0 || a == b {
			continue
		}
		k := groupKey{check: "cable.speed", a: a, b: b, fabric: r.Fabric, nic: h.From.NIC}
		if k.nic == nil {
			k.nic = h.To.NIC
		}
		at, in := h.Decl, h.Decl
		if !h.Computed() {
			at = h.Places().From
		}
		if k.nic != nil {
			at, in = k.nic.Decl, hcl.Range{}
		}
		g := c.add(k, h, at, in)
		if g == nil {
			continue
		}
		g.summary = "Ends of different speed"
		g.detail = fmt.Sprintf("The cable from %s to %s joins a port of %s with one of %s.", h.From, h.To, a, b)
		g.advice = "Links run at the speed that both ends have, if they come up at all: correct speed of the hca or nic, link of the fabric, or speed and split of its switches."
		if r.Fabric != nil {
			g.also, g.alsoAt = "the fabric", r.Fabric.Decl
		}
	}
}

// wrongType is a type that is not made for the speed.
func (c *checker) wrongType(r *Run, types []string, splitter bool) {
	h := r.Cables[0]
	g := c.add(groupKey{check: "cable.type", kind: kindOf(r), typ: h.Type, a: r.Speed, fabric: r.Fabric}, h, h.Places().Type, h.Decl)
	if g == nil {
		return
	}
	g.summary = "Type that this speed has not"
	of := "cable"
	if splitter {
		of = "splitter cable"
	}
	g.detail = fmt.Sprintf("The %s from %s to %s is %q; for %s of %s there is none of that type.", of, h.From, h.To, h.Type, kindName(r), r.Speed)
	g.advice = fmt.Sprintf("There are %s. Leave type out to have it chosen by the way.", diag.Quoted(types))
}

// tooFar is a given type that does not reach.
func (c *checker) tooFar(r *Run, s shelf, w want) {
	h, most := r.Cables[0], s.reach(w)
	longer := h.Length > most
	k := groupKey{check: "cable.reach", kind: kindOf(r), typ: h.Type, a: r.Speed, fabric: r.Fabric}
	at := h.Places().Type
	if longer {
		k.length, at = h.Length, h.Places().Length
	}
	g := c.worst(k, h, at, h.Decl, w.need)
	if g == nil {
		return
	}
	g.warn = !longer && !c.room.given && !sameRack(h)
	g.summary = "Cable longer than its speed allows"
	what := fmt.Sprintf("goes %s from %s to %s", formatLength(w.need), h.From, h.To)
	if longer {
		what = fmt.Sprintf("from %s to %s is %s long", h.From, h.To, formatLength(h.Length))
	}
	g.detail = fmt.Sprintf("The %s %s; at %s of %s, %s is sold up to %s.", h.Type, what, r.Speed, kindName(r), h.Type, formatLength(most)) + c.assumed(g.warn)
	other := "Nothing is sold that long: put the two ends closer together."
	if p, _ := s.choose(want{need: w.need, splitter: len(r.Cables) > 1, shared: w.shared}); p != nil {
		other = fmt.Sprintf("Write type = %q, which reaches, or put the two ends closer together.", p.typ)
	}
	g.advice = other
}

// nothingReaches is a way that no product covers.
func (c *checker) nothingReaches(r *Run, s shelf, w want) {
	h := r.Cables[0]
	at := h.Decl
	g := c.worst(groupKey{check: "cable.far", kind: kindOf(r), a: r.Speed, fabric: r.Fabric}, h, at, hcl.Range{}, w.need)
	if g == nil {
		return
	}
	g.warn = !c.room.given
	g.summary = "Nothing that is sold reaches"
	g.detail = fmt.Sprintf("The cable from %s to %s goes %s; at %s of %s the longest that is sold has %s.", h.From, h.To, formatLength(r.Route), r.Speed, kindName(r), formatLength(s.reach(w))) + c.assumed(g.warn)
	g.advice = "Put the racks closer together, or correct row and position of the racks and geometry of the site."
}

// length compares a length that was given with the way.
func (c *checker) length(r *Run) {
	h := r.Cables[0]
	if h.Length == 0 || r.Route == 0 || h.Length >= r.Route {
		return
	}
	g := c.worst(groupKey{check: "cable.length", typ: h.Type, length: h.Length, fabric: r.Fabric}, h, h.Places().Length, h.Decl, r.Route)
	if g == nil {
		return
	}
	g.warn = !c.room.given && !sameRack(h)
	g.summary = "Cable shorter than its way"
	g.detail = fmt.Sprintf("The cable from %s to %s is %s long and its way, with slack, is %s.", h.From, h.To, formatLength(h.Length), formatLength(r.Route)) + c.assumed(g.warn)
	g.advice = "Order a longer one, or leave length out to have it computed."
	if s := c.shelf(r); len(s) > 0 {
		w := c.cableOf(r)
		w.need = r.Route
		if p, l := s.choose(w); p != nil {
			g.advice = fmt.Sprintf("The next that is sold is %s of %s. Order that, or leave length out to have it computed.", p.typ, formatLength(l))
		}
	}
}

// assumed is added where the site does not say how large the room is.
func (c *checker) assumed(warn bool) string {
	if !warn {
		return ""
	}
	return fmt.Sprintf(" The site gives no geometry: racks of %gmm, rows every %gm and a tray at %gm are assumed.", 1000*c.room.width, c.room.pitch, c.room.tray)
}

// add counts a cable to its group; the group comes back to be described when
// this is its first one.
func (c *checker) add(k groupKey, h *inventory.Cable, at, in hcl.Range) *group {
	return c.worst(k, h, at, in, 0)
}

// worst is add where the group is described by the cable with the longest way.
func (c *checker) worst(k groupKey, h *inventory.Cable, at, in hcl.Range, way unit.Length) *group {
	k.node = allowingNode(k.check, h)
	g := c.groups[k]
	isNew := g == nil
	if isNew {
		g = &group{key: k, nodes: map[string]bool{}}
		c.groups[k] = g
		c.found = append(c.found, g)
	}
	g.count++
	if len(g.names) < diag.Shown {
		g.names = append(g.names, h.From.String()+" to "+h.To.String())
	}
	for _, e := range []*inventory.CableEnd{&h.From, &h.To} {
		if e.Node != nil && len(g.nodes) < 2 {
			g.nodes[e.Node.Name] = true
		}
	}
	if !isNew && way <= g.worst {
		return nil
	}
	g.worst, g.at, g.in = way, at, in
	return g
}

// allowingNode returns the node of a cable whose override allows the check: what is found
// of it is said apart, so that nobody else's is lowered with it.
func allowingNode(check string, h *inventory.Cable) string {
	for _, e := range []*inventory.CableEnd{&h.From, &h.To} {
		if e.Node != nil && e.Node.Override != nil && slices.Contains(e.Node.Override.Allow, check) {
			return e.Node.Name
		}
	}
	return ""
}

// findings makes one diagnostic of each group.
func (c *checker) findings() diag.List {
	var found diag.List
	for _, g := range c.found {
		detail := g.detail
		if g.count > 1 {
			detail += fmt.Sprintf(" %d cables are like this: %s.", g.count, diag.Few(g.names, g.count))
		}
		d := found.Add(g.key.check, g.at, g.summary, detail+" "+g.advice).Also(g.also, g.alsoAt)
		if g.in != g.at {
			d.In(g.in)
		}
		if g.warn {
			d.Warn()
		}
		switch {
		case g.key.node != "":
			d.Of(g.key.node)
		case len(g.nodes) == 1:
			for n := range g.nodes {
				d.Of(n)
			}
		}
	}
	return found
}

// sameRack reports whether both ends stand in one rack, so that the way does not
// depend on the room.
func sameRack(h *inventory.Cable) bool {
	rack := func(e *inventory.CableEnd) *inventory.Rack {
		switch {
		case e.Node != nil:
			return e.Node.Rack
		case e.Switch != nil:
			return e.Switch.Rack
		}
		return nil
	}
	a := rack(&h.From)
	return a != nil && a == rack(&h.To)
}

// kindName is the kind of link in words.
func kindName(r *Run) string {
	if kindOf(r) == infiniband {
		return "InfiniBand"
	}
	return "Ethernet"
}
