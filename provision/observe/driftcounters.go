// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/validate/trunk"
)

// compareCounters compares what the ends of cables between switches have counted, and whether they have
// a link, with when nodes of the fabric were tested or accepted last.
func (l *driftLook) compareCounters(ctx context.Context, run lookRun, f *inventory.Fabric, k fabric.Counting, s *siteSeen) {
	ports, err := k.SwitchCounters(ctx, f)
	known, read := run.Fact(fabric.CountedFact.Of(subject.ID{Kind: subject.Fabric, Name: f.Name}))
	if !read {
		s.add(func(s *siteSeen) {
			if err != nil {
				s.notSeen(f, drift.Errors, false, err)
				return
			}
			s.notes = append(s.notes, drift.Note{Text: fmt.Sprintf("fabric %s: what its switches had counted when nodes were accepted is not known; the next acceptance records it", f.Name)})
		})
		return
	}
	was, bad := fabric.CountedFact.Get(known)
	if bad != nil {
		s.add(func(s *siteSeen) { s.notSeen(f, drift.Errors, true, bad) })
		return
	}
	now := l.o.Now
	if err != nil {
		answered := fabric.SwitchesOf(l.Inv, ports)
		silent := slices.DeleteFunc(slices.Clone(was.Switches), func(name string) bool { return answered[name] })
		s.add(func(s *siteSeen) { s.silentSwitches(f, silent, err) })
	}
	var changes []drift.Change
	for _, end := range trunk.Ends(l.Inv, f) {
		is, there := ports[end.At]
		if !there || !isRead(l.Inv, was, end.At) {
			continue
		}
		c := drift.Change{Node: end.Cable, Of: subject.Link, Part: end.At, Since: was.At}
		if l.wants(drift.Errors) {
			changes = append(changes, drift.CompareErrors(c, drift.EndCounts{Errors: was.Errors[end.At], Downed: was.Downed[end.At]}, drift.EndCounts{Errors: is.Errors, Downed: is.Downed}, now)...)
		}
		if l.wants(drift.Cables) && is.Down && !slices.Contains(was.Down, end.At) {
			c.Kind, c.Name, c.Was, c.Is, c.Lower = drift.Cables, "link", "up", "down", true
			c.Action = "see that neither port is shut, reseat both ends of the cable, look at its transceivers, and exchange it"
			changes = append(changes, c)
		}
	}
	s.add(func(s *siteSeen) { s.changes = append(s.changes, changes...) })
}

// isRead reports whether the switch of a port had answered when a reading was recorded.
func isRead(inv *inventory.Inventory, was fabric.Counted, port fabric.SwitchPort) bool {
	for name := range fabric.SwitchesOf(inv, map[fabric.SwitchPort]fabric.SwitchCounters{port: {}}) {
		return slices.Contains(was.Switches, name)
	}
	return false
}

// silentSwitches notes switches that were read before and do not answer now.
func (s *siteSeen) silentSwitches(f *inventory.Fabric, silent []string, err error) {
	var unseen []drift.Unknown
	for _, name := range silent {
		unseen = append(unseen, drift.Unknown{Node: name, Of: subject.Switch, Kind: drift.Errors, Why: err.Error()})
	}
	s.unknown = append(s.unknown, summarize(f, unseen)...)
}

// summarize says of many switches of a fabric that could not be read how many they are.
func summarize(f *inventory.Fabric, unseen []drift.Unknown) []drift.Unknown {
	if len(unseen) <= mostSwitches {
		return unseen
	}
	first := unseen[0]
	return []drift.Unknown{{Node: f.Name, Of: subject.Fabric, Kind: first.Kind, Why: fmt.Sprintf("%d of its switches could not be read, such as %s: %s", len(unseen), first.Node, first.Why)}}
}
