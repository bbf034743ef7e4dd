// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
)

// Outcome reports whether an append was written. Where it was not, it makes sure that it
// can no longer be: the head that such an append compares is changed.
func (s *Store) Outcome(ctx context.Context, f state.Fence, id string) (first uint64, done bool, err error) {
	if err := s.usable(ctx); err != nil {
		return 0, false, err
	}
	s.commit.Lock()
	defer s.commit.Unlock()
	for ctx.Err() == nil {
		if err := s.readLast(ctx); err != nil {
			return 0, false, err
		}
		first, done, err = s.find(ctx, f.Number, id)
		if err != nil || done {
			return first, done, err
		}
		if slices.Contains(s.last.Appends, id) {
			return 0, true, nil // it had no records
		}
		if s.last.Fence != f.Number {
			return 0, false, nil
		}
		settled, err := s.changeHead(ctx)
		if err != nil || settled {
			return 0, false, err
		}
	}
	return 0, false, context.Cause(ctx)
}

// changeHead replaces the head by one with another text; false: it was replaced meanwhile.
func (s *Store) changeHead(ctx context.Context) (bool, error) {
	next := s.last.head
	next.Nonce = state.NewAppendID()
	resp, err := attempt(ctx, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).If(clientv3.Compare(clientv3.Value(s.keys.head()), "=", s.last.text)).
			Then(clientv3.OpPut(s.keys.head(), next.String())).Commit()
	})
	switch {
	case err != nil && !isPassing(err):
		return false, explain("outcome of an append", err)
	case err != nil || !resp.Succeeded:
		return false, nil
	}
	s.last = &entry{next, next.String()}
	return true, nil
}

// find looks for the first record of an append, from the newest record back to those of
// earlier fences.
func (s *Store) find(ctx context.Context, fence uint64, id string) (first uint64, ok bool, err error) {
	start := s.keys.record(0)
	end := s.keys.recordsEnd()
	for {
		resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.GetResponse, error) {
			return s.client.Get(ctx, start, clientv3.WithRange(end), clientv3.WithLimit(firstPage), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
		})
		if err != nil {
			return 0, false, explain("outcome of an append", err)
		}
		for _, kv := range resp.Kvs {
			r, err := s.keys.openRecord(string(kv.Key), kv.Value)
			switch {
			case err != nil:
				return 0, false, s.damaged(err)
			case r.Append == id && r.Fence == fence:
				return r.Seq, true, nil
			case r.Fence != 0 && r.Fence < fence:
				return 0, false, nil
			}
			end = string(kv.Key)
		}
		if !resp.More {
			return 0, false, nil
		}
	}
}
