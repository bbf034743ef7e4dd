// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
	"github.com/ironrail/ironrail/internal/errkind"
)

// TestDiskFull: the append that finds no room fails and says so, what was appended
// before is all there, and with room it goes on.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := statetest.SmallDisk(t, 300)
	path := filepath.Join(dir, "state.db")
	s, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	r := state.Record{Kind: state.Note}.With(strings.Repeat("x", 3000))
	written := uint64(0)
	for err == nil {
		if _, err = s.Append(t.Context(), f, state.Batch{Records: []state.Record{r}}); err == nil {
			written++
		}
	}
	if errkind.Of(err) != errkind.Interrupted || !strings.Contains(err.Error(), "disk full") || !strings.Contains(errkind.Action(err), "apply again") || written < 10 {
		t.Errorf("after %d records: kind %v, error %v, action %q", written, errkind.Of(err), err, errkind.Action(err))
	}
	if _, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{r}}); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("the next append: %v", err)
	}
	if got := count(t, s); got != written {
		t.Errorf("%d records are read while the disk is full, %d were written", got, written)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := state.SaveCopy(t.Context(), filepath.Join(dir, "copy.db"), func(w io.Writer) error { return snapshot(t.Context(), path, w) }); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("a copy to the full disk: %v", err)
	}
	if p, err := state.VerifyFile(t.Context(), path); err != nil || p.Last != written {
		t.Errorf("%d records: %v", p.Last, err)
	}
	statetest.Room(t, dir)
	if s, err = state.Open(path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if f, err = s.Claim(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	if seq, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{r}}); err != nil || seq != written+1 {
		t.Errorf("with room: record %d, %v", seq, err)
	}
}

func snapshot(ctx context.Context, path string, w io.Writer) error {
	s, err := state.OpenReadOnly(path)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Snapshot(ctx, w)
}

// count reads the whole journal.
func count(t *testing.T, r state.Reader) (n uint64) {
	t.Helper()
	if err := r.Read(t.Context(), 1, func(state.Record) error { n++; return nil }); err != nil {
		t.Error(err)
	}
	return n
}

// TestSnapshotWhileWritten: a copy is one moment of a store that is written, and is
// whole.
func TestSnapshotWhileWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openBolt(t, dir).(*state.Bolt)
	defer s.Close()
	f, err := s.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; err == nil && ctx.Err() == nil; i++ {
			p, _ := state.PutOf(state.Key{Kind: "count", Name: "n"}, i+1)
			_, err = s.Append(context.Background(), f, state.Batch{Puts: []state.Put{p}, Records: []state.Record{state.Record{Kind: state.Note}.With(i + 1)}})
		}
		done <- err
	}()
	for i := range 8 {
		path := filepath.Join(dir, "copy.db")
		p, err := state.SaveCopy(t.Context(), path, func(w io.Writer) error { return s.Snapshot(t.Context(), w) })
		if err != nil {
			t.Fatal(err)
		}
		c, err := state.OpenReadOnly(path)
		if err != nil {
			t.Fatal(err)
		}
		n, _, err := state.Get[uint64](t.Context(), c, state.Key{Kind: "count", Name: "n"})
		if err != nil || n != p.Last || count(t, c) != n {
			t.Errorf("copy %d: %d records, and the object says %d: %v", i, p.Last, n, err)
		}
		_ = c.Close()
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestCompact: the journal of old runs goes, with what only it needed; nothing else does.
func TestCompact(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	s := must(state.Open(path))(t)
	f := must(s.Claim(t.Context(), "test"))(t)
	for i, run := range []string{"r1", "r2", "r3"} {
		last := state.Run{ID: run, Plan: "p" + run, Started: time.Unix(int64(i), 0).UTC()}
		b := state.Batch{Records: []state.Record{state.Record{Kind: state.RunStarted, Run: run}.With(last), {Kind: state.Note, Run: run}}}
		b.Puts = append(b.Puts,
			must(state.PutOf(state.LastRun, last))(t),
			must(state.PutOf(state.PlanKey(last.Plan), map[string]string{"id": last.Plan}))(t),
			must(state.PutOf(state.EffectKey(run+"/power"), state.Effect{Key: run + "/power", State: state.EffectIsDone, Run: run}))(t),
			must(state.PutOf(state.EffectKey(run+"/doubt"), state.Effect{Key: run + "/doubt", State: state.EffectInDoubt, Run: run}))(t),
			must(state.PutOf(state.FrozenKey(last.Plan, "all/x"), state.Frozen{Plan: last.Plan}))(t),
			must(state.PutOf(state.NodeKey("n"+run), state.Node{Name: "n" + run}))(t))
		must(s.Append(t.Context(), f, b))(t)
	}
	was, _, err := s.Object(t.Context(), state.NodeKey("nr1"))
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	dry := must(state.Compact(t.Context(), path, 2, true))(t)
	before := must(os.ReadFile(path))(t)
	if dry.First != 3 || dry.Records != 2 || dry.Effects != 1 || dry.Groups != 2 || len(dry.Runs) != 2 {
		t.Errorf("would drop: %+v", dry)
	}
	if after := must(os.ReadFile(path))(t); !bytes.Equal(before, after) {
		t.Error("a dry run has written")
	}
	did := must(state.Compact(t.Context(), path, 2, false))(t)
	if did.First != 3 || did.After == 0 || did.After > did.Before {
		t.Errorf("did: %+v", did)
	}
	s = must(state.Open(path))(t)
	defer s.Close()
	for k, want := range map[state.Key]bool{state.EffectKey("r1/power"): false, state.EffectKey("r1/doubt"): true, state.EffectKey("r2/power"): true,
		state.FrozenKey("pr2", "all/x"): false, state.FrozenKey("pr3", "all/x"): true, state.NodeKey("nr1"): true, state.PlanKey("pr3"): true} {
		if _, ok, err := s.Object(t.Context(), k); err != nil || ok != want {
			t.Errorf("%s: there %t, want %t (%v)", k, ok, want, err)
		}
	}
	if now, _, err := s.Object(t.Context(), state.NodeKey("nr1")); err != nil || now.Version != was.Version {
		t.Errorf("version %d, was %d (%v)", now.Version, was.Version, err)
	}
	if n := count(t, s); n != 4 || s.Info().First != 3 {
		t.Errorf("%d records from %d", n, s.Info().First)
	}
	f = must(s.Claim(t.Context(), "test"))(t)
	if seq := must(s.Append(t.Context(), f, state.Batch{Records: []state.Record{{Kind: state.Note}}}))(t); seq != 7 || f.Number != 2 {
		t.Errorf("continues with record %d under fence %d", seq, f.Number)
	}
}

// must unwraps what a call returned.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
