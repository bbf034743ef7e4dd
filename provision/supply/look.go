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

// Look reads a PDU now and blames by the run what the stage's own step would find, and each outlet that
// is not switched as it was when that step read it. It takes some 20 requests, and changes
// nothing. The error says that the PDU could not be read.
func (s *Stage) Look(ctx context.Context, run stage.Run, p *inventory.PDU) error {
	m, err := s.deps.Meter(p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	now, err := m.Read(ctx)
	if err != nil {
		return err
	}
	if err := s.checkReading(ctx, run, p, now); errkind.Of(err) == errkind.Mismatch {
		return nil // what is behind an open breaker is said by it
	} else if err != nil {
		return err
	}
	f, read := run.Fact(readingFact.Of(Of(p)))
	if !read {
		return nil
	}
	was, err := readingFact.Get(f)
	if err != nil {
		return err
	}
	for _, o := range switchedOutlets(was, now) {
		if err := s.blameOutlet(ctx, run, p, was, o); err != nil {
			return err
		}
	}
	return nil
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
