// SPDX-License-Identifier: Apache-2.0

package power

import (
	"fmt"
	"math"
	"time"

	"github.com/ironrail/ironrail/inventory"
)

// rebootFor is how long an outlet stays off in a reboot, the factory's setting of
// rPDU2OutletSwitchedConfigRebootDuration.
const rebootFor = 5 * time.Second

// PDU is one unit: phases, breakers, outlets, and a card that speaks SNMP. Outlets
// take the breakers in turn, as on units with alternating phases.
type PDU struct {
	grid     *Grid
	spec     *inventory.PDU
	lines    float64 // volts between a line and neutral, or between lines for a delta
	delta    bool    // outlets between two lines: three phases of at most 250 V
	circuits []*circuit
	outlets  []*outlet
	started  time.Time

	dark bool // the input is cut: the card is dead as well; guarded by Grid.mu
}

// outlet is one outlet.
type outlet struct {
	pdu     *PDU
	number  int // from 1
	circuit *circuit
	plug    *plug // nil: free

	off    bool // by its relay; guarded by Grid.mu
	backAt time.Time
}

// live reports whether an outlet delivers. Called with Grid.mu held.
func (o *outlet) live() bool { return !o.off && !o.circuit.open && !o.pdu.dark }

// newPDU makes the breakers and outlets of a PDU; one that does not say how many
// outlets it has grows as plugs need it.
func newPDU(g *Grid, spec *inventory.PDU) *PDU {
	p := &PDU{grid: g, spec: spec, started: g.clock.Now()}
	volts, rating := float64(spec.Voltage), float64(spec.Current)
	if volts <= 0 {
		volts = 230
	}
	if rating <= 0 {
		rating = 32
	}
	phases := max(spec.Phases, 1)
	if phases == 3 {
		if p.delta = volts <= 250; p.delta {
			rating /= math.Sqrt(3)
		} else {
			volts /= math.Sqrt(3)
		}
	}
	p.lines = volts
	for i := range phases {
		p.circuits = append(p.circuits, &circuit{pdu: p, number: i + 1, volts: volts, rating: rating, at: p.started})
	}
	p.grow(spec.Outlets)
	return p
}

// grow adds outlets up to n.
func (p *PDU) grow(n int) {
	for len(p.outlets) < n {
		c := p.circuits[len(p.outlets)%len(p.circuits)]
		o := &outlet{pdu: p, number: len(p.outlets) + 1, circuit: c}
		p.outlets = append(p.outlets, o)
		c.outlets = append(c.outlets, o)
	}
}

func (p *PDU) plug(number int, pl *plug) error {
	if p.spec.Outlets == 0 {
		p.grow(number)
	}
	if number < 1 || number > len(p.outlets) {
		return fmt.Errorf("PDU %s has no outlet %d", p.spec.Name, number)
	}
	o := p.outlets[number-1]
	if o.plug != nil {
		return fmt.Errorf("outlet %d of PDU %s has two plugs", number, p.spec.Name)
	}
	o.plug, pl.outlet = pl, o
	return nil
}

func (p *PDU) plugAnywhere(pl *plug) error {
	for i, o := range p.outlets {
		if o.plug == nil {
			return p.plug(i+1, pl)
		}
	}
	if p.spec.Outlets == 0 {
		return p.plug(len(p.outlets)+1, pl)
	}
	return fmt.Errorf("PDU %s has %d outlets; %s needs one more", p.spec.Name, len(p.outlets), pl.load.Name)
}

// PDU returns a unit by its name, such as r01/a.
func (g *Grid) PDU(name string) (*PDU, bool) {
	p, ok := g.pdus[name]
	return p, ok
}

// Trip opens a PDU's breaker of a phase by hand or fault; phase 0 opens all.
func (g *Grid) Trip(pdu string, phase int) error {
	return g.each(pdu, phase, func(now time.Time, c *circuit) []*circuit {
		if c.open {
			return nil
		}
		g.trips = append(g.trips, Trip{PDU: pdu, Breaker: c.number, At: now, Amps: c.amps, Rating: c.rating, Why: "fault"})
		c.trip()
		return append(g.refresh(now, c.outlets), c)
	})
}

// Close closes breakers that are open; phase 0: all. All supplies behind them
// draw their surge at once, so that it may open again.
func (g *Grid) Close(pdu string, phase int) error {
	return g.each(pdu, phase, func(now time.Time, c *circuit) []*circuit {
		if !c.open {
			return nil
		}
		c.open = false
		return append(g.refresh(now, c.outlets), c)
	})
}

// Input cuts or restores the power of a whole PDU. Without it the card answers
// nothing.
func (g *Grid) Input(pdu string, live bool) error {
	if p, ok := g.pdus[pdu]; ok {
		g.mu.Lock()
		p.dark = !live
		g.mu.Unlock()
	}
	return g.each(pdu, 0, func(now time.Time, c *circuit) []*circuit { return append(g.refresh(now, c.outlets), c) })
}

// each does something to the breaker of a phase, or to all of a PDU.
func (g *Grid) each(pdu string, phase int, act func(time.Time, *circuit) []*circuit) error {
	p, ok := g.pdus[pdu]
	if !ok {
		return fmt.Errorf("there is no PDU %q", pdu)
	}
	if phase < 0 || phase > len(p.circuits) {
		return fmt.Errorf("PDU %s has the phases 1 to %d", pdu, len(p.circuits))
	}
	g.do(func(now time.Time) {
		var dirty []*circuit
		for _, c := range p.circuits {
			if phase == 0 || phase == c.number {
				dirty = append(dirty, act(now, c)...)
			}
		}
		g.settle(now, dirty)
	})
	return nil
}

// Switch turns the relay of an outlet on or off.
func (p *PDU) Switch(number int, on bool) error {
	if number < 1 || number > len(p.outlets) {
		return fmt.Errorf("PDU %s has no outlet %d", p.spec.Name, number)
	}
	o := p.outlets[number-1]
	p.grid.do(func(now time.Time) {
		o.off = !on
		p.grid.settle(now, append(p.grid.refresh(now, []*outlet{o}), o.circuit))
	})
	return nil
}

// MovePlug pulls the plug out of one outlet of a PDU and puts it into a free one.
func (g *Grid) MovePlug(pdu string, from, to int) error {
	p, ok := g.pdus[pdu]
	if !ok || min(from, to) < 1 || max(from, to) > len(p.outlets) {
		return fmt.Errorf("PDU %s has no outlets %d and %d", pdu, from, to)
	}
	a, b := p.outlets[from-1], p.outlets[to-1]
	var err error
	g.do(func(now time.Time) {
		if a.plug == nil || b.plug != nil {
			err = fmt.Errorf("PDU %s: no plug can be moved from outlet %d to %d", pdu, from, to)
			return
		}
		a.plug, b.plug = nil, a.plug
		b.plug.outlet = b
		g.settle(now, append(g.refresh(now, []*outlet{b}), a.circuit, b.circuit))
	})
	return err
}

// reboot turns an outlet off, and on again after a while.
func (p *PDU) reboot(number int) {
	o := p.outlets[number-1]
	p.grid.do(func(now time.Time) {
		o.off, o.backAt = true, now.Add(rebootFor)
		p.grid.back = append(p.grid.back, o)
		p.grid.settle(now, append(p.grid.refresh(now, []*outlet{o}), o.circuit))
	})
}

// Reading is what the meters of a PDU show.
type Reading struct {
	Watts    float64
	Volts    float64 // at the outlets
	Lines    []float64
	Breakers []BreakerReading
	Outlets  []OutletReading
}

// BreakerReading is one breaker.
type BreakerReading struct {
	Amps, Rating float64
	Open         bool
}

// OutletReading is one outlet. On is the relay's state: behind an open breaker it
// stays on.
type OutletReading struct {
	Load        string // empty: free
	On          bool
	Amps, Watts float64
	Breaker     int // from 1
}

// Read reads the meters.
func (p *PDU) Read() Reading {
	p.grid.mu.Lock()
	defer p.grid.mu.Unlock()
	r := Reading{Volts: p.lines}
	for _, c := range p.circuits {
		r.Breakers = append(r.Breakers, BreakerReading{Amps: c.amps, Rating: c.rating, Open: c.open})
		r.Watts += c.amps * c.volts
	}
	for _, o := range p.outlets {
		or := OutletReading{On: !o.off, Breaker: o.circuit.number}
		if o.plug != nil {
			or.Load, or.Watts, or.Amps = o.plug.load.Name, o.plug.watts, o.plug.watts/o.circuit.volts
		}
		r.Outlets = append(r.Outlets, or)
	}
	r.Lines = p.lineAmps()
	return r
}

// lineAmps are the currents of the input. A line of a delta carries the
// difference of two currents that are 120 degrees apart.
func (p *PDU) lineAmps() (lines []float64) {
	for i, c := range p.circuits {
		a := c.amps
		if p.delta {
			b := p.circuits[(i+2)%3].amps
			a = math.Sqrt(a*a + b*b + a*b)
		}
		lines = append(lines, a)
	}
	return lines
}

// dead reports whether the card has no power.
func (p *PDU) dead() bool {
	p.grid.mu.Lock()
	defer p.grid.mu.Unlock()
	return p.dark
}
