// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
)

// Enough is how many steps of a kind and a hardware the past of a site has to
// hold before it replaces the table: below, one in twenty is no number.
const Enough = 20

// tails are the slow ends of what is known of steps of one kind on one hardware,
// of one unit as in Past.
type tails struct{ p95, p99, most time.Duration }

// steady are the kinds of step whose duration follows from the hardware alone.
// Only their deadlines are taken from the past. A drain waits for jobs, a write
// for its image, a package for its build: nothing that was says how long the next
// one may rightly take.
var steady = []string{"bmc", "install.netboot", "install.inspect", "install.configure", "install.boot"}

// Budgets says for each step of a plan how long it is expected to take, when it
// is slow, and when it counts as hung. From the past of the site, where it knows
// at least Enough steps of the kind on the hardware: half ended by Expected,
// P95 by Slow, and a step of a steady kind may take twice as long
// as the slowest in a hundred and half a minute. Else from the table, of which
// one site in ten is slower than Slow. A deadline is never longer than what the
// stage allows, and never shorter than a slow site of the table, or than
// the slowest step that ended well.
func Budgets(p *plan.Plan, o Options) []plan.Budget {
	if o.Table == nil {
		o.Table = Table
	}
	e := &estimate{plan: p, opt: o}
	e.findUplink()
	e.measure()
	out := make([]plan.Budget, len(p.Steps))
	for i := range p.Steps {
		out[i] = e.budget(&p.Steps[i], &e.classes[e.of[i]])
	}
	return out
}

// budget is that of one step.
func (e *estimate) budget(s *plan.Step, c *class) plan.Budget {
	b := s.Deadline
	if c.Source == "plan" {
		return b // nobody knows better than the stage
	}
	units := c.units(s)
	times := func(d time.Duration) time.Duration { return time.Duration(float64(d) * units).Round(time.Millisecond) }
	past, lived := e.opt.History.past(c.Kind.Kind, c.Hardware)
	if !lived || past.Steps < Enough {
		row, ok := lookupRow(e.opt.Table, c.Kind.Kind, e.profile(s))
		if ok && !row.Planned {
			in := &class{per: row.Per, gib: c.gib}
			units = in.units(s)
			b.Expected, b.Slow = times(row.Mid), times(row.High)
		}
		return b
	}
	t := e.opt.History.tails[historyKey{c.Kind.Kind, c.Hardware}]
	units = c.per.in(len(membersOf(*s)))
	b.Expected, b.Slow, b.Samples = times(past.Median), times(t.p95), past.Steps
	if slices.Contains(steady, c.Kind.Kind) {
		row, _ := lookupRow(e.opt.Table, c.Kind.Kind, e.profile(s))
		b.Limit = deadlineOf(t, row.High, b.Limit)
	}
	return b
}

// deadlineOf is when a step of a steady kind counts as hung.
func deadlineOf(t tails, slowSite, stage time.Duration) time.Duration {
	const atLeast = 30 * time.Second // a short step may be held up by something that has nothing to do with it
	return max(min(max(2*t.p99+atLeast, slowSite), stage), t.most)
}
