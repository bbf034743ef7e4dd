// SPDX-License-Identifier: Apache-2.0

// Package power is the electricity of a virtual site: PDUs with outlets, phases
// and breakers, which node's supply hangs where, what flows, and what trips. It
// acts on amperes: a breaker opens because of its current, and the supplies
// behind it lose their mains. PDUs are read and switched by SNMP as real ones.
//
// What it does not model: cable and inlet losses, reactive power, voltage drop,
// neutral currents, and the ride-through of supplies (a loss of mains is at
// once).
package power

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/inventory"
)

// Load is what hangs on the PDUs: a node or a switch.
type Load struct {
	Name  string
	Feeds []inventory.Feed // none: a mains that never fails
	Max   float64          // watts that it draws at most: what its power-on surge is a multiple of
	// Draw is what it draws now, switched on or off (standby), in watts at the plugs
	// of all supplies together, which share it evenly while they live. It must not
	// block, nor call the Grid. nil: Max while on.
	Draw func(on bool) float64
	// Mains is told of a supply (from 0) that loses or regains its mains. It must
	// not block, nor call the Grid. May be nil.
	Mains func(supply int, live bool)
	Off   bool // at first: a node is, until its Board runs
}

// Config is what a Grid is made from.
type Config struct {
	PDUs  []*inventory.PDU
	Loads []Load // in the order in which plugs without an outlet take the next free one
	Clock clock.Clock
	Surge Surge // zero: DefaultSurge
}

// Grid is the electricity of a site. Its methods are safe for concurrent use and
// do not block, but for Run.
type Grid struct {
	clock clock.Clock
	surge Surge
	pdus  map[string]*PDU
	loads map[string]*load
	wake  chan struct{}

	mu    sync.Mutex // guards all below, and the state of PDUs, circuits and loads
	queue []mains    // changes that are not yet delivered
	back  []*outlet  // outlets in a reboot
	hot   map[*circuit]bool
	trips []Trip

	out sync.Mutex // keeps deliveries in order; taken before mu
}

// mains is a change of a supply's mains, to be told.
type mains struct {
	tell   func(int, bool)
	supply int
	live   bool
}

// load is a Load with its plugs.
type load struct {
	Load
	plugs []*plug
	watts float64
	on    bool
}

// plug is one supply of a load.
type plug struct {
	load   *load
	supply int     // from 0
	outlet *outlet // nil: a mains that never fails
	live   bool
	watts  float64
}

// New connects the loads. A feed of a PDU that is not among Config.PDUs is an
// error, as is a PDU with fewer outlets than plugs.
func New(c Config) (*Grid, error) {
	g := &Grid{clock: c.Clock, surge: c.Surge, pdus: map[string]*PDU{}, loads: map[string]*load{}, wake: make(chan struct{}, 1), hot: map[*circuit]bool{}}
	if g.clock == nil {
		g.clock = clock.Wall{}
	}
	if g.surge == (Surge{}) {
		g.surge = DefaultSurge
	}
	for _, p := range c.PDUs {
		g.pdus[p.Name] = newPDU(g, p)
	}
	var loose []*plug
	var where []*PDU
	for _, l := range c.Loads {
		ld := &load{Load: l, on: !l.Off}
		g.loads[l.Name] = ld
		for i, f := range l.Feeds {
			p := &plug{load: ld, supply: supplyIndex(f.Supply, i), live: true}
			ld.plugs = append(ld.plugs, p)
			pdu := g.pdus[f.PDU.Name]
			switch {
			case pdu == nil:
				return nil, fmt.Errorf("%s feeds from PDU %s, which is not there", l.Name, f.PDU.Name)
			case f.Outlet == 0:
				loose, where = append(loose, p), append(where, pdu)
			default:
				if err := pdu.plug(f.Outlet, p); err != nil {
					return nil, err
				}
			}
		}
	}
	for i, p := range loose {
		if err := where[i].plugAnywhere(p); err != nil {
			return nil, err
		}
	}
	now := g.clock.Now()
	for _, ld := range g.loads {
		ld.share(ld.draw(ld.on))
	}
	for _, p := range g.pdus {
		for _, ci := range p.circuits {
			g.measure(ci, now)
		}
	}
	return g, nil
}

// supplyIndex reads "psu3" as 2.
func supplyIndex(name string, position int) int {
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "psu")); err == nil && n > 0 {
		return n - 1
	}
	return position
}

func (l *load) draw(on bool) float64 {
	switch {
	case l.Draw != nil:
		return max(0, l.Draw(on))
	case on:
		return l.Max
	}
	return 0
}

// share divides what a load draws among the plugs that have power.
func (l *load) share(watts float64) {
	l.watts = watts
	n := 0
	for _, p := range l.plugs {
		p.watts = 0
		if p.live {
			n++
		}
	}
	for _, p := range l.plugs {
		if p.live {
			p.watts = watts / float64(n)
		}
	}
}

// Changed says that a load draws something else now. One without feeds changes
// nothing.
func (g *Grid) Changed(name string) {
	if l := g.loads[name]; l != nil {
		g.mu.Lock()
		on := l.on
		g.mu.Unlock()
		g.set(l, on, false)
	}
}

// set says whether a load is on; surge that it has just been switched on.
func (g *Grid) set(l *load, on, surge bool) {
	if l == nil || len(l.plugs) == 0 {
		return
	}
	watts := l.draw(on)
	g.do(func(now time.Time) {
		l.on = on
		l.share(watts)
		if surge {
			g.surgeOf(l, now)
		}
		g.settle(now, circuitsOf(l))
	})
}

// surgeOf adds the current of a power-on. Called with mu held.
func (g *Grid) surgeOf(l *load, now time.Time) {
	n := 0
	for _, p := range l.plugs {
		if p.live {
			n++
		}
	}
	for _, p := range l.plugs {
		if c := p.circuit(); c != nil && p.live {
			c.add(now, g.surge.PowerOn*l.Max/float64(n)/c.volts, g.surge.PowerOnFor)
		}
	}
}

// do changes something and tells those whose mains changed by it.
func (g *Grid) do(change func(now time.Time)) {
	g.out.Lock()
	defer g.out.Unlock()
	g.mu.Lock()
	change(g.clock.Now())
	queue := g.queue
	g.queue = nil
	g.mu.Unlock()
	for _, m := range queue {
		m.tell(m.supply, m.live)
	}
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// settle measures circuits whose load has changed, and trips them; what other
// supplies take over from a dead one may trip the next. Called with mu held.
func (g *Grid) settle(now time.Time, dirty []*circuit) {
	for len(dirty) > 0 {
		c := dirty[0]
		dirty = dirty[1:]
		g.measure(c, now)
		if why := c.trips(now); why != "" {
			g.trips = append(g.trips, Trip{PDU: c.pdu.spec.Name, Breaker: c.number, At: now, Amps: c.amps + c.surge(now), Rating: c.rating, Why: why})
			c.trip()
			dirty = append(dirty, g.refresh(now, c.outlets)...)
			dirty = append(dirty, c)
		}
	}
}

// measure measures a circuit, and keeps those that heat will trip. Called with mu
// held.
func (g *Grid) measure(c *circuit, now time.Time) {
	c.measure(now)
	if c.tripsAt().IsZero() {
		delete(g.hot, c)
	} else {
		g.hot[c] = true
	}
}

// refresh brings plugs to what their outlets deliver, and returns the circuits
// that it changed. Called with mu held.
func (g *Grid) refresh(now time.Time, outlets []*outlet) (dirty []*circuit) {
	for _, o := range outlets {
		p := o.plug
		if p == nil || p.live == o.live() {
			continue
		}
		p.live = o.live()
		if p.live {
			o.circuit.add(now, g.surge.Mains, g.surge.MainsFor)
		}
		p.load.share(p.load.watts)
		dirty = append(dirty, circuitsOf(p.load)...)
		if p.load.Mains != nil {
			g.queue = append(g.queue, mains{p.load.Mains, p.supply, p.live})
		}
	}
	return dirty
}

func (p *plug) circuit() *circuit {
	if p.outlet == nil {
		return nil
	}
	return p.outlet.circuit
}

// circuitsOf are the circuits that a load hangs on.
func circuitsOf(l *load) (list []*circuit) {
	for _, p := range l.plugs {
		if c := p.circuit(); c != nil && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// Trips are the breakers that have opened, in order.
func (g *Grid) Trips() []Trip {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.trips)
}

// Live reports whether a load has mains on any supply.
func (g *Grid) Live(name string) bool {
	l := g.loads[name]
	if l == nil || len(l.plugs) == 0 {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(l.plugs, func(p *plug) bool { return p.live })
}
