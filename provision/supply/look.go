// SPDX-License-Identifier: Apache-2.0

package supply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/pdu"
)

// IsRead reports whether a PDU can be read: the site says how, and its model is known.
func IsRead(p *inventory.PDU) bool {
	return p.Control != nil && slices.Contains(pdu.Models(), p.Control.Model)
}

// Look reads a PDU now and blames by the run what the stage's own step would find, each outlet that
// is not switched as it was when that step read it, and plugs that were moved. before: that step
// has read the PDU, so that there is something to compare its outlets with. It takes some 20 requests,
// and changes nothing. The error says that the PDU could not be read.
func (s *Stage) Look(ctx context.Context, run stage.Run, p *inventory.PDU) (before bool, err error) {
	m, err := s.deps.Meter(p)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	now, err := m.Read(ctx)
	if err != nil {
		return false, err
	}
	if err := s.checkReading(ctx, run, p, now); err != nil && errkind.Of(err) != errkind.Mismatch {
		return false, err
	}
	f, read := run.Fact(readingFact.Of(Of(p)))
	if !read {
		return false, nil
	}
	was, err := readingFact.Get(f)
	if err != nil {
		return false, err
	}
	if len(s.openBreakers(p, was, now)) > 0 || carriesNothing(now) {
		return true, nil // what is behind an open breaker is said by it
	}
	for _, o := range switchedOutlets(was, now) {
		if err := s.blameOutlet(ctx, run, p, was, o); err != nil {
			return true, err
		}
	}
	return true, s.blameMoved(ctx, run, p, was, now)
}

// switchedOutlets are the outlets that were on or off at one reading and are otherwise at another.
func switchedOutlets(was, now pdu.Reading) (list []pdu.Outlet) {
	before := map[int]pdu.State{}
	for _, o := range was.Outlets {
		before[o.Number] = o.State
	}
	known := []pdu.State{pdu.On, pdu.Off}
	for _, o := range now.Outlets {
		if b := before[o.Number]; b != o.State && slices.Contains(known, b) && slices.Contains(known, o.State) {
			list = append(list, o)
		}
	}
	return list
}

// carries is what a supply draws at least that a node runs on: 57 W at 230 V. Belief: one that stands by
// for its partner draws less, and one that shares the load of an idle node more.
const carries = 0.25

// blameMoved records outlets that carry something now, carried nothing when the nodes of their PDU were
// tested, and are free by the site: a plug was moved there, or somebody has plugged in what the
// site does not have. Where the site gives no numbers of outlets, or the PDU does not measure each,
// nobody knows which one is free. Supplies that take turns (cold redundancy) are on outlets that the
// site has.
func (s *Stage) blameMoved(ctx context.Context, run stage.Run, p *inventory.PDU, was, now pdu.Reading) error {
	if !s.isNumbered(p) {
		return nil
	}
	began, ended := changedLoads(was, now)
	var dark []string
	for _, o := range ended {
		if o.State != pdu.Off {
			dark = append(dark, fmt.Sprintf("outlet %d carries nothing more; it feeds %s", o.Number, orNothing(s.fedBy(p, o.Number))))
		}
	}
	for _, o := range began {
		if s.fedBy(p, o.Number) != "" {
			continue
		}
		err := run.Blame(ctx, stage.Finding{Suspects: []stage.Suspect{{Subject: Of(p), Part: fmt.Sprintf("outlet %d", o.Number)}},
			Cause:    fmt.Sprintf("outlet %d carries %.1f A, and carried nothing when its nodes were tested; the site has nothing on it", o.Number, o.Amps),
			Evidence: append([]string{fmt.Sprintf("PDU %s was read at %s", p.Name, was.At.UTC().Format("2006-01-02 15:04:05"))}, dark...),
			Action:   "Look what is plugged in there: put the plug back where the site has it, or write the outlet into its feeds."})
		if err != nil {
			return err
		}
	}
	return nil
}

// changedLoads are the outlets that carried nothing at one reading and something at another, and those of
// which the reverse is true, as they are now. Ones that are not measured are in neither.
func changedLoads(was, now pdu.Reading) (began, ended []pdu.Outlet) {
	before := map[int]pdu.Outlet{}
	for _, o := range was.Outlets {
		before[o.Number] = o
	}
	for _, o := range now.Outlets {
		b := before[o.Number]
		switch {
		case !b.Metered || !o.Metered:
		case b.Amps <= noAmps && o.Amps >= carries:
			began = append(began, o)
		case b.Amps >= carries && o.Amps <= noAmps:
			ended = append(ended, o)
		}
	}
	return began, ended
}

// isNumbered reports whether the site says for all that hangs on a PDU which outlet it is in.
func (s *Stage) isNumbered(p *inventory.PDU) bool {
	numbered := func(feeds []inventory.Feed) bool {
		return !slices.ContainsFunc(feeds, func(f inventory.Feed) bool { return f.PDU == p && f.Outlet == 0 })
	}
	for _, n := range s.inv.Nodes {
		if !numbered(n.Feeds) {
			return false
		}
	}
	for _, sw := range s.inv.Switches {
		if !numbered(sw.Feeds) {
			return false
		}
	}
	return true
}

// blameOutlet records that an outlet was switched since the stage's own step.
func (s *Stage) blameOutlet(ctx context.Context, run stage.Run, p *inventory.PDU, was pdu.Reading, o pdu.Outlet) error {
	before, action := pdu.Off, "Find out who switched it on and what hangs on it; write it into the feeds of the site."
	if o.State == pdu.Off {
		before, action = pdu.On, "Find out who switched it off, and switch it on again; what hangs on it runs without redundancy until then."
	}
	return run.Blame(ctx, stage.Finding{Suspects: []stage.Suspect{{Subject: Of(p), Part: fmt.Sprintf("outlet %d", o.Number)}},
		Cause:    fmt.Sprintf("outlet %d is %s, and was %s when its nodes were tested; it feeds %s", o.Number, o.State, before, orNothing(s.fedBy(p, o.Number))),
		Evidence: []string{fmt.Sprintf("PDU %s was read at %s", p.Name, was.At.UTC().Format("2006-01-02 15:04:05"))}, Action: action})
}

// fedBy names the supplies that the site has on an outlet.
func (s *Stage) fedBy(p *inventory.PDU, outlet int) string {
	var names []string
	add := func(of string, feeds []inventory.Feed) {
		for _, f := range feeds {
			if f.PDU == p && f.Outlet == outlet {
				names = append(names, of+" "+f.Supply)
			}
		}
	}
	for _, n := range s.inv.Nodes {
		add(n.Name, n.Feeds)
	}
	for _, sw := range s.inv.Switches {
		add(sw.Name, sw.Feeds)
	}
	return strings.Join(names, ", ")
}
