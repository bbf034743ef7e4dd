// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/provision/onrecord"
)

// EventFilter chooses events. Empty fields choose all, but for progress and facts.
type EventFilter struct {
	Node string
	Type event.Type
	Page int // from 1, the newest first
}

// MostEventPages bounds how far back the page goes; `ironrail events` has all.
const MostEventPages = 50

// Events is a page of what happened, the newest first.
type Events struct {
	Page   int           `json:"page"`
	More   bool          `json:"more"` // there are older ones
	Types  []event.Type  `json:"types"`
	Events []event.Event `json:"events"`
}

// eventTypes are the types that the page offers to choose.
var eventTypes = []event.Type{event.RunStarted, event.RunEnded, event.Approved, event.FindingMade, event.StepFailed, event.StepStarted, event.StepDone, event.StepSkipped,
	event.StepRetried, event.StepSlow, event.EffectDone, event.FactLearned, event.Held, event.Released, event.Evidence, event.Note}

// eventsRead is the page of events that was read last. One is read at a time, and the same one
// again as often as its reading allows: where a filter chooses few, all segments are read.
type eventsRead struct {
	sync.Mutex
	filter EventFilter
	events Events
	at     time.Time
	took   time.Duration // 0: none was read
}

// Events is a page of the kept events, the newest first. Its lists are not to be changed.
func (k *Keeper) Events(ctx context.Context, f EventFilter) (Events, error) {
	e := &k.events
	e.Lock()
	defer e.Unlock()
	if now := k.Now(); e.took > 0 && e.filter == f && now.Sub(e.at) >= 0 && now.Sub(e.at) < share*e.took {
		return e.events, nil
	}
	at, begun := k.Now(), time.Now()
	out, err := k.readEvents(ctx, f)
	if err == nil {
		e.filter, e.events, e.at, e.took = f, out, at, time.Since(begun)
	}
	return out, err
}

// readEvents reads the kept events backward, as far as the page goes.
func (k *Keeper) readEvents(ctx context.Context, f EventFilter) (Events, error) {
	out := Events{Page: min(max(f.Page, 1), MostEventPages), Types: slices.Clone(eventTypes), Events: []event.Event{}}
	skip := (out.Page - 1) * EventsPerPage
	err := onrecord.NewestEvents(k.State, func(e event.Event) bool {
		switch {
		case ctx.Err() != nil:
			return false
		case f.Node != "" && e.Node != f.Node, f.Type != "" && e.Type != f.Type, f.Type == "" && (e.Type == event.StepProgress || e.Type == event.FactLearned), !hasText(e):
			return true
		case skip > 0:
			skip--
			return true
		case len(out.Events) == EventsPerPage:
			out.More = out.Page < MostEventPages
			return false
		}
		out.Events = append(out.Events, e)
		return true
	})
	if err == nil {
		err = ctx.Err()
	}
	return out, err
}
