// SPDX-License-Identifier: Apache-2.0

package pdu

import (
	"context"
	"math"
	"slices"
	"time"
)

// BreakerState is what a breaker does, as far as the PDU says it.
type BreakerState string

// The breaker states. Many models measure the current behind a breaker and do not say
// whether it is open: those are BreakerUnknown.
const (
	BreakerUnknown BreakerState = "unknown"
	BreakerClosed  BreakerState = "closed"
	BreakerOpen    BreakerState = "open"
)

// Reading is what a PDU measured. Parts are by number; a model that does not
// measure a part leaves it out.
type Reading struct {
	PDU      string    `json:"pdu"`
	At       time.Time `json:"at"`
	Watts    float64   `json:"watts"` // of the whole PDU
	Phases   []Phase   `json:"phases,omitempty"`
	Breakers []Breaker `json:"breakers,omitempty"`
	Outlets  []Outlet  `json:"outlets,omitempty"`
}

// Phase is one line of the input.
type Phase struct {
	Number int     `json:"number"`
	Amps   float64 `json:"amps"`
	Volts  float64 `json:"volts"` // -1: not measured
	Watts  float64 `json:"watts,omitempty"`
}

// Breaker is what protects a bank of outlets (APC: bank; Raritan: overcurrent
// protector; Sentry: branch).
type Breaker struct {
	Number int          `json:"number"`
	Amps   float64      `json:"amps"`
	Rating float64      `json:"rating,omitempty"` // amperes; 0: not said
	State  BreakerState `json:"state"`
	Load   string       `json:"load,omitempty"` // as the PDU judges it: low, normal, near overload, overload
}

// Outlet is one outlet.
type Outlet struct {
	Number  int     `json:"number"`
	State   State   `json:"state"`
	Metered bool    `json:"metered,omitempty"` // Amps and Watts were measured
	Amps    float64 `json:"amps"`
	Watts   float64 `json:"watts"`
	Phase   int     `json:"phase,omitempty"`   // 0: not said
	Breaker int     `json:"breaker,omitempty"` // 0: not said
}

// Read asks for all loads. It takes some 20 requests.
func (u *Unit) Read(ctx context.Context) (Reading, error) {
	r := Reading{PDU: u.target.Name, At: u.target.Clock.Now()}
	err := u.session(ctx, func(s *session) error {
		t := tables{s: s}
		for _, w := range t.floats(u.mib.power) {
			r.Watts = w // one row
		}
		r.Phases, r.Breakers, r.Outlets = t.phases(u.mib), t.breakers(u.mib), t.outlets(u.mib)
		return t.err
	})
	if u.mib.power.oid == "" {
		for _, p := range r.Phases {
			r.Watts += p.Watts
		}
	}
	return r, u.wrap("read", err)
}

// tables reads columns until the first error.
type tables struct {
	s   *session
	err error
}

func (t *tables) walk(c column) map[int]any {
	if t.err != nil {
		return nil
	}
	rows, err := t.s.walk(c)
	t.err = err
	return rows
}

// floats reads a column of measurements; what the PDU does not measure is left
// out.
func (t *tables) floats(c column) map[int]float64 {
	out := map[int]float64{}
	var digits map[int]any
	rows := t.walk(c)
	if c.digits != "" && len(rows) > 0 {
		digits = t.walk(column{oid: c.digits, prefix: c.prefix, suffix: c.suffix})
	}
	for n, v := range rows {
		i, ok := toInteger(v)
		if !ok || i < 0 {
			continue
		}
		scale := c.scale
		if c.digits != "" {
			d, _ := toInteger(digits[n])
			scale = math.Pow10(-min(max(d, 0), 9))
		}
		out[n] = float64(i) * scale
	}
	return out
}

func (t *tables) ints(c column) map[int]int {
	out := map[int]int{}
	for n, v := range t.walk(c) {
		if i, ok := toInteger(v); ok {
			out[n] = i
		}
	}
	return out
}

func (t *tables) phases(m *mib) (list []Phase) {
	amps, volts, watts := t.floats(m.phaseAmps), t.floats(m.phaseVolts), t.floats(m.phaseWatts)
	for _, n := range sortedNumbers(amps) {
		p := Phase{Number: n, Amps: amps[n], Volts: -1, Watts: watts[n]}
		if v, ok := volts[n]; ok {
			p.Volts = v
		}
		list = append(list, p)
	}
	return list
}

func (t *tables) breakers(m *mib) (list []Breaker) {
	amps, rating := t.floats(m.breakerAmps), t.floats(m.breakerRating)
	state, load := t.ints(m.breakerState), t.ints(m.load)
	for _, n := range sortedNumbers(amps) {
		b := Breaker{Number: n, Amps: amps[n], Rating: rating[n], State: BreakerUnknown, Load: m.loads[load[n]]}
		if i, ok := state[n]; ok && m.breakerStates[i] != "" {
			b.State = m.breakerStates[i]
		}
		list = append(list, b)
	}
	return list
}

func (t *tables) outlets(m *mib) (list []Outlet) {
	state, amps, watts := t.ints(m.state), t.floats(m.outletAmps), t.floats(m.outletWatts)
	phase, breaker := t.ints(m.outletPhase), t.ints(m.outletBreaker)
	for _, n := range sortedNumbers(state) {
		o := Outlet{Number: n, State: m.stateOf(state[n]), Amps: amps[n], Watts: watts[n], Phase: phase[n], Breaker: breaker[n]}
		if m.phases != nil {
			o.Phase = m.phases[o.Phase]
		}
		_, o.Metered = amps[n]
		list = append(list, o)
	}
	return list
}

// sortedNumbers returns the keys of a table in order.
func sortedNumbers[V any](rows map[int]V) []int {
	list := make([]int, 0, len(rows))
	for n := range rows {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}
