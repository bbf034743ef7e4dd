// SPDX-License-Identifier: Apache-2.0

// Package statetest is the conformance suite that every state.Store passes, and
// a store that dies on demand, for crash tests.
package statetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// Open opens the store under test in dir, and makes it when dir is empty. The
// suite closes it, and opens it again to see what survived.
type Open func(t *testing.T, dir string) state.Store

// Harness is a store under test, with what can be done to it from outside. A hook that is
// nil says that the store cannot have the case, and the case is skipped.
type Harness struct {
	Open Open
	// EndLease ends the lease of s, which has claimed, without closing it: it is cut off,
	// or stood still for too long. It returns when another handle may claim.
	EndLease func(t *testing.T, s state.Store)
	// CutOff makes the answer to the next append of s be lost, and later ones too until heal is
	// called: before the append is written, or after.
	CutOff func(t *testing.T, s state.Store, when Moment) (heal func())
	// FillDisk takes the room of s away; more gives it back, and returns the store to go on
	// with, which may be s.
	FillDisk func(t *testing.T, dir string, s state.Store) (more func() state.Store)
	// SlowDown makes one member of s slow, until the test ends.
	SlowDown func(t *testing.T, s state.Store)
	// Compact drops the revisions of s that a reader under way may still have to read.
	Compact func(t *testing.T, s state.Store)
	// Twin returns another handle on what s stores that takes the fence of s: a writer that
	// does not know of s.
	Twin func(t *testing.T, dir string, s state.Store) state.Store
}

// Run checks a store against the contract of state.Store.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, Open)
	}{
		{"what was appended is read back", readsBack},
		{"it survives closing", survives},
		{"a batch is written whole or not at all", wholeOrNot},
		{"objects move only from the version wanted", versions},
		{"a version never comes back", versionsRise},
		{"objects of a kind come by name", objectsOfKind},
		{"an old fence is refused", fenced},
		{"without a claim nothing is written", unclaimed},
		{"of claims at the same time one writes", claims},
		{"of writers from one version one wins", race},
		{"who comes after a lost owner goes on", lostOwner},
		{"concurrent appends are all there, once", concurrent},
		{"read may append", appendInRead},
		{"an error of the reader ends reading", readStops},
		{"keys and values are checked", checksInput},
		{"a batch above a limit is refused", limits},
		{"a batch at every limit is written", atLimits},
		{"the first record has fence and id", carriesID},
		{"the outcome of an append is found by fence and id", outcomes},
		{"blocks are read back, whole or by the next process", blocks},
		{"an object names blocks that are there", missingBlocks},
		{"blocks that nothing names are swept", sweeps},
		{"a block of an append under way is not swept", sweepsBesideAppends},
		{"a plan lies in blocks and is read back", plans},
		{"what is replaced while it is read is read anew", replacedInRead},
		{"a copy is the same at one moment", copies},
		{"a cancelled append writes nothing", cancelled},
		{"a closed store refuses", closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, h.Open)
		})
	}
	h.runHooked(t)
}

func claimed(t *testing.T, open Open, dir string) (state.Store, state.Fence) {
	t.Helper()
	s := open(t, dir)
	t.Cleanup(func() { _ = s.Close() })
	f, err := s.Claim(t.Context(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return s, f
}

func mustAppend(t *testing.T, s state.Store, f state.Fence, b state.Batch) uint64 {
	t.Helper()
	seq, err := s.Append(t.Context(), f, b)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return seq
}

func note(text string) state.Record {
	return state.Record{Kind: state.Note, Time: time.Unix(1e9, 5).UTC(), Run: "r1", Step: "n1/install.write",
		Subject: subject.OfNode("n1")}.With(text)
}

func put(name string, want uint64, value string) state.Put {
	return state.Put{Key: state.Key{Kind: "thing", Name: name}, Want: want, Value: json.RawMessage(value)}
}

// texts returns the notes of the journal from seq on, and checks its numbers.
func texts(t *testing.T, s state.Reader, from uint64) []string {
	t.Helper()
	var out []string
	next := from
	err := s.Read(t.Context(), from, func(r state.Record) error {
		if r.Seq != next {
			t.Errorf("record %d where %d was due", r.Seq, next)
		}
		next = r.Seq + 1
		var text string
		if err := json.Unmarshal(r.Data, &text); err != nil {
			return err
		}
		out = append(out, text)
		return nil
	})
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return out
}

func readsBack(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	want := note("first")
	if seq := mustAppend(t, s, f, state.Batch{Records: []state.Record{want, note("second")}}); seq != 1 {
		t.Errorf("first record has number %d, want 1", seq)
	}
	if seq := mustAppend(t, s, f, state.Batch{Records: []state.Record{note("third")}}); seq != 3 {
		t.Errorf("third record has number %d", seq)
	}
	if got := texts(t, s, 2); !slices.Equal(got, []string{"second", "third"}) {
		t.Errorf("from 2: %q", got)
	}
	if got := texts(t, s, 4); got != nil {
		t.Errorf("past the end: %q", got)
	}
	var got state.Record
	stop := errors.New("stop")
	_ = s.Read(t.Context(), 1, func(r state.Record) error { got = r; return stop })
	want.Seq, want.Fence, want.Append = 1, f.Number, got.Append
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("record\n got %v\nwant %v", got, want)
	}
}

func survives(t *testing.T, open Open) {
	dir := t.TempDir()
	s, f := claimed(t, open, dir)
	mustAppend(t, s, f, state.Batch{Records: []state.Record{note("before")}, Puts: []state.Put{put("a", state.Absent, `1`)}})
	was := s.Info()
	if was.Lineage == "" || was.Format != state.Format || was.Created.IsZero() {
		t.Errorf("info: %+v", was)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, f2 := claimed(t, open, dir)
	if now := s.Info(); now.Lineage != was.Lineage || !now.Created.Equal(was.Created) {
		t.Errorf("info was %+v, is %+v", was, now)
	}
	if f2.Number <= f.Number {
		t.Errorf("fence %d after fence %d", f2.Number, f.Number)
	}
	mustAppend(t, s, f2, state.Batch{Records: []state.Record{note("after")}})
	if got := texts(t, s, 1); !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("journal: %q", got)
	}
	if o, ok, err := s.Object(t.Context(), state.Key{Kind: "thing", Name: "a"}); err != nil || !ok || string(o.Value) != "1" {
		t.Errorf("object: %v %v %v", o, ok, err)
	}
}

func wholeOrNot(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{put("a", state.Absent, `1`)}})
	_, err := s.Append(t.Context(), f, state.Batch{
		Records: []state.Record{note("must not be there")},
		Puts:    []state.Put{put("b", state.Absent, `1`), put("a", state.Absent, `2`)},
	})
	c, ok := errors.AsType[*state.ConflictError](err)
	if !ok || c.Key.Name != "a" || c.Want != state.Absent || c.Got == state.Absent {
		t.Fatalf("error %v, want a conflict about a", err)
	}
	if got := texts(t, s, 1); got != nil {
		t.Errorf("journal has %q", got)
	}
	if _, ok, _ := s.Object(t.Context(), state.Key{Kind: "thing", Name: "b"}); ok {
		t.Error("b was written though its batch was refused")
	}
}

func versions(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	k := state.Key{Kind: "thing", Name: "a"}
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{put("a", state.Any, `1`)}})
	one, _, _ := s.Object(t.Context(), k)
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{put("a", one.Version, `2`)}})
	two, _, _ := s.Object(t.Context(), k)
	if two.Version <= one.Version || string(two.Value) != "2" {
		t.Errorf("was %v, is %v", one, two)
	}
	if _, err := s.Append(t.Context(), f, state.Batch{Puts: []state.Put{put("a", one.Version, `3`)}}); errkind.Of(err) != errkind.Refused {
		t.Errorf("old version: %v", err)
	}
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{{Key: k, Want: two.Version}}})
	if _, ok, _ := s.Object(t.Context(), k); ok {
		t.Error("deleted object is there")
	}
}

func versionsRise(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	k := state.Key{Kind: "thing", Name: "a"}
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{put("a", state.Absent, `1`)}})
	one, _, _ := s.Object(t.Context(), k)
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{{Key: k, Want: state.Any}}})
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{put("a", state.Absent, `1`)}})
	if two, _, _ := s.Object(t.Context(), k); two.Version <= one.Version {
		t.Errorf("version %d again after %d", two.Version, one.Version)
	}
}

func objectsOfKind(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{
		put("b", state.Absent, `2`), put("a", state.Absent, `1`), put("node/n1#x", state.Absent, `3`),
		{Key: state.Key{Kind: "thin", Name: "other"}, Want: state.Absent, Value: json.RawMessage(`0`)},
		{Key: state.Key{Kind: "things", Name: "other"}, Want: state.Absent, Value: json.RawMessage(`0`)},
	}})
	os, err := s.Objects(t.Context(), "thing")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range os {
		got = append(got, o.Key.Name+"="+string(o.Value))
	}
	if want := []string{"a=1", "b=2", "node/n1#x=3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func fenced(t *testing.T, open Open) {
	s, old := claimed(t, open, t.TempDir())
	f, err := s.Claim(t.Context(), "the next")
	if err != nil {
		t.Fatal(err)
	}
	if f.Number <= old.Number {
		t.Errorf("fence %d after %d", f.Number, old.Number)
	}
	_, err = s.Append(t.Context(), old, state.Batch{Records: []state.Record{note("stale")}})
	if !errors.Is(err, state.ErrFenced) || errkind.Of(err) != errkind.Refused {
		t.Errorf("old fence: %v", err)
	}
	mustAppend(t, s, f, state.Batch{Records: []state.Record{note("good")}})
	if got := texts(t, s, 1); !slices.Equal(got, []string{"good"}) {
		t.Errorf("journal: %q", got)
	}
}

// claims: several controllers claim at once. Their numbers differ, and only the
// highest may write.
func claims(t *testing.T, open Open) {
	s, _ := claimed(t, open, t.TempDir())
	fences := make([]state.Fence, 8)
	var wg sync.WaitGroup
	for i := range fences {
		wg.Go(func() {
			var err error
			if fences[i], err = s.Claim(context.Background(), strconv.Itoa(i)); err != nil {
				t.Errorf("claim: %v", err)
			}
		})
	}
	wg.Wait()
	slices.SortFunc(fences, func(a, b state.Fence) int { return int(a.Number) - int(b.Number) })
	for i, f := range fences {
		_, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{note(f.Owner)}})
		if last := i == len(fences)-1; last != (err == nil) || !last && !errors.Is(err, state.ErrFenced) {
			t.Errorf("fence %d, the %d. of %d: %v", f.Number, i+1, len(fences), err)
		}
		if i > 0 && f.Number == fences[i-1].Number {
			t.Errorf("fence %d was given twice", f.Number)
		}
	}
	if got := texts(t, s, 1); !slices.Equal(got, []string{fences[len(fences)-1].Owner}) {
		t.Errorf("journal: %q", got)
	}
}

// race: of several that change an object from the version that they all have read,
// one changes it and the others are told.
func race(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{put("a", state.Absent, `0`)}})
	o, _, err := s.Object(t.Context(), state.Key{Kind: "thing", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 12)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			name := strconv.Itoa(i)
			_, errs[i] = s.Append(context.Background(), f, state.Batch{Records: []state.Record{note(name)}, Puts: []state.Put{put("a", o.Version, name)}})
		})
	}
	wg.Wait()
	won := -1
	for i, err := range errs {
		_, conflict := errors.AsType[*state.ConflictError](err)
		switch {
		case err == nil && won < 0:
			won = i
		case !conflict:
			t.Errorf("writer %d: %v", i, err)
		}
	}
	if got := texts(t, s, 1); won < 0 || !slices.Equal(got, []string{strconv.Itoa(won)}) {
		t.Errorf("writer %d won; journal: %q", won, got)
	}
}

// lostOwner: a process that died without closing leaves its appends, and a fence
// that no longer counts once the next has claimed.
func lostOwner(t *testing.T, open Open) {
	dir := t.TempDir()
	s, lost := claimed(t, open, dir)
	mustAppend(t, s, lost, state.Batch{Records: []state.Record{note("before")}})
	if err := s.Close(); err != nil { // the lock of a dead process is free; nothing else of it is undone
		t.Fatal(err)
	}
	s, f := claimed(t, open, dir)
	if _, err := s.Append(t.Context(), lost, state.Batch{Records: []state.Record{note("late")}}); !errors.Is(err, state.ErrFenced) {
		t.Errorf("what the lost owner had under way: %v", err)
	}
	if seq := mustAppend(t, s, f, state.Batch{Records: []state.Record{note("after")}}); seq != 2 {
		t.Errorf("it continues with record %d", seq)
	}
}

func unclaimed(t *testing.T, open Open) {
	s := open(t, t.TempDir())
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Append(t.Context(), state.Fence{}, state.Batch{Records: []state.Record{note("x")}}); !errors.Is(err, state.ErrFenced) {
		t.Errorf("append without a claim: %v", err)
	}
}

func concurrent(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	const writers, each = 16, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				name := strconv.Itoa(w) + "-" + strconv.Itoa(i)
				b := state.Batch{Records: []state.Record{note(name)}, Puts: []state.Put{put(name, state.Absent, `1`), put("last", state.Any, `1`)}}
				if _, err := s.Append(context.Background(), f, b); err != nil {
					t.Errorf("append: %v", err)
				}
				b.Records = []state.Record{note("again " + name)}
				if _, err := s.Append(context.Background(), f, b); err == nil {
					t.Error("a batch that conflicts was written beside good ones")
				}
			}
		})
	}
	wg.Wait()
	got := texts(t, s, 1)
	slices.Sort(got)
	if n := len(slices.Compact(slices.Clone(got))); n != writers*each || len(got) != n {
		t.Errorf("%d records, %d different; want %d", len(got), n, writers*each)
	}
}

func appendInRead(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	for i := range 15 {
		var b state.Batch
		for j := range state.MaxEntries {
			b.Records = append(b.Records, note(strconv.Itoa(100*i+j)))
		}
		mustAppend(t, s, f, b)
	}
	n := 0
	err := s.Read(t.Context(), 1, func(r state.Record) error {
		if n++; n <= 20 {
			_, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{note("meanwhile")}})
			return err
		}
		return nil
	})
	if err != nil || n < 1500 {
		t.Errorf("read %d records: %v", n, err)
	}
}

func readStops(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	mustAppend(t, s, f, state.Batch{Records: []state.Record{note("a"), note("b")}})
	stop, n := errors.New("enough"), 0
	if err := s.Read(t.Context(), 1, func(state.Record) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
		t.Errorf("error %v after %d records", err, n)
	}
}

func checksInput(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	for _, p := range []state.Put{
		{Key: state.Key{Kind: "a/b", Name: "c"}, Value: json.RawMessage(`1`)},
		{Key: state.Key{Kind: "", Name: "c"}, Value: json.RawMessage(`1`)},
		{Key: state.Key{Kind: "a", Name: ""}, Value: json.RawMessage(`1`)},
		{Key: state.Key{Kind: "a", Name: "b"}, Value: json.RawMessage(`{`)},
	} {
		if _, err := s.Append(t.Context(), f, state.Batch{Puts: []state.Put{p}}); err == nil {
			t.Errorf("object %q = %s was stored", p.Key, p.Value)
		}
	}
}

func cancelled(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Append(ctx, f, state.Batch{Records: []state.Record{note("x")}}); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	if got := texts(t, s, 1); got != nil {
		t.Errorf("journal: %q", got)
	}
}

func closed(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	_, err := s.Append(t.Context(), f, state.Batch{})
	_, _, errO := s.Object(t.Context(), state.Key{Kind: "a", Name: "b"})
	_, errC := s.Claim(t.Context(), "x")
	for _, err := range []error{err, errO, errC, s.Read(t.Context(), 1, nil)} {
		if !errors.Is(err, state.ErrClosed) {
			t.Errorf("closed store: %v", err)
		}
	}
}
