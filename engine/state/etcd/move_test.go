// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

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
	was, err := digestOfFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
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
		if got, err := digestOfFile(t.Context(), file); got != was {
			t.Errorf("%s has digest %s, not %s: %v", file, got, was, err)
		}
	}
	goesBack(t, c, path, again)
	if _, err = MoveIn(t.Context(), c, path, filepath.Join(dir, "no folder", "kept")); err == nil {
		t.Error("nothing was kept, and nothing was said")
	}
	_, err = state.Open(path)
	isRefused(t, "a file whose move into etcd failed at its end", err, "is a copy")
	if is, err := aboutUnder(t.Context(), c); err != nil || is.Moved != "" || is.Filling != "" {
		t.Errorf("in etcd again: %+v, %v", is, err)
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

// TestPeerFillAlone: what a process writes that fills a state is refused once another has begun anew,
// also while nothing is there.
func TestPeerFillAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s, err := connect(t.Context(), r.config(t.TempDir(), r.Endpoints()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.client.Close()
	if err := s.fillWith(t.Context(), "of mine", []clientv3.Op{clientv3.OpPut(s.keys.head(), head{}.String())}); errkind.Of(err) != errkind.Conflict {
		t.Errorf("written without its mark: %v", err)
	}
}

// TestJudgeMoved: what may have been done before the state was moved away is unknown, not refused.
func TestJudgeMoved(t *testing.T) {
	t.Parallel()
	s := &Store{}
	moved := &etcdserverpb.RangeResponse{Kvs: []*mvccpb.KeyValue{{Value: []byte(head{Fence: 2, Moved: "to a file"}.String())}}}
	resp := &clientv3.TxnResponse{Responses: []*etcdserverpb.ResponseOp{{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: moved}}}}
	for open, want := range map[bool]outcome{false: refused, true: unknown} {
		if got, err := s.judge(t.Context(), &transaction{}, resp, open); got != want || err == nil {
			t.Errorf("open %t: %s, %v", open, got, err)
		}
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
	elsewhere := filepath.Join(t.TempDir(), "state.db")
	if _, err := s.CopyTo(t.Context(), elsewhere+".moving"); err != nil { // what a move that died has left on another controller
		t.Fatal(err)
	}
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
	_, err = MoveOut(t.Context(), c, elsewhere, kept, "to an older file")
	isRefused(t, "a file of before, as what was moved", err, "to a file of a test")
	if err := os.Rename(path, path+".moving"); err != nil {
		t.Fatal(err)
	}
	if p, err = MoveOut(t.Context(), c, path, kept, "to a file of a test"); err != nil || p.Last != seq {
		t.Errorf("a move that died at its end: %+v, %v", p, err)
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
