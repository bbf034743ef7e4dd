// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// otherState refuses a copy of another state: that one may be lost but for the copy.
func otherState(s *Store, path, lineage string) error {
	return errkind.New(errkind.Conflict, "state: etcd has another state under %s (lineage %s) than that which %s is a copy of (lineage %s)", s.keys.prefix, s.info.Lineage, path, lineage).
		Do("Look whether prefix and endpoints are those that they were; else put back a snapshot of etcd. Where the state of the copy is given up, move " + path + " away.")
}

// checkHistory refuses to make the copy anew where etcd has not the newest record that the copy has: a
// snapshot of before was put back, and nodes may have come further than it says, such as into service. A
// state that was put back from a copy since says so, and is taken.
func (f *Follower) checkHistory(ctx context.Context) error {
	if f.copy == nil || positionOf(f.copy.Position()).revision == 0 {
		return nil
	}
	lost, err := f.hasLost(ctx, f.copy.Reader().(*state.Bolt))
	switch {
	case errkind.Of(err) == errkind.Corrupt: // the copy is damaged
		return nil
	case err != nil || !lost:
		return err
	}
	return copyError{errkind.New(errkind.Conflict, "state: etcd has an older state under %s than %s was a copy of", f.store.keys.prefix, f.path).
		Do("If a snapshot of etcd was put back: nodes may have come further than it says. Name another prefix in state \"etcd\" of the site's files, and run `ironrail state restore " + f.path +
			"`, which has what is newer. To go on from the snapshot instead, run `ironrail state backup FILE` before, and restore that.")}
}

// hasLost reports whether etcd has another record, or none, where the copy has its newest.
func (f *Follower) hasLost(ctx context.Context, b *state.Bolt) (bool, error) {
	last, err := b.Last(ctx)
	if err != nil || last < f.store.info.First {
		return false, err
	}
	was, _, err := b.Object(ctx, state.LastRestoration)
	if err != nil {
		return false, err
	}
	is, _, err := f.store.Object(ctx, state.LastRestoration)
	if err != nil || !bytes.Equal(was.Value, is.Value) {
		return false, err
	}
	var mine state.Record
	if err := b.Read(ctx, last, func(r state.Record) error { mine = r; return nil }); err != nil {
		return false, err
	}
	key := f.store.keys.record(last)
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return f.store.client.Txn(ctx).Then(clientv3.OpGet(f.store.keys.head(), clientv3.WithKeysOnly()), clientv3.OpGet(key)).Commit()
	})
	if err != nil || len(resp.Responses[0].GetResponseRange().Kvs) == 0 { // there is no state at all: who reads it says so
		return false, err
	}
	found := resp.Responses[1].GetResponseRange().Kvs
	if len(found) == 0 {
		return true, nil
	}
	theirs, err := f.store.keys.openRecord(key, found[0].Value)
	if err != nil {
		return false, copyError{f.store.damaged(err)}
	}
	x, errX := json.Marshal(mine)
	y, errY := json.Marshal(theirs)
	return !bytes.Equal(x, y), errors.Join(errX, errY)
}
