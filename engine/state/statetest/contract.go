// SPDX-License-Identifier: Apache-2.0

package statetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// text is a JSON string of n bytes.
func text(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }

// limits: what is above a limit is refused by name, and nothing of it is there.
func limits(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	var many, mixed state.Batch
	for i := range state.MaxEntries + 1 {
		many.Records = append(many.Records, note(strconv.Itoa(i)))
	}
	for i := range state.MaxEntries/2 + 1 {
		mixed.Records = append(mixed.Records, note("mixed"))
		mixed.Puts = append(mixed.Puts, put(strconv.Itoa(i), state.Absent, `1`))
	}
	large := note("")
	large.Data = []byte(text(state.MaxValue + 1))
	for name, b := range map[string]state.Batch{
		"101 records":   many,
		"51 of each":    mixed,
		"a large value": {Records: []state.Record{note("small")}, Puts: []state.Put{put("a", state.Any, text(state.MaxValue+1))}},
		"large data":    {Records: []state.Record{large}},
		"a large batch": {Puts: []state.Put{put("a", state.Any, text(state.MaxValue)), put("b", state.Any, text(state.MaxValue))}},
	} {
		_, err := s.Append(t.Context(), f, b)
		if l, ok := errors.AsType[*state.LimitError](err); !ok || l.Is <= l.Most || errkind.Of(err) != errkind.Unsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := s.PutBlocks(t.Context(), f, []byte("good"), make([]byte, state.MaxValue+1))
	if _, ok := errors.AsType[*state.LimitError](err); !ok {
		t.Errorf("a large block: %v", err)
	}
	if _, err := s.Block(t.Context(), state.DigestOf([]byte("good"))); errkind.Of(err) != errkind.NotFound {
		t.Errorf("the block beside the large one: %v", err)
	}
	if got := texts(t, s, 1); got != nil {
		t.Errorf("journal: %q", got)
	}
	if os, err := s.Objects(t.Context(), "thing"); err != nil || len(os) > 0 {
		t.Errorf("objects: %v %v", os, err)
	}
}

// atLimits: what is just at the limits is written.
func atLimits(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	var many state.Batch
	for i := range state.MaxEntries / 2 {
		many.Records = append(many.Records, note(strconv.Itoa(i)))
		many.Puts = append(many.Puts, put(strconv.Itoa(i), state.Absent, `1`))
	}
	mustAppend(t, s, f, many)
	large := state.Batch{Puts: []state.Put{put("a", state.Any, text(state.MaxValue)), put("b", state.Any, `1`)}}
	large.Puts[1].Value = []byte(text(state.MaxBatch - large.Size() + 1))
	if large.Size() != state.MaxBatch {
		t.Fatalf("the batch has %d bytes", large.Size())
	}
	mustAppend(t, s, f, large)
	o, _, err := s.Object(t.Context(), large.Puts[1].Key)
	if err != nil || !bytes.Equal(o.Value, large.Puts[1].Value) {
		t.Errorf("%d bytes are read back: %v", len(o.Value), err)
	}
	if _, err := s.PutBlocks(t.Context(), f, make([]byte, state.MaxValue)); err != nil {
		t.Errorf("a block: %v", err)
	}
}

// carriesID: the first record of an append says by which, and no other does.
func carriesID(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	mustAppend(t, s, f, state.Batch{Records: []state.Record{note("a"), note("b")}, ID: "MINE"})
	mustAppend(t, s, f, state.Batch{Records: []state.Record{note("c")}})
	mustAppend(t, s, f, state.Batch{Records: []state.Record{note("d")}})
	var got []state.Record
	if err := s.Read(t.Context(), 1, func(r state.Record) error { got = append(got, r); return nil }); err != nil {
		t.Fatal(err)
	}
	if r := got[0]; r.Append != "MINE" || r.Fence != f.Number {
		t.Errorf("the first record is of append %q under fence %d", r.Append, r.Fence)
	}
	if r := got[1]; r.Append != "" || r.Fence != 0 {
		t.Errorf("the second record is of append %q under fence %d", r.Append, r.Fence)
	}
	if a, b := got[2].Append, got[3].Append; len(a) < 16 || len(b) < 16 || a == b {
		t.Errorf("appends without an id were given %q and %q", a, b)
	}
}

// outcomes: who does not know whether an append was done asks by fence and id.
func outcomes(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	ask := func(f state.Fence, id string) string {
		first, done, err := s.Outcome(t.Context(), f, id)
		return fmt.Sprint(first, done, err)
	}
	mustAppend(t, s, f, state.Batch{Records: []state.Record{note("a"), note("b")}, ID: "AB"})
	mustAppend(t, s, f, state.Batch{Records: []state.Record{note("c")}, ID: "C"})
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{put("x", state.Any, `1`)}, ID: "X"})
	_, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{note("no")}, Puts: []state.Put{put("x", state.Absent, `1`)}, ID: "NO"})
	if err == nil {
		t.Error("a conflict was written")
	}
	for id, want := range map[string]string{"AB": "1 true <nil>", "C": "3 true <nil>", "NO": "0 false <nil>", "NEVER": "0 false <nil>"} {
		if got := ask(f, id); got != want {
			t.Errorf("append %s: %s, want %s", id, got, want)
		}
	}
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{put("x", state.Any, `1`)}, ID: "Y"})
	if got := ask(f, "Y"); got != "0 true <nil>" {
		t.Errorf("an append without records: %s", got)
	}
	next, err := s.Claim(t.Context(), "the next")
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, next, state.Batch{Records: []state.Record{note("d")}, ID: "AB2"})
	if got := ask(f, "C"); got != "3 true <nil>" {
		t.Errorf("under the fence before: %s", got)
	}
	if got := ask(next, "C"); got != "0 false <nil>" {
		t.Errorf("an id under another fence: %s", got)
	}
}

// named is a put of an object that names blocks.
func named(name string, ds ...state.Digest) state.Put {
	return state.Put{Key: state.PlanKey(name), Want: state.Any, Value: fmt.Appendf(nil, `{"blocks":["%s"],"bytes":1,"parts":[1]}`, ds[0])}
}

func blocks(t *testing.T, open Open) {
	dir := t.TempDir()
	s, f := claimed(t, open, dir)
	a, b := []byte("the first block"), bytes.Repeat([]byte{0, 0xff, '"'}, 1000)
	ds, err := s.PutBlocks(t.Context(), f, a, b, a)
	if err != nil {
		t.Fatal(err)
	}
	if len(ds) != 3 || ds[0] != state.DigestOf(a) || ds[1] != state.DigestOf(b) || ds[2] != ds[0] {
		t.Errorf("digests: %q", ds)
	}
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{named("p", ds[0]), named("q", ds[1])}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, next := claimed(t, open, dir)
	for i, want := range [][]byte{a, b} {
		if got, err := s.Block(t.Context(), ds[i]); err != nil || !bytes.Equal(got, want) {
			t.Errorf("block %d: %q %v", i, got, err)
		}
	}
	if _, err := s.PutBlocks(t.Context(), f, []byte("late")); !errors.Is(err, state.ErrFenced) {
		t.Errorf("a block under an old fence: %v", err)
	}
	if _, err := s.Sweep(t.Context(), f); !errors.Is(err, state.ErrFenced) {
		t.Errorf("a sweep under an old fence: %v", err)
	}
	if _, err := s.Block(t.Context(), "sha256:12"); err == nil {
		t.Error("a digest that is none was read")
	}
	if _, err := s.PutBlocks(t.Context(), next); err != nil {
		t.Errorf("no block: %v", err)
	}
}

func missingBlocks(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	d := state.DigestOf([]byte("never put"))
	_, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{note("no")}, Puts: []state.Put{named("p", d)}})
	if m, ok := errors.AsType[*state.MissingBlockError](err); !ok || m.Digest != d {
		t.Errorf("an object that names no block: %v", err)
	}
	if got := texts(t, s, 1); got != nil {
		t.Errorf("journal: %q", got)
	}
}

func hasBlock(t *testing.T, s state.Store, d state.Digest) bool {
	t.Helper()
	_, err := s.Block(t.Context(), d)
	if err != nil && errkind.Of(err) != errkind.NotFound {
		t.Errorf("block: %v", err)
	}
	return err == nil
}

func sweeps(t *testing.T, open Open) {
	dir := t.TempDir()
	s, f := claimed(t, open, dir)
	there := func(d state.Digest) bool { return hasBlock(t, s, d) }
	sweep := func(f state.Fence, want int) {
		t.Helper()
		if n, err := s.Sweep(t.Context(), f); err != nil || n != want {
			t.Errorf("%d blocks were swept, want %d: %v", n, want, err)
		}
	}
	ds, err := s.PutBlocks(t.Context(), f, []byte("kept"), []byte("replaced"), []byte("never named"))
	if err != nil {
		t.Fatal(err)
	}
	sweep(f, 0) // none is named yet: their appends may be under way
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{named("p", ds[0]), named("q", ds[1])}})
	sweep(f, 0)
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{{Key: state.PlanKey("q"), Want: state.Any}}})
	sweep(f, 1)
	if !there(ds[0]) || there(ds[1]) || !there(ds[2]) {
		t.Errorf("kept %t, replaced %t, never named %t", there(ds[0]), there(ds[1]), there(ds[2]))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, f = claimed(t, open, dir)
	if again, err := s.PutBlocks(t.Context(), f, []byte("never named")); err != nil || again[0] != ds[2] {
		t.Fatalf("put again: %q %v", again, err)
	}
	sweep(f, 0) // it is put under this fence too
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, f = claimed(t, open, dir)
	sweep(f, 1) // whoever put it is gone, and can name it no more
	if !there(ds[0]) || there(ds[2]) {
		t.Errorf("after the next claim: kept %t, never named %t", there(ds[0]), there(ds[2]))
	}
	if _, err := s.Append(t.Context(), f, state.Batch{Puts: []state.Put{named("r", ds[2])}}); err == nil {
		t.Error("a block that was swept was named")
	}
}

// sweepsBesideAppends: whatever is swept meanwhile, an append finds the blocks that were
// put for it.
func sweepsBesideAppends(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	var writers, sweeper sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	sweeper.Go(func() {
		for ctx.Err() == nil {
			if _, err := s.Sweep(context.Background(), f); err != nil {
				t.Errorf("sweep: %v", err)
				return
			}
		}
	})
	for w := range 4 {
		writers.Go(func() {
			for i := range 10 {
				ds, err := s.PutBlocks(context.Background(), f, fmt.Appendf(nil, "block %d-%d", w, i), []byte("shared by all"))
				if err == nil { // each replaces the last, and drops what nobody else has
					_, err = s.Append(context.Background(), f, state.Batch{Puts: []state.Put{named(strconv.Itoa(w), ds[i%2])}})
				}
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	writers.Wait()
	cancel()
	sweeper.Wait()
	for w := range 4 {
		o, ok, err := s.Object(t.Context(), state.PlanKey(strconv.Itoa(w)))
		if err != nil || !ok {
			t.Fatalf("plan %d: %v", w, err)
		}
		ds, err := state.NamedBlocks(o.Key, o.Value)
		if err != nil || len(ds) != 1 {
			t.Fatalf("%s names %q: %v", o.Value, ds, err)
		}
		if _, err := s.Block(t.Context(), ds[0]); err != nil {
			t.Errorf("plan %d: %v", w, err)
		}
	}
}

// plans: a small plan, one in blocks, and one with a step that no block holds.
func plans(t *testing.T, open Open) {
	dir := t.TempDir()
	s, f := claimed(t, open, dir)
	for name, size := range map[string]int{"small": 3, "large": 3000, "none": 0} {
		storesPlan(t, s, f, name, size)
	}
	if p, err := state.ReadPlan(t.Context(), s, "of nobody"); p != nil || err != nil {
		t.Errorf("a plan that is not there: %v %v", p, err)
	}
}

func storesPlan(t *testing.T, s state.Store, f state.Fence, name string, size int) {
	t.Helper()
	p := &plan.Plan{ID: name, Lineage: s.Info().Lineage, Site: `a "steps":null in a text`, Format: plan.Format}
	for i := range size {
		p.Steps = append(p.Steps, plan.Step{ID: plan.StepID(fmt.Sprintf("n%d/install.write", i)), Subject: subject.OfNode("n1"),
			Title: strings.Repeat("write, ", 60), Version: i})
	}
	if name == "large" {
		p.Steps[7].Erases = strings.Repeat("all of it, ", 150_000)
	}
	one, err := state.PutPlan(t.Context(), s, f, p)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, f, state.Batch{Puts: []state.Put{one}})
	if n, err := s.Sweep(t.Context(), f); n != 0 || err != nil {
		t.Errorf("%d blocks of plan %s were swept: %v", n, name, err)
	}
	ds, err := state.NamedBlocks(one.Key, one.Value)
	if err != nil || (len(ds) > 3) != (name == "large") {
		t.Errorf("plan %s has %d blocks: %v", name, len(ds), err)
	}
	got, err := state.ReadPlan(t.Context(), s, name)
	if err != nil || got == nil || got.Site != p.Site || len(got.Steps) != size {
		t.Fatalf("plan %s is read back with %+v: %v", name, got, err)
	}
	sameSteps(t, p, got)
}

func sameSteps(t *testing.T, p, got *plan.Plan) {
	t.Helper()
	for i := range p.Steps {
		if a, b := p.Steps[i], got.Steps[i]; a.ID != b.ID || a.Version != b.Version || a.Erases != b.Erases {
			t.Fatalf("step %d is %s", i, b.ID)
		}
	}
}

// meddler is a store of which something is done at the second block that is read.
type meddler struct {
	state.Store
	n  int
	do func()
}

// Block does it.
func (m *meddler) Block(ctx context.Context, d state.Digest) ([]byte, error) {
	if m.n++; m.n == 2 {
		m.do()
	}
	return m.Store.Block(ctx, d)
}

// replacedInRead: a plan and a fact are replaced, and their blocks swept, in the middle of a reading,
// which gives the new ones whole.
func replacedInRead(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	of := fact.Key{Subject: subject.OfNode("n1"), Name: "pairs"}
	write := func(steps int) {
		t.Helper()
		p := &plan.Plan{ID: "p", Lineage: s.Info().Lineage, Format: plan.Format}
		for i := range steps {
			p.Steps = append(p.Steps, plan.Step{ID: "n1/install.write", Subject: subject.OfNode("n1"), Title: strings.Repeat("write ", 70), Version: steps + i})
		}
		one, err := state.PutPlan(t.Context(), s, f, p)
		if err != nil {
			t.Fatal(err)
		}
		two, _, err := state.PutFact(t.Context(), s, f, fact.Fact{Key: of, Value: []byte(text(steps * 400))})
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, s, f, state.Batch{Puts: []state.Put{one, two}})
		if _, err := s.Sweep(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	write(3000)
	p, err := state.ReadPlan(t.Context(), &meddler{Store: s, do: func() { write(3100) }}, "p")
	if err != nil || len(p.Steps) != 3100 || p.Steps[0].Version != 3100 {
		t.Errorf("the plan that was replaced: %v", err)
	}
	got, _, err := state.Get[fact.Fact](t.Context(), &meddler{Store: s, do: func() { write(3200) }}, state.FactKey(of))
	if err != nil || len(got.Value) != 3200*400 {
		t.Errorf("the fact that was replaced has %d bytes: %v", len(got.Value), err)
	}
}

// copies: a copy has all that was there when it was made, number for number, and nothing that came
// later; it is read back by every checksum, and a second one replaces it.
func copies(t *testing.T, open Open) {
	s, f := claimed(t, open, t.TempDir())
	c, can := s.(state.Copier)
	if !can {
		t.Skip("this store keeps no site's state")
	}
	write := func(name string) {
		t.Helper()
		storesPlan(t, s, f, "large", 3000)
		mustAppend(t, s, f, state.Batch{Records: []state.Record{note(name)}, Puts: []state.Put{put(name, state.Absent, `1`), put("same", state.Any, `2`)}})
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	for i, name := range []string{"first", "second"} {
		write(name)
		p, err := c.CopyTo(t.Context(), path)
		if err != nil || p.Last != uint64(i+1) || p.Info != s.Info() {
			t.Fatalf("%+v: %v", p, err)
		}
		mustAppend(t, s, f, state.Batch{Puts: []state.Put{put("later", state.Any, `3`)}})
		copied, err := state.OpenReadOnly(path)
		if err != nil {
			t.Fatal(err)
		}
		defer copied.Close()
		if got := texts(t, copied, 1); !slices.Equal(got, []string{"first", "second"}[:i+1]) {
			t.Errorf("journal: %q", got)
		}
		k := state.Key{Kind: "thing", Name: "same"}
		a, _, err := s.Object(t.Context(), k)
		b, _, err2 := copied.Object(t.Context(), k)
		if err := errors.Join(err, err2); err != nil || a.Version != b.Version {
			t.Errorf("version %d is %d in the copy: %v", a.Version, b.Version, err)
		}
		if got, err := state.ReadPlan(t.Context(), copied, "large"); err != nil || len(got.Steps) != 3000 {
			t.Errorf("the plan in the copy: %v", err)
		}
		if _, there, err := copied.Object(t.Context(), state.Key{Kind: "thing", Name: "later"}); there != (i == 1) || err != nil {
			t.Errorf("what came later is there: %t, %v", there, err)
		}
	}
}

// runHooked runs the cases that need hooks.
func (h Harness) runHooked(t *testing.T) {
	for _, c := range []struct {
		name string
		can  bool
		run  func(*testing.T, Harness)
	}{
		{"a lease that ends without closing", h.EndLease != nil, leaseEnds},
		{"an append whose answer is lost, not done", h.CutOff != nil, func(t *testing.T, h Harness) { cutOff(t, h, BeforeCommit) }},
		{"an append whose answer is lost, done", h.CutOff != nil, func(t *testing.T, h Harness) { cutOff(t, h, AfterCommit) }},
		{"no room", h.FillDisk != nil, noRoom},
		{"a slow member", h.SlowDown != nil, slowMember},
		{"what is compacted while it is read", h.Compact != nil, compacted},
		{"two writers from one counter", h.Twin != nil, twins},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.can {
				t.Skip("this store cannot have it")
			}
			c.run(t, h)
		})
	}
}

// leaseEnds: after its lease an owner that lives on writes nothing, and gets an error; the next
// one goes on after its last record.
func leaseEnds(t *testing.T, h Harness) {
	dir := t.TempDir()
	s, f := claimed(t, h.Open, dir)
	mustAppend(t, s, f, state.Batch{Records: []state.Record{note("before")}})
	lease := s.Lease(f)
	if lease.Ended() == nil {
		t.Fatal("a lease that can end does not say so")
	}
	h.EndLease(t, s)
	<-lease.Ended()
	_, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{note("late")}})
	if !errors.Is(err, state.ErrLeaseEnded) && !errors.Is(err, state.ErrFenced) {
		t.Errorf("an append after the lease: %v", err)
	}
	if _, err := s.PutBlocks(t.Context(), f, []byte("late")); err == nil {
		t.Error("a block was written after the lease")
	}
	next, f2 := claimed(t, h.Open, dir)
	if f2.Number <= f.Number {
		t.Errorf("fence %d after %d", f2.Number, f.Number)
	}
	if seq := mustAppend(t, next, f2, state.Batch{Records: []state.Record{note("after")}}); seq != 2 {
		t.Errorf("it continues with record %d", seq)
	}
	if _, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{note("later")}}); err == nil {
		t.Error("the old owner writes beside the new one")
	}
	if got := texts(t, next, 1); !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("journal: %q", got)
	}
}

// cutOff: whatever an append returns while its store does not answer, it is true.
func cutOff(t *testing.T, h Harness, when Moment) {
	s, f := claimed(t, h.Open, t.TempDir())
	mustAppend(t, s, f, state.Batch{Records: []state.Record{note("before")}})
	heal := h.CutOff(t, s, when)
	ended := make(chan error, 1)
	go func() {
		_, err := s.Append(context.Background(), f, state.Batch{Records: []state.Record{note("meanwhile")}, ID: "MEANWHILE"})
		ended <- err
	}()
	var err error
	select {
	case err = <-ended:
		heal()
	case <-s.Lease(f).Ended(): // it returns by itself
		err = <-ended
		heal()
	}
	_, done, errAsk := s.Outcome(t.Context(), f, "MEANWHILE")
	if errAsk != nil {
		t.Fatalf("outcome: %v", errAsk)
	}
	there := slices.Equal(texts(t, s, 1), []string{"before", "meanwhile"})
	_, unknown := errors.AsType[*state.UnknownError](err)
	switch {
	case done != there:
		t.Errorf("the outcome is %t, and the record is there: %t", done, there)
	case err == nil && !there:
		t.Error("what is not there was reported as written")
	case err != nil && !unknown && there:
		t.Errorf("what is there was reported as not written: %v", err)
	case when == AfterCommit && !there:
		t.Error("what was written is not there")
	}
}

// noRoom: an append that finds no room is not there, and those after it are.
func noRoom(t *testing.T, h Harness) {
	dir := t.TempDir()
	s, f := claimed(t, h.Open, dir)
	mustAppend(t, s, f, state.Batch{Records: []state.Record{note("before")}})
	more := h.FillDisk(t, dir, s)
	_, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{note("no room")}, Puts: []state.Put{put("a", state.Any, text(state.MaxValue))}})
	if errkind.Of(err) != errkind.Interrupted {
		t.Errorf("without room: %v", err)
	}
	s = more()
	f, err = s.Claim(t.Context(), "with room")
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, f, state.Batch{Records: []state.Record{note("after")}})
	if got := texts(t, s, 1); !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("journal: %q", got)
	}
}

func slowMember(t *testing.T, h Harness) {
	s, f := claimed(t, h.Open, t.TempDir())
	h.SlowDown(t, s)
	var want []string
	for i := range 20 {
		want = append(want, strconv.Itoa(i))
		mustAppend(t, s, f, state.Batch{Records: []state.Record{note(want[i])}})
	}
	if got := texts(t, s, 1); !slices.Equal(got, want) {
		t.Errorf("journal: %q", got)
	}
}

// compacted: a reader sees every record though revisions go away under it.
func compacted(t *testing.T, h Harness) {
	s, f := claimed(t, h.Open, t.TempDir())
	var want []string
	for i := range 12 {
		var b state.Batch
		for j := range state.MaxEntries {
			want = append(want, strconv.Itoa(100*i+j))
			b.Records = append(b.Records, note(want[len(want)-1]))
		}
		mustAppend(t, s, f, b)
	}
	var got []string
	n := 0
	err := s.Read(t.Context(), 1, func(r state.Record) error {
		if n++; n == 50 {
			mustAppend(t, s, f, state.Batch{Puts: []state.Put{put("moves", state.Any, `1`)}})
			h.Compact(t, s)
		}
		got = append(got, strings.Trim(string(r.Data), `"`))
		return nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d of %d records, %v", len(got), len(want), err)
	}
}

// twins: two writers that hold the same fence and know nothing of each other give no
// number twice and leave none out.
func twins(t *testing.T, h Harness) {
	dir := t.TempDir()
	s, f := claimed(t, h.Open, dir)
	other := h.Twin(t, dir, s)
	var wg sync.WaitGroup
	var mu sync.Mutex // guards written
	var written []string
	for w, x := range []state.Store{s, other} {
		wg.Go(func() {
			for i := range 25 {
				name := fmt.Sprintf("%d-%d", w, i)
				if _, err := x.Append(context.Background(), f, state.Batch{Records: []state.Record{note(name)}}); err == nil {
					mu.Lock()
					written = append(written, name)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	got := texts(t, s, 1) // with their numbers
	slices.Sort(got)
	slices.Sort(written)
	if len(written) == 0 || !slices.Equal(got, written) {
		t.Errorf("written %d, there %d", len(written), len(got))
	}
}
