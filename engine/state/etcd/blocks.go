// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// hexOf are the digits of a digest, which end a block's key.
func hexOf(d state.Digest) string {
	_, digits, _ := strings.Cut(string(d), ":")
	return digits
}

// Block returns an immutable block, whose content is compared with its digest.
func (s *Store) Block(ctx context.Context, d state.Digest) ([]byte, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return s.client.Get(ctx, s.keys.block(hexOf(d)))
	})
	switch {
	case err != nil:
		return nil, explain("read", err)
	case len(resp.Kvs) == 0:
		return nil, missingBlock(d)
	case state.DigestOf(resp.Kvs[0].Value) != d:
		return nil, s.damaged(fmt.Errorf("block %s has another content", d))
	}
	return resp.Kvs[0].Value, nil
}

// PutBlocks makes blocks durable, one in a transaction.
func (s *Store) PutBlocks(ctx context.Context, f state.Fence, blocks ...[]byte) ([]state.Digest, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	for _, b := range blocks {
		if len(b) > state.MaxValue {
			return nil, &errkind.Error{Kind: errkind.Unsupported, Err: &state.LimitError{What: "a block", Is: len(b), Most: state.MaxValue, Unit: "bytes"}}
		}
	}
	s.commit.Lock()
	defer s.commit.Unlock()
	own := s.owned()
	if err := s.admit(own, &pending{fence: f}); err != nil {
		return nil, err
	}
	until, _ := own.lease.Until()
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	var out []state.Digest
	for _, b := range blocks {
		d := state.DigestOf(b)
		if err := s.putBlock(ctx, own, d, b); err != nil {
			return nil, err
		}
		s.fresh[hexOf(d)]++
		out = append(out, d)
	}
	return out, nil
}

// putBlock may write a block twice: it is the same.
func (s *Store) putBlock(ctx context.Context, own *ownership, d state.Digest, block []byte) error {
	key := s.keys.block(hexOf(d))
	resp, err := retry(ctx, leaseTTL, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).If(append(own.holds(s.keys), clientv3.Compare(clientv3.CreateRevision(key), "=", 0))...).
			Then(clientv3.OpPut(key, string(block))).Else(clientv3.OpGet(key, clientv3.WithCountOnly()), clientv3.OpGet(s.keys.owner())).Commit()
	})
	switch {
	case err != nil:
		return explain("write a block", err)
	case resp.Succeeded:
		return nil
	}
	if kvs := resp.Responses[1].GetResponseRange().Kvs; len(kvs) == 0 || string(kvs[0].Value) != own.text {
		own.lease.end()
		return fencedError()
	}
	return nil // it is there
}

// forgetFresh notes the blocks that an append has named: each naming stands for one put, as
// several appends may have put the same block. The caller holds commit.
func (s *Store) forgetFresh(p *pending) {
	for i := range p.batch.Puts {
		named, _ := state.NamedBlocks(p.batch.Puts[i].Key, p.batch.Puts[i].Value) // compareOne has read them
		for _, d := range named {
			if n := s.fresh[hexOf(d)]; n > 1 {
				s.fresh[hexOf(d)]--
			} else {
				delete(s.fresh, hexOf(d))
			}
		}
	}
}

// Sweep removes the blocks that no object names, but those that this process has put since
// its last append named them.
func (s *Store) Sweep(ctx context.Context, f state.Fence) (int, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	s.commit.Lock()
	defer s.commit.Unlock()
	own := s.owned()
	if err := s.admit(own, &pending{fence: f}); err != nil {
		return 0, err
	}
	named := map[string]bool{}
	for _, kind := range state.BlockKinds {
		os, err := s.Objects(ctx, kind)
		if err != nil {
			return 0, err
		}
		for _, o := range os {
			ds, err := state.NamedBlocks(o.Key, o.Value)
			if err != nil {
				return 0, s.damaged(err)
			}
			for _, d := range ds {
				named[hexOf(d)] = true
			}
		}
	}
	var idle []string
	start := s.keys.block("")
	err := s.each(ctx, start, clientv3.GetPrefixRangeEnd(start), func() { idle = nil }, func(kv *mvccpb.KeyValue) error {
		if digits := strings.TrimPrefix(string(kv.Key), start); !named[digits] && s.fresh[digits] == 0 {
			idle = append(idle, string(kv.Key))
		}
		return nil
	}, clientv3.WithKeysOnly())
	if err != nil {
		return 0, err
	}
	return s.removeBlocks(ctx, own, idle)
}

func (s *Store) removeBlocks(ctx context.Context, own *ownership, idle []string) (removed int, err error) {
	for len(idle) > 0 {
		n := min(len(idle), state.MaxEntries)
		var ops []clientv3.Op
		for _, key := range idle[:n] {
			ops = append(ops, clientv3.OpDelete(key))
		}
		resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			return s.client.Txn(ctx).If(own.holds(s.keys)...).Then(ops...).Commit()
		})
		switch {
		case err != nil:
			return removed, explain("sweep", err)
		case !resp.Succeeded:
			own.lease.end()
			return removed, fencedError()
		}
		removed, idle = removed+n, idle[n:]
	}
	return removed, nil
}
