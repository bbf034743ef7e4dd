// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// compareObjects reads the objects whose version an append wants to know, and the blocks
// that it names. It settles the appends that conflict, and returns the others with what
// their transaction compares: that none of these objects was changed since it was read.
func (s *Store) compareObjects(ctx context.Context, group []*pending) (left []*pending, cmps []clientv3.Cmp) {
	for _, p := range group {
		own, err := s.compareOne(ctx, p)
		if err != nil {
			p.first, p.err = 0, err
			continue
		}
		left, cmps = append(left, p), append(cmps, own...)
	}
	return left, cmps
}

func (s *Store) compareOne(ctx context.Context, p *pending) ([]clientv3.Cmp, error) {
	if err := s.checkBlocks(ctx, &p.batch); err != nil {
		return nil, err
	}
	var gets []clientv3.Op
	var puts []*state.Put
	for i := range p.batch.Puts {
		if put := &p.batch.Puts[i]; put.Want != state.Any {
			gets, puts = append(gets, clientv3.OpGet(s.keys.object(put.Key))), append(puts, put)
		}
	}
	if len(gets) == 0 {
		return nil, nil
	}
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).Then(gets...).Commit()
	})
	if err != nil {
		return nil, explain("append", err)
	}
	var cmps []clientv3.Cmp
	for i, put := range puts {
		got, at := state.Absent, int64(0)
		for _, kv := range resp.Responses[i].GetResponseRange().Kvs {
			o, err := s.keys.openObject(put.Key, kv.Value)
			if err != nil {
				return nil, s.damaged(err)
			}
			got, at = o.Version, kv.ModRevision
		}
		if got != put.Want {
			return nil, &errkind.Error{Kind: errkind.Refused, Err: &state.ConflictError{Key: put.Key, Want: put.Want, Got: got}}
		}
		cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(s.keys.object(put.Key)), "=", at))
	}
	return cmps, nil
}

// checkBlocks refuses a batch that names a block which is not there. Only the owner removes
// blocks, and not while it writes.
func (s *Store) checkBlocks(ctx context.Context, b *state.Batch) error {
	var all []state.Digest
	for i := range b.Puts {
		named, err := state.NamedBlocks(b.Puts[i].Key, b.Puts[i].Value)
		if err != nil {
			return err
		}
		all = append(all, named...)
	}
	for len(all) > 0 {
		n := min(len(all), state.MaxEntries)
		var gets []clientv3.Op
		for _, d := range all[:n] {
			gets = append(gets, clientv3.OpGet(s.keys.block(hexOf(d)), clientv3.WithCountOnly()))
		}
		resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			return s.client.Txn(ctx).Then(gets...).Commit()
		})
		if err != nil {
			return explain("append", err)
		}
		for i, d := range all[:n] {
			if resp.Responses[i].GetResponseRange().Count == 0 {
				return missingBlock(d)
			}
		}
		all = all[n:]
	}
	return nil
}

func missingBlock(d state.Digest) error {
	return &errkind.Error{Kind: errkind.NotFound, Err: fmt.Errorf("state: %w", &state.MissingBlockError{Digest: d})}
}
