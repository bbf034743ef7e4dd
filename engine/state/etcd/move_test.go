// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
	"github.com/ironrail/ironrail/internal/errkind"
)

// filledFile makes a state file of some nodes and a plan in blocks.
func filledFile(t *testing.T, path string) {
	t.Helper()
	s, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f := beOwner(t, s)
	if err := statetest.Fill(t.Context(), s, f, 30); err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{ID: "large", Lineage: s.Info().Lineage}
	for range 3000 {
		p.Steps = append(p.Steps, plan.Step{ID: "n1/install.write", Title: strings.Repeat("write, ", 60)})
	}
	one, err := state.PutPlan(t.Context(), s, f, p)
	if err == nil {
		_, err = s.Append(t.Context(), f, state.Batch{Puts: []state.Put{one}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func digestOfFile(t *testing.T, path string) string {
	t.Helper()
	s, err := state.OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := s.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func isRefused(t *testing.T, what string, err error, says string) {
	t.Helper()
	if errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v, want a refusal with %q", what, err, says)
	}
}

// TestPeerMove: a state goes from a file into real members and back, the same on both sides, and at no
// time can it be written at two places.
func TestPeerMove(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dir := t.TempDir()
	path, kept, again := filepath.Join(dir, "state.db"), filepath.Join(dir, "state.db.moved"), filepath.Join(dir, "state.db.back")
	filledFile(t, path)
	was := digestOfFile(t, path)
	c := r.config(dir, r.Endpoints())

	died, cancel := context.WithCancel(t.Context()) // a move that dies after what it has begun with
	s, err := connect(died, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.beginFilling(died, state.Info{Format: state.Format, Lineage: "L", First: 1}); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = s.client.Close()
	_, err = Open(t.Context(), c)
	isRefused(t, "a state that is not whole", err, "is not whole")

	p, err := MoveIn(t.Context(), c, path, kept)
	if err != nil || p.Last == 0 || p.Objects["node"] != 30 {
		t.Fatalf("moved %+v: %v", p, err)
	}
	for _, file := range []string{path, kept} {
		_, err := state.Open(file)
		isRefused(t, file, err, "is a copy")
		if got := digestOfFile(t, file); got != was {
			t.Errorf("%s has digest %s, not %s", file, got, was)
		}
	}
	goesBack(t, c, path, again)
	if _, err = MoveIn(t.Context(), c, path, kept); err != nil {
		t.Errorf("into etcd again: %v", err)
	}
	other := filepath.Join(dir, "other.db")
	filledFile(t, other)
	_, err = MoveIn(t.Context(), c, other, kept)
	isRefused(t, "another state", err, "already")
	if s, err := state.Open(other); err != nil {
		t.Errorf("the state that was refused: %v", err)
	} else {
		_ = s.Close()
	}
}

// goesBack changes a state in etcd, and moves it to a file.
func goesBack(t *testing.T, c Config, path, kept string) {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	standby, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Close()
	f := beOwner(t, s)
	seq, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{state.Record{Kind: state.Note}.With("in etcd")}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = MoveOut(t.Context(), c, path, kept, "to a file")
	isRefused(t, "while there is an owner", err, "in use by owner")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := MoveOut(t.Context(), c, path, kept, "to a file of a test")
	if err != nil || p.Last != seq {
		t.Fatalf("moved back %+v: %v", p, err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the copy before: %v", err)
	}
	_, err = Open(t.Context(), c)
	isRefused(t, "what was moved", err, "to a file of a test")
	_, err = standby.Claim(t.Context(), "standby")
	isRefused(t, "who has it open", err, "to a file of a test")
	b, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if next := beOwner(t, b); next.Number <= f.Number {
		t.Errorf("fence %d after %d", next.Number, f.Number)
	}
}
