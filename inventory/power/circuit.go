// SPDX-License-Identifier: Apache-2.0

package power

import (
	"math"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// delta3 is the voltage up to which the outlets of a three-phase PDU are between
// two phases: 208 V in North America, 200 V in Japan, 230 V of an IT network.
// Above it (380 to 480 V) they are between a phase and neutral. The virtual
// rack's PDUs draw the same line.
const delta3 = 250

// wiring is the electricity of a PDU's outlets. A circuit is what outlets hang
// on: a phase and neutral, or a pair of phases.
//
//	one phase:           a circuit has V;    the PDU carries V x I
//	three phases, star:  a circuit has V/√3; a line carries what its circuit does
//	three phases, delta: a circuit has V;    line i carries the sum of the
//	                     currents of pairs i and i-1, which are 120 degrees apart:
//	                     √(a² + b² + a·b)
//
// With V the voltage between lines, and I the rated current of a line, both
// kinds carry √3 x V x I. The formulas are those of Raritan's "How to calculate
// current on a 3-phase, 208V rack PDU" and of Schneider Electric FAQ FA156194
// (AP8868); resistive loads, so no power factor.
//
// The limit of a line is I x derate: NEC 210.20(A) and 215.3 ask for a breaker of
// 125 % of a continuous load, that is 80 % of its rating; IEC 60364-4-433.1 asks
// only for a load below the rating, so a site under IEC may say derate = 1.
//
// A virtual PDU has one breaker for each circuit, of I/√3 for a pair: the share
// that balanced pairs have of their lines. Here the lines are what is judged, as
// that is the rating on the plate; the order of power-on, which must not trip a
// breaker in a rehearsal, keeps to the circuits.
type wiring struct {
	circuits int
	volts    float64 // of a circuit
	amps     float64 // of a line, derated
	delta    bool
	most     float64 // watts that a circuit's breaker carries, not derated
	limit    float64 // watts of all lines, derated
}

func wiringOf(p *inventory.PDU) wiring {
	volts, amps := float64(p.Voltage), float64(p.Current)
	if p.Phases != 3 {
		return wiring{circuits: 1, volts: volts, amps: amps * p.Derate, most: volts * amps, limit: volts * amps * p.Derate}
	}
	w := wiring{circuits: 3, volts: volts, amps: amps * p.Derate, delta: volts <= delta3, most: volts * amps / math.Sqrt(3), limit: math.Sqrt(3) * volts * amps * p.Derate}
	if !w.delta {
		w.volts /= math.Sqrt(3)
	}
	return w
}

// circuitOf is the circuit of an outlet, -1 where it cannot be known: without
// a number, or of a banked PDU that does not say how many outlets it has. The
// banks of a count that three does not divide are the first ones larger.
func (w wiring) circuitOf(p *inventory.PDU, outlet int) int {
	switch {
	case w.circuits == 1:
		return 0
	case outlet <= 0:
		return -1
	case p.Wiring != "banked":
		return (outlet - 1) % w.circuits
	case p.Outlets == 0 || outlet > p.Outlets:
		return -1
	}
	return (outlet - 1) / ((p.Outlets + w.circuits - 1) / w.circuits)
}

// lines are the currents of the lines, in amperes, of the loads of the circuits.
func (w wiring) lines(load [3]Load) (amps [3]float64) {
	if w.volts <= 0 {
		return amps
	}
	for i := range w.circuits {
		amps[i] = float64(load[i].Max) / w.volts
	}
	if !w.delta {
		return amps
	}
	pairs := amps
	for i := range amps {
		a, b := pairs[i], pairs[(i+2)%3]
		amps[i] = math.Sqrt(a*a + b*b + a*b)
	}
	return amps
}

// perLine divides the loads of the circuits over the lines: those of a pair in
// halves, so that the lines add up to what is drawn.
func (w wiring) perLine(load [3]Load) [3]Load {
	if !w.delta {
		return load
	}
	var out [3]Load
	for i := range out {
		out[i] = load[i].plus(load[(i+2)%3]).times(0.5)
	}
	return out
}

func sumLoads(load [3]Load) Load { return load[0].plus(load[1]).plus(load[2]) }

func addLoads(a, b [3]Load) [3]Load {
	for i := range a {
		a[i] = a[i].plus(b[i])
	}
	return a
}

// pduResult appends the phases of a PDU and returns the rest of it.
func (s *site) pduResult(p *pdu, phases *[]Phase) PDU {
	out := PDU{PDU: p.PDU, Load: sumLoads(p.load), Limit: unit.Watts(p.limit)}
	worst := p.load
	if len(s.feeds) > 1 {
		out.Worst = out.Load
		if l := p.worst(); l != nil {
			worst = addLoads(p.load, l.extra)
			out.Worst, out.Lost = sumLoads(worst), s.feeds[l.feed].name
		}
	}
	amps, worstAmps := p.lines(p.load), p.lines(worst)
	load, after := p.perLine(p.load), p.perLine(worst)
	for i := range p.circuits {
		ph := Phase{Load: load[i], Limit: unit.Watts(p.limit / float64(p.circuits)), Amps: unit.Amps(amps[i]), LimitAmps: unit.Amps(p.amps)}
		if len(s.feeds) > 1 {
			ph.Worst, ph.WorstAmps = after[i], unit.Amps(worstAmps[i])
		}
		*phases = append(*phases, ph)
	}
	return out
}
