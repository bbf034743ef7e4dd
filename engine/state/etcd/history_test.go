// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"encoding/json"
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// TestPeerOlderState: where etcd has an older state than the copy, as after a snapshot was put back, also once
// somebody has written to it, the copy stays, until the state itself says that it was put back.
func TestPeerOlderState(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.open(t, "x").(*Store)
	writeSome(t, s, beOwner(t, s), "before")
	client, under := r.client(t), s.keys.prefix+"/"
	snapshot, err := client.Get(t.Context(), under, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	writeSome(t, s, state.Fence{Number: 1}, "after")
	want := contents(t, s)
	path := filepath.Join(t.TempDir(), "copy.db")
	open := func() error {
		f, err := OpenFollower(t.Context(), s, path)
		if err == nil {
			err = f.Close()
		}
		return err
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // also removes the owner
		t.Fatal(err)
	}
	if _, err := client.Delete(t.Context(), under, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	for _, kv := range snapshot.Kvs {
		if string(kv.Key) == s.keys.owner() {
			continue
		}
		if _, err := client.Put(t.Context(), string(kv.Key), string(kv.Value)); err != nil {
			t.Fatal(err)
		}
	}
	r.compact(t) // no revision of before is known any more
	s = r.open(t, "x").(*Store)
	defer s.Close()
	refuses := func(when string) {
		t.Helper()
		if err := open(); errkind.Of(err) != errkind.Conflict {
			t.Errorf("%s: %v", when, err)
		}
		checkCopy(t, path, want)
	}
	refuses("after a snapshot")
	f := beOwner(t, s)
	for _, round := range []string{"anew", "and on"} {
		writeSome(t, s, f, round)
	}
	refuses("after more was written than the copy has")
	value, err := json.Marshal(state.Restoration{From: "copy.db"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), f, state.Batch{Puts: []state.Put{{Key: state.LastRestoration, Want: state.Any, Value: value}}}); err != nil {
		t.Fatal(err)
	}
	if err := open(); err != nil {
		t.Errorf("a state that says that it was put back: %v", err)
	}
}
