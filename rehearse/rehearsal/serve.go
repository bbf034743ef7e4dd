// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// Faults that begin after acceptance: the nodes serve for a while, under load as jobs make it,
// the faults come and go, and `ironrail drift` is asked what changed.
const (
	serveFor  = 10 * time.Minute // behind the last moment of a fault
	jobsEvery = 5 * time.Second  // between two looks at what jobs send
	mostLooks = 2000             // however long nodes serve
	// jobsSend is what a port sends in a second, bytes: a twentieth of what one of 400 Gb/s can.
	jobsSend = 2_500_000_000
)

// begin lets a fault begin at its moment, which is now: at once, or when its time has come.
func (t *Rehearsal) begin(f fault.Fault) error {
	spells := f.Spells(t.opt.Seed)
	if len(spells) == 1 && spells[0] == (fault.Spell{}) {
		return t.Plant(f)
	}
	t.timers.Go(func() { t.follow(f, spells) })
	return nil
}

// follow plants a fault and takes it away as its times say.
func (t *Rehearsal) follow(f fault.Fault, spells []fault.Spell) {
	began := t.Clock.Now()
	wait := func(until time.Duration) bool {
		return t.Clock.Sleep(t.timed, began.Add(until).Sub(t.Clock.Now())) == nil
	}
	for _, s := range spells {
		if !wait(s.From) {
			return
		}
		err := t.Plant(f)
		if err == nil && s.To > 0 {
			if !wait(s.To) {
				return
			}
			err = t.World.Lift(f)
		}
		if err != nil {
			t.note(fmt.Sprintf("fault %s cannot be planted: %v", f.Kind, err))
			return
		}
	}
}

// late are the faults that begin after acceptance.
func (t *Rehearsal) late() []fault.Fault {
	return slices.DeleteFunc(slices.Clone(t.opt.Faults), func(f fault.Fault) bool { return f.At != fault.Accepted })
}

// change is a late fault that comes, or goes.
type change struct {
	at    time.Duration // behind acceptance
	do    func(fault.Fault) error
	fault fault.Fault
}

// changes are those of late faults, in the order in which they happen.
func (t *Rehearsal) changes(late []fault.Fault) (list []change) {
	for _, f := range late {
		for _, s := range f.Spells(t.opt.Seed) {
			list = append(list, change{s.From, t.Plant, f})
			if s.To > 0 {
				list = append(list, change{s.To, t.World.Lift, f})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return list
}

// serve lets the nodes serve while the late faults come and go, and asks what drifted.
func (t *Rehearsal) serve(ctx context.Context, late []fault.Fault) error {
	end := time.Duration(0)
	for _, f := range late {
		end = max(end, f.Horizon())
	}
	end += serveFor
	t.note(fmt.Sprintf("the nodes serve for %s, and faults begin; then drift is looked for", end))
	t.World.LoadGPUs(true)
	began, tick, last, left := t.Clock.Now(), max(jobsEvery, end/mostLooks), time.Duration(0), t.changes(late)
	for last < end { // one thing after another, so that the same seed counts the same
		for len(left) > 0 && left[0].at <= last {
			if err := left[0].do(left[0].fault); err != nil {
				return fmt.Errorf("fault %s: %w", left[0].fault.Kind, err)
			}
			left = left[1:]
		}
		next := last + tick
		if len(left) > 0 {
			next = min(next, left[0].at)
		}
		if err := t.Clock.Sleep(ctx, began.Add(next).Sub(t.Clock.Now())); err != nil {
			return err
		}
		t.World.CarryTraffic(int64(jobsSend * (next - last).Seconds()))
		last = next
	}
	t.World.LoadGPUs(false)
	d, err := t.drift(ctx)
	if err != nil {
		return fmt.Errorf("drift: %w", err)
	}
	t.sum.evaluateDrift(d, t.inv, late, t.World.FaultyPart)
	return nil
}

// drift is what `ironrail drift --bmc always` finds now.
func (t *Rehearsal) drift(ctx context.Context) (observe.Drift, error) {
	t.Store.Reopen(func(error) {})
	fence, err := t.Store.Claim(ctx, "rehearsal")
	if err != nil {
		return observe.Drift{}, err
	}
	ob, err := t.Site.Observer(ctx, t.Store)
	if err != nil {
		return observe.Drift{}, err
	}
	return ob.Drift(ctx, t.Store, fence, observe.DriftOptions{BMCs: observe.BMCsAlways, Now: t.Clock.Now()})
}

// Drifted is what drift found while the nodes served.
type Drifted struct {
	Node  string `json:"node"`
	Kind  string `json:"kind"`
	Part  string `json:"part,omitempty"`
	Name  string `json:"name"`
	Cause string `json:"cause"`
}

// evaluateDrift fills in what drift says, and which of the late faults it names.
func (s *Summary) evaluateDrift(d observe.Drift, inv *inventory.Inventory, late []fault.Fault, partOf func(fault.Fault) virtual.FaultyPart) {
	s.Drift = []Drifted{}
	var names [][]stage.Suspect
	for _, c := range d.Changes {
		s.Drift = append(s.Drift, Drifted{Node: c.Node, Kind: c.Kind, Part: c.Part, Name: c.Name, Cause: c.Was + " -> " + c.Is})
		names = append(names, suspectsOf(c))
	}
	for _, u := range d.Unknown {
		s.Drift = append(s.Drift, Drifted{Node: u.Node, Kind: u.Kind, Name: "not seen", Cause: u.Why})
		part := ""
		if u.Kind == drift.BIOS {
			part = "BMC"
		}
		names = append(names, []stage.Suspect{{Subject: subjectOf(u.Of, u.Node), Part: part}})
	}
	var all []expectation
	for _, f := range late {
		e := expect(f, inv, partOf(f))
		all = append(all, e)
		found := slices.ContainsFunc(names, func(list []stage.Suspect) bool { return slices.ContainsFunc(list, e.matches) })
		for i, p := range s.Faults {
			if p.Kind == f.Kind && p.Where == f.Where() {
				s.Faults[i].Found = found
			}
		}
	}
	for i, c := range s.Drift {
		expected := slices.ContainsFunc(all, func(e expectation) bool {
			return slices.ContainsFunc(names[i], func(n stage.Suspect) bool {
				return e.matches(n) || slices.ContainsFunc(append(e.want, e.beside...), func(w suspect) bool { return w.subject == n.Subject })
			})
		})
		if !expected && c.Kind != drift.Settings {
			s.Unexpected = append(s.Unexpected, ExtraSuspect{Subject: c.Node, Part: c.Part, Cause: c.Kind + " " + c.Name + ": " + c.Cause})
		}
	}
}

// railInWords is a rail in the evidence of a step that is not as the site has it.
var railInWords = lazyregexp.New(`\brail \d+\b`)

// subjectOf is what a change is about: a node where nothing else is said.
func subjectOf(of subject.Kind, name string) subject.ID {
	return subject.ID{Kind: cmp.Or(of, subject.Node), Name: name}
}

// suspectsOf are the names by which a change is meant: as findings name the part, and as the
// site names a port.
func suspectsOf(c drift.Change) []stage.Suspect {
	of := subjectOf(c.Of, c.Node)
	list := []stage.Suspect{{Subject: of, Part: c.Part}}
	switch {
	case of.Kind == subject.Fabric && c.Kind == drift.Settings && strings.HasSuffix(c.Name, ".subnet"):
		return append(list, stage.Suspect{Subject: of, Part: "subnet manager"})
	case of.Kind != subject.Node:
		return list
	}
	if c.Port != "" {
		list = append(list, stage.Suspect{Subject: of, Part: c.Port})
	}
	switch {
	case c.Kind == drift.Settings:
		for _, m := range railInWords.FindAllStringSubmatch(c.Is, -1) {
			list = append(list, stage.Suspect{Subject: of, Part: m[0]})
		}
	case strings.HasPrefix(c.Part, "memory "):
		list = append(list, stage.Suspect{Subject: of, Part: "memory"})
	case strings.Contains(c.Part, ":"):
		at, _, _ := strings.Cut(c.Part, " ")
		list = append(list, stage.Suspect{Subject: of, Part: "GPU at " + at}, stage.Suspect{Subject: of, Part: "NIC at " + at})
	}
	return list
}
