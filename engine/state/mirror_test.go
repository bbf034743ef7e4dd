// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// TestMirror: a copy keeps numbers, versions, fence and lineage of its original, is sound after
// every change, takes no change in part, and is never written as an original, also when its
// mark is damaged.
func TestMirror(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "copy.db")
	of := state.Info{Format: state.Format, Lineage: "of the original", Created: time.Unix(1, 0).UTC(), First: 4}
	m, err := state.CreateMirror(path, of)
	if err != nil {
		t.Fatal(err)
	}
	block, other := []byte("a block"), []byte("another")
	thing := func(version uint64, value string) state.Object {
		return state.Object{Key: state.Key{Kind: "thing", Name: "x"}, Version: version, Value: json.RawMessage(value)}
	}
	note := func(seq uint64) state.Record { return state.Record{Seq: seq, Kind: state.Note} }
	for i, c := range []state.Change{
		{Records: []state.Record{note(4), note(5)}, Objects: []state.Object{thing(7, `1`)}, Blocks: [][]byte{block, other}, Fence: 3, Version: 7, Position: "first"},
		{Dropped: []state.Digest{state.DigestOf(other), state.DigestOf([]byte("never there"))}},
		{Blocks: [][]byte{block}, Objects: []state.Object{thing(8, `2`), thing(0, ``), {Key: state.Key{Kind: "thing", Name: "gone"}}}, Version: 8},
		{Records: []state.Record{note(6)}, Objects: []state.Object{thing(9, `3`)}, Version: 9, Position: "last"},
	} {
		if i == 2 {
			c.Objects[1].Value = nil // it was deleted
		}
		if err := m.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Apply(state.Change{Objects: []state.Object{thing(10, `4`)}, Records: []state.Record{note(8)}}); err == nil {
		t.Error("a record was left out")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err = state.OpenMirror(path); err != nil || m.Position() != "last" || m.Reader().Info() != of {
		t.Fatalf("%v, %+v", err, m)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := state.VerifyFile(t.Context(), path)
	if err != nil || p.Info != of || p.Records != 3 || p.Last != 6 || p.Objects["thing"] != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	checkMirror(t, path, thing(9, `3`), state.DigestOf(block), state.DigestOf(other))
}

func checkMirror(t *testing.T, path string, want state.Object, there, gone state.Digest) {
	t.Helper()
	b, err := state.OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	o, _, err := b.Object(t.Context(), want.Key)
	_, errThere := b.Block(t.Context(), there)
	_, errGone := b.Block(t.Context(), gone)
	if err != nil || o.Version != want.Version || string(o.Value) != string(want.Value) || errThere != nil || errkind.Of(errGone) != errkind.NotFound {
		t.Errorf("%+v, %v, %v, %v", o, err, errThere, errGone)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Open(path); errkind.Of(err) != errkind.Refused {
		t.Errorf("opened as an original: %v", err)
	}
	if _, err := state.Compact(t.Context(), path, 1, false); errkind.Of(err) != errkind.Refused {
		t.Errorf("compacted as an original: %v", err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, mark := range []string{"mirrorlast", "mirrorfirst"} {
		raw = bytes.ReplaceAll(raw, []byte(mark), []byte("mirrot"+mark[len("mirror"):]))
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Open(path); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("with a damaged mark it is opened: %v", err)
	}
}
