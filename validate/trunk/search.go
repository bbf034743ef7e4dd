// SPDX-License-Identifier: Apache-2.0

package trunk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/validate/isolate"
)

// PacketSize is the most that an RDMA packet carries, bytes (IBTA): a transfer sends at
// least as many packets as it has of these.
const PacketSize = 4096

// Bounds of a search.
const (
	mostTraced = 24 // transfers that are run alone to learn their ways
	firstBad   = 3  // of these bad ones, before good ones are asked for what acquits
)

// Search finds what lies between leaves and is at fault for transfers.
type Search struct {
	Watch *Watch // nil: the fabric's cables between switches are not known
	Worn  []Worn
	// Leaves says that a leaf may be at fault for all that crosses it: no measurement has
	// acquitted it yet. Good transfers acquit the leaves that they are between.
	Leaves bool
	// Run runs one transfer with nothing beside it, and says whether it was bad, how many
	// packets it sent at least, and what it gave in words.
	Run func(context.Context, isolate.Measurement) (bad bool, packets uint64, text string)
}

// Found is what a search gave.
type Found struct {
	Suspects  []isolate.Part // empty: nothing between leaves explains the bad ones
	Ambiguous bool           // not every suspect is at fault
	Notes     []string       // what was looked at
	fabric    string
	traced    []isolate.Measurement
}

// Find explains bad transfers between leaves. Their ways are learned one by one: the
// counters of both ends of every cable are read before and after each, and those that
// rose by it are its way. Good ones are run too, as long as several parts explain the
// bad ones alike. Where no counter can be read, the leaves say what they can.
func (s *Search) Find(ctx context.Context, bad, good []isolate.Measurement) Found {
	f := Found{}
	if s.Watch == nil {
		return f
	}
	f.fabric = s.Watch.fabric.Name
	if len(s.Watch.before) > 0 {
		s.trace(ctx, &f, slices.Clone(bad), slices.Clone(good))
	}
	if len(f.Suspects) == 0 && !slices.ContainsFunc(f.traced, func(m isolate.Measurement) bool { return len(m.Via) > 0 }) {
		v := isolate.FindBetweenLeaves(bad)
		f.Suspects, f.Ambiguous = v.Suspects, v.Ambiguous
		f.Notes = append(f.Notes, "the ways that the transfers took are not known: no counter of a cable between switches was read that rose by one")
	}
	return f
}

// trace learns the ways of transfers until they tell one part.
func (s *Search) trace(ctx context.Context, f *Found, bad, good []isolate.Measurement) {
	acquitting := slices.Clone(good)
	for n := 0; n < mostTraced && ctx.Err() == nil; n++ {
		next, ok := choose(f, &bad, &good)
		if !ok {
			break
		}
		m, text := s.traceOne(ctx, next)
		f.traced, f.Notes = append(f.traced, m), append(f.Notes, text)
		v := isolate.FindTrunks(f.traced)
		if s.Leaves {
			v = isolate.FindTrunksAndLeaves(slices.Concat(f.traced, acquitting))
		}
		f.Suspects, f.Ambiguous = s.narrow(v.Suspects, v.Ambiguous, f)
	}
}

// choose takes the next transfer to trace out of its list: a bad one until there are
// some, then a good one as long as what is known leaves several parts; else a bad one
// again, since another part may be at fault for it.
func choose(f *Found, bad, good *[]isolate.Measurement) (next isolate.Measurement, ok bool) {
	seen := len(f.traced)
	switch {
	case len(*bad) > 0 && (seen < firstBad || !f.Ambiguous):
		next, *bad = (*bad)[0], (*bad)[1:]
		return next, true
	case len(*good) == 0 || !f.Ambiguous:
		return next, false
	}
	best, most := 0, -1
	for i, g := range *good {
		if n := relevance(g, f.traced); n > most {
			best, most = i, n
		}
	}
	next = (*good)[best]
	*good = slices.Delete(*good, best, best+1)
	return next, true
}

// relevance says how likely a good transfer shares a part of its way with bad ones: one
// to the same port comes down the same way on InfiniBand, and one of the same leaf may
// go up by the same cable.
func relevance(g isolate.Measurement, traced []isolate.Measurement) (n int) {
	for _, b := range traced {
		if !b.Bad || b.Fabric != g.Fabric || b.Rail != g.Rail {
			continue
		}
		if b.To == g.To {
			n += 4
		}
		if b.FromLeaf == g.FromLeaf || b.ToLeaf == g.ToLeaf {
			n++
		}
	}
	return n
}

// traceOne runs one transfer and learns its way.
func (s *Search) traceOne(ctx context.Context, m isolate.Measurement) (isolate.Measurement, string) {
	before := s.Watch.counters(ctx)
	bad, packets, text := s.Run(ctx, m)
	after := s.Watch.counters(ctx)
	m.Bad, m.Via = bad, nil
	var names []string
	for _, c := range s.Watch.cables {
		if carried(before, after, c.lower, packets/2) || carried(before, after, c.upper, packets/2) {
			m.Via = append(m.Via, isolate.Crossing{Trunk: c.lower, Spine: c.upperSwitch})
			names = append(names, c.lower+" to "+c.upperSwitch)
		}
	}
	over := "over no cable whose counters rose by it"
	if len(names) > 0 {
		over = "over " + strings.Join(names, " and ")
	}
	state := "good"
	if bad {
		state = "bad"
	}
	return m, fmt.Sprintf("alone, %s (%s), %s", text, state, over)
}

// carried reports whether a port sent or received so many packets between two readings.
func carried(before, after map[fabric.SwitchPort]fabric.SwitchCounters, at fabric.SwitchPort, least uint64) bool {
	was, known := before[at]
	is, still := after[at]
	return known && still && max(grown(is.Sent, was.Sent), grown(is.Received, was.Received)) >= max(least, 1)
}

// narrow lets the errors that ports counted decide between parts that explain the bad
// transfers alike: when the cable of one alone counted some.
func (s *Search) narrow(parts []isolate.Part, ambiguous bool, f *Found) ([]isolate.Part, bool) {
	if !ambiguous {
		return parts, false
	}
	worn := slices.DeleteFunc(slices.Clone(parts), func(p isolate.Part) bool {
		return p.Scope != isolate.Trunk || !slices.ContainsFunc(s.Worn, func(w Worn) bool { return w.Trunk == p.Node })
	})
	if len(worn) != 1 || slices.ContainsFunc(f.traced, func(m isolate.Measurement) bool { return m.Bad && !worn[0].Explains(m) }) {
		return parts, true
	}
	return worn, false
}

// Explains reports whether the suspects explain a bad transfer: by its way where that is
// known, else by the leaves that they are at.
func (f Found) Explains(m isolate.Measurement) bool {
	if len(f.Suspects) == 0 || !m.Crosses() {
		return false
	}
	for _, t := range f.traced {
		if t.From == m.From && t.To == m.To && t.Rail == m.Rail && t.Fabric == m.Fabric && t.Bad && len(t.Via) > 0 {
			return slices.ContainsFunc(f.Suspects, func(p isolate.Part) bool { return p.Explains(t) })
		}
	}
	return slices.ContainsFunc(f.Suspects, func(p isolate.Part) bool {
		if p.Scope != isolate.Trunk {
			return p.Scope == isolate.Spine || p.Explains(m)
		}
		leaf := p.Node[:strings.LastIndexByte(p.Node, '/')]
		return leaf == m.FromLeaf || leaf == m.ToLeaf || strings.HasPrefix(leaf, m.FromLeaf+"/") || strings.HasPrefix(leaf, m.ToLeaf+"/")
	})
}
