// SPDX-License-Identifier: Apache-2.0

package power

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/inventory"
)

// Run trips breakers whose heat rises over time, until ctx ends. It waits without
// polling. It returns nil.
func (g *Grid) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		wait, ok := g.next()
		tctx, cancel := ctx, context.CancelFunc(func() {})
		if ok {
			tctx, cancel = g.clock.WithTimeout(ctx, wait)
		}
		select {
		case <-g.wake:
		case <-tctx.Done():
			if ctx.Err() == nil {
				g.do(g.due)
			}
		}
		cancel()
	}
	return nil
}

// next is how long nothing happens by itself.
func (g *Grid) next() (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	var first time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	for c := range g.hot {
		sooner(c.tripsAt())
	}
	for _, o := range g.back {
		sooner(o.backAt)
	}
	return max(first.Sub(now), time.Millisecond), !first.IsZero()
}

// due does what time has brought: heat, and the end of an outlet's reboot.
func (g *Grid) due(now time.Time) {
	var dirty []*circuit
	for c := range g.hot {
		if t := c.tripsAt(); !t.IsZero() && !t.After(now) {
			dirty = append(dirty, c)
		}
	}
	var still []*outlet
	for _, o := range g.back {
		if o.backAt.After(now) {
			still = append(still, o)
			continue
		}
		o.off = false
		dirty = append(dirty, append(g.refresh(now, []*outlet{o}), o.circuit)...)
	}
	g.back = still
	slices.SortFunc(dirty, func(a, b *circuit) int {
		return cmp.Or(strings.Compare(a.pdu.spec.Name, b.pdu.spec.Name), cmp.Compare(a.number, b.number))
	})
	g.settle(now, dirty)
}

// DrawnWatts returns what a chassis draws: standby while it is off, else between idle and
// the most, by how busy it is (0 to 1). Idle is 40 % of typical: GPUs that do
// nothing, fans at their lowest (an assumption).
func DrawnWatts(p inventory.Power, on bool, busy float64) float64 {
	const standby, idle, bmc = 0.01, 0.4, 25 // bmc: watts of a BMC and its standby rail
	most := float64(p.Max)
	if most == 0 {
		most = float64(p.Typical)
	}
	if most == 0 {
		most = 500
	}
	if !on {
		return max(bmc, standby*most)
	}
	low := idle * float64(p.Typical)
	if low == 0 {
		low = idle * most
	}
	return low + math.Min(math.Max(busy, 0), 1)*(most-low)
}
