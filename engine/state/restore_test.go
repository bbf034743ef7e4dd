// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"io"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
)

// TestRestoreOfARunningState puts a copy back that was made in the middle of a run:
// what held only then is left out, and the run is one that nobody may go on with.
func TestRestoreOfARunningState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "state.db"), filepath.Join(dir, "copy.db")
	store := openBolt(t, dir)
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	var b state.Batch
	run := state.Run{ID: "r1", Plan: "p1", Started: someTime}
	for k, v := range map[state.Key]any{state.LastRun: run, {Kind: "fact", Name: "node/n1#momentary"}: "gone", {Kind: "fact", Name: "node/n1#lasting"}: "kept"} {
		p, err := state.PutOf(k, v)
		if err != nil {
			t.Fatal(err)
		}
		b.Puts = append(b.Puts, p)
	}
	if _, err := store.Append(t.Context(), fence, b); err != nil {
		t.Fatal(err)
	}
	if _, err := state.SaveCopy(t.Context(), copied, func(w io.Writer) error { return store.(*state.Bolt).Snapshot(t.Context(), w) }); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	void := func(k state.Key) bool { return k.Name == "node/n1#momentary" }
	if _, err := state.RestoreCopy(t.Context(), path, copied, state.Restoring{At: someTime, Void: void}); err != nil {
		t.Fatal(err)
	}
	if _, err := state.VerifyFile(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	s, err := state.OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, _, err := state.Get[state.Run](t.Context(), s, state.LastRun)
	run.Restored = true
	if err != nil || !reflect.DeepEqual(got, run) {
		t.Errorf("the run is %+v, not %+v: %v", got, run, err)
	}
	was, _, err := state.Get[state.Restoration](t.Context(), s, state.LastRestoration)
	if want := (state.Restoration{At: someTime, From: "copy.db"}); err != nil || was != want {
		t.Errorf("%+v is recorded, not %+v: %v", was, want, err)
	}
	facts, err := s.Objects(t.Context(), "fact")
	if err != nil || len(facts) != 1 || facts[0].Key.Name != "node/n1#lasting" {
		t.Errorf("facts: %v, %v", facts, err)
	}
}

var someTime = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
