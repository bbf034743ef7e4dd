// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// ForgottenFact is when a node was forgotten last that a hand-over had given away,
// and that was not taken back: what the scheduler has is written once more, without
// the node, also when no node is left.
const ForgottenFact = fact.Name[time.Time]("handover.forgotten")

// SubjectOf is what the step of a hand-over works on.
func SubjectOf(handover string) subject.ID {
	return subject.ID{Kind: subject.Site, Name: "handover." + handover}
}

// forgottenInputs returns the input of a hand-over that had a node which was forgotten; nil
// when there was none.
func forgottenInputs(view stage.View, h *inventory.Handover) []plan.Input {
	if view == nil {
		return nil
	}
	f, ok := view.Fact(ForgottenFact.Of(SubjectOf(h.Name)))
	if !ok {
		return nil
	}
	at, err := ForgottenFact.Get(f)
	if err != nil {
		return nil
	}
	return []plan.Input{{Name: "nodes that were only forgotten", Value: "the last at " + at.UTC().Format(time.RFC3339), Decl: stage.Source(h.Decl)}}
}
