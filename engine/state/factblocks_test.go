// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// TestLargeFact: a fact that is larger than an object takes is read as it was written, by
// every way of reading, and its blocks go with it.
func TestLargeFact(t *testing.T) {
	t.Parallel()
	file, err := state.Open(filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]state.Store{"file": file, "memory": state.NewMemory()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer s.Close()
			testLargeFact(t, s)
		})
	}
}

func testLargeFact(t *testing.T, s state.Store) {
	ctx := t.Context()
	f, err := s.Claim(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	name := fact.Name[string]("validate.pair")
	x, err := name.New(subject.ID{Kind: subject.Group, Name: "all"}, strings.Repeat("pairs ", 3*state.MaxValue/6), "")
	if err != nil {
		t.Fatal(err)
	}
	x.Observed = time.Unix(1, 0).UTC()
	put, data, err := state.PutFact(ctx, s, f, x)
	if err != nil || len(data) > 1000 {
		t.Fatal(len(data), err)
	}
	b := state.Batch{Puts: []state.Put{put}, Records: []state.Record{{Kind: state.FactLearned, Subject: x.Key.Subject, Data: data}}}
	if _, err := s.Append(ctx, f, b); err != nil {
		t.Fatal(err)
	}
	wantFact(t, s, x)
	if n, err := s.Sweep(ctx, f); err != nil || n != 0 {
		t.Errorf("swept %d blocks that a fact names: %v", n, err)
	}
	wantFact(t, s, x)
	if _, err := s.Append(ctx, f, state.Batch{Puts: []state.Put{{Key: put.Key, Want: state.Any}}}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Sweep(ctx, f); err != nil || n < 3 {
		t.Errorf("swept %d blocks of a fact that is gone: %v", n, err)
	}
}

// wantFact reads x in every way.
func wantFact(t *testing.T, s state.Reader, x fact.Fact) {
	t.Helper()
	ctx := context.Background()
	one, _, err := state.Get[fact.Fact](ctx, s, state.FactKey(x.Key))
	all, errAll := state.ReadFacts(ctx, s)
	named, errNamed := state.ReadFactsNamed(ctx, s, x.Key.Name)
	prior, errPrior := state.ReadPrior(ctx, s)
	if err != nil || errAll != nil || errNamed != nil || errPrior != nil {
		t.Fatal(err, errAll, errNamed, errPrior)
	}
	found, _ := prior.Find(x.Key)
	for way, got := range map[string]fact.Fact{"one": one, "all": all[x.Key], "by name": named[x.Key], "while planning": found} {
		if got.Key != x.Key || string(got.Value) != string(x.Value) || !got.Observed.Equal(x.Observed) {
			t.Errorf("%s: %d bytes of %s, want %d", way, len(got.Value), got.Key, len(x.Value))
		}
	}
}

// TestLargeGroup: the membership of a group of which one batch does not hold the names is read as
// it was written, and kept by a compaction while its plan is not done.
func TestLargeGroup(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	run, err := state.PutOf(state.LastRun, state.Run{ID: "r1", Plan: "p1", Started: time.Unix(1, 0).UTC()})
	if err != nil {
		t.Fatal(err)
	}
	is := state.Frozen{Plan: "p1", Step: "all/validate.pair"}
	for i := range 12_500 {
		is.Members = append(is.Members, subject.OfNode(fmt.Sprintf("hall-7-row-12-rack-%05d-of-the-east-wing-of-building-four-unit-%04d.compute.example", i, i)))
	}
	put, data, err := state.PutFrozen(t.Context(), s, f, is)
	if err != nil || len(data) > 1000 {
		t.Fatalf("%d bytes in the record: %v", len(data), err)
	}
	b := state.Batch{Puts: []state.Put{put, run}, Records: []state.Record{{Kind: state.GroupFrozen, Data: data}}}
	if _, err := s.Append(t.Context(), f, b); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := state.Compact(t.Context(), path, 1, false); err != nil || c.Groups != 0 {
		t.Errorf("compacted: %+v, %v", c, err)
	}
	r, err := state.OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, _, err := state.Get[state.Frozen](t.Context(), r, put.Key)
	if err != nil || !slices.Equal(got.Members, is.Members) || got.Plan != is.Plan || got.Step != is.Step {
		t.Errorf("%d members: %v", len(got.Members), err)
	}
}
