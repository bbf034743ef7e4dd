// SPDX-License-Identifier: Apache-2.0

package power

import (
	"math"
	"time"
)

// Surge is what a supply draws for a moment. Sources: at power-on a GPU node
// draws 3 to 5 times its steady current for 20 to 50 ms (Raritan PX4 application
// note on inrush of GPU servers); when mains come, a supply charges its capacitors
// with up to 40 A peak, 28 A rms, for up to a quarter of a cycle (AC inrush limit
// of Intel server supplies, technical product specification of SR2625UR, 3.8.5).
type Surge struct {
	PowerOn    float64 // multiple of the supply's share of the load's most
	PowerOnFor time.Duration
	Mains      float64 // amperes rms of each supply
	MainsFor   time.Duration
}

// DefaultSurge is the middle of the sources.
var DefaultSurge = Surge{PowerOn: 4, PowerOnFor: 35 * time.Millisecond, Mains: 28, MainsFor: 5 * time.Millisecond}

// A breaker of type C after IEC 60898-1, table 7: at 1.13 times its rating it
// holds for an hour, at 1.45 it trips within one, at 2.55 within 1 to 60 s (120 s
// above 32 A), at 5 times it does not trip at once and at 10 it must. Its heat
// follows the square of the current with a time constant; it trips at the heat of
// 1.3 times the rating, so at 1.45 after 3 minutes and at 2.55 after 36 s.
const (
	thermal  = 1.3
	constant = 120 * time.Second
	magnetic = 7.5
)

// Trip is a breaker that opened.
type Trip struct {
	PDU     string
	Breaker int // the phase, or the pair of phases that begins with it
	At      time.Time
	Amps    float64 // at that moment, a surge included
	Rating  float64 // amperes
	Why     string  // "surge", "overload" or "fault"
}

// circuit is the outlets behind one breaker.
type circuit struct {
	pdu     *PDU
	number  int
	volts   float64 // at its outlets
	rating  float64 // amperes
	outlets []*outlet

	open   bool // guarded by Grid.mu, like all below
	amps   float64
	heat   float64 // in squares of the rating, as of at
	at     time.Time
	surges []surge
}

// surge is a current for a moment.
type surge struct {
	amps  float64
	until time.Time
}

func (c *circuit) trip() { c.open, c.heat, c.surges = true, 0, nil }

func (c *circuit) add(now time.Time, amps float64, d time.Duration) {
	c.surges = append(c.surges, surge{amps, now.Add(d)})
}

// surge is the sum of what flows beside the steady current.
func (c *circuit) surge(now time.Time) (amps float64) {
	left := c.surges[:0]
	for _, s := range c.surges {
		if s.until.After(now) {
			left = append(left, s)
			amps += s.amps
		}
	}
	c.surges = left
	return amps
}

// measure brings heat up to now and takes the current of the plugs from now on.
func (c *circuit) measure(now time.Time) {
	c.heat, c.at = c.heatAt(now), now
	c.amps = 0
	for _, o := range c.outlets {
		if o.plug != nil {
			c.amps += o.plug.watts / c.volts
		}
	}
}

func (c *circuit) heatAt(t time.Time) float64 {
	end := c.end()
	return end + (c.heat-end)*math.Exp(-float64(max(t.Sub(c.at), 0))/float64(constant))
}

// end is the heat that the present current leads to.
func (c *circuit) end() float64 { return (c.amps / c.rating) * (c.amps / c.rating) }

// trips says why a breaker opens now, or "".
func (c *circuit) trips(now time.Time) string {
	switch {
	case c.open:
		return ""
	case c.amps+c.surge(now) >= magnetic*c.rating:
		return "surge"
	case c.heatAt(now) >= thermal*thermal-1e-9:
		return "overload"
	}
	return ""
}

// tripsAt is when heat will open the breaker if the current stays; zero: never.
func (c *circuit) tripsAt() time.Time {
	end := c.end()
	if c.open || end <= thermal*thermal {
		return time.Time{}
	}
	if c.heat >= thermal*thermal {
		return c.at
	}
	wait := float64(constant) * math.Log((end-c.heat)/(end-thermal*thermal))
	return c.at.Add(time.Duration(wait) + time.Microsecond)
}
