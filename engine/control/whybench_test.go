// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"path/filepath"
	"testing"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
)

// BenchmarkWhy measures the story of one of 12,500 nodes from a file, once it is open; 1,000
// with -short.
func BenchmarkWhy(b *testing.B) {
	nodes := 12500
	if testing.Short() {
		nodes = 1000
	}
	path := filepath.Join(b.TempDir(), "state.db")
	s, err := state.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	f, err := s.Claim(b.Context(), "bench")
	if err == nil {
		err = statetest.Fill(b.Context(), s, f, nodes)
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	r, err := state.OpenReadOnly(path)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for b.Loop() {
		if w, err := control.ReadWhy(b.Context(), r, "n00500"); err != nil || len(w.Steps) != 12 || len(w.Effects) != 4 {
			b.Fatalf("%d steps, %d effects: %v", len(w.Steps), len(w.Effects), err)
		}
	}
}
