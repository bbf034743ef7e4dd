// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
)

// TestDriftOfANodeThatWasNeverAccepted: it is not looked at, is not counted among the
// nodes without drift, and cannot be taken for how it is meant to be.
func TestDriftOfANodeThatWasNeverAccepted(t *testing.T) {
	t.Parallel()
	s, store := rolling(t, 2, strings.Repeat("1", 64), ""), state.NewMemory()
	fence, err := store.Claim(t.Context(), "drift")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	o := DriftOptions{Words: []string{"n001"}, Now: now}
	d, err := s.Drift(t.Context(), store, fence, o)
	if err != nil {
		t.Fatal(err)
	}
	if d.Nodes != 0 || len(d.Changes) != 0 || len(d.Unknown) != 0 || len(d.Notes) != 1 || !strings.Contains(d.Notes[0].Text, "n001 is neither accepted nor adopted") {
		t.Errorf("%+v", d)
	}
	taken, unknown, err := s.DriftAccept(t.Context(), store, fence, o, "ann", "it looks well")
	if err != nil || len(taken) != 0 || len(unknown) != 1 || !strings.Contains(unknown[0].Why, "ironrail adopt n001") {
		t.Errorf("taken %v, unknown %+v, %v", taken, unknown, err)
	}
	if d, err = s.Drift(t.Context(), store, fence, DriftOptions{Now: now}); err != nil || d.Nodes != 0 || len(d.Notes) != 0 {
		t.Errorf("of the whole site: %+v, %v", d, err)
	}
}
