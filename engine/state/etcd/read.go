// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
)

// Pages have about pageBytes: the first has firstPage keys, and each next one what the one
// before suggests.
const (
	firstPage = 16
	mostPage  = 2000
	pageBytes = 4 << 20
)

// pages reads a range of keys by pages, all at one revision.
type pages struct {
	s        *Store
	from     string
	end      string
	revision int64 // 0: the newest, which the first page settles
	cluster  uint64
	size     int64
	options  []clientv3.OpOption
}

func (s *Store) pagesOf(from, end string, options ...clientv3.OpOption) *pages {
	return &pages{s: s, from: from, end: end, size: firstPage, options: options}
}

// next returns the next page; more: there are others. The error is rpctypes.ErrCompacted
// when etcd no longer has the revision.
func (p *pages) next(ctx context.Context) (kvs []*mvccpb.KeyValue, more bool, err error) {
	options := append([]clientv3.OpOption{clientv3.WithRange(p.end), clientv3.WithLimit(p.size), clientv3.WithRev(p.revision)}, p.options...)
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return p.s.client.Get(ctx, p.from, options...)
	})
	if err != nil {
		return nil, false, err
	}
	if p.revision == 0 {
		p.revision, p.cluster = resp.Header.Revision, resp.Header.ClusterId
	}
	if n := len(resp.Kvs); n > 0 {
		p.from = string(resp.Kvs[n-1].Key) + "\x00"
		bytes := 0
		for _, kv := range resp.Kvs {
			bytes += len(kv.Key) + len(kv.Value)
		}
		p.size = min(mostPage, max(1, int64(n)*pageBytes/int64(bytes)))
	}
	return resp.Kvs, resp.More, nil
}

// Read calls f for the records from seq on. They never change, so that a revision that was
// compacted away meanwhile is no loss: it continues at a newer one.
func (s *Store) Read(ctx context.Context, from uint64, f func(state.Record) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	due := max(from, s.info.First)
	for p, more := s.pagesOf(s.keys.record(due), s.keys.recordsEnd()), true; more; {
		var kvs []*mvccpb.KeyValue
		var err error
		kvs, more, err = p.next(ctx)
		if errors.Is(err, rpctypes.ErrCompacted) {
			p.revision, more = 0, true
			continue
		}
		if err != nil {
			return explain("read", err)
		}
		for _, kv := range kvs {
			r, err := s.keys.openRecord(string(kv.Key), kv.Value)
			if err == nil && r.Seq != due {
				err = fmt.Errorf("record %d is where %d is due", r.Seq, due)
			}
			if err != nil {
				return s.damaged(err)
			}
			due++
			if err := f(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Object returns one object.
func (s *Store) Object(ctx context.Context, k state.Key) (state.Object, bool, error) {
	if err := s.usable(ctx); err != nil {
		return state.Object{}, false, err
	}
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return s.client.Get(ctx, s.keys.object(k))
	})
	if err != nil {
		return state.Object{}, false, explain("read", err)
	}
	if len(resp.Kvs) == 0 {
		return state.Object{}, false, nil
	}
	o, err := s.keys.openObject(k, resp.Kvs[0].Value)
	if err != nil {
		return state.Object{}, false, s.damaged(err)
	}
	return o, true, nil
}

// mostReloads bounds how often a reading begins anew because etcd compacted its revision.
const mostReloads = 5

// Objects returns the objects of a kind as they were at one revision.
func (s *Store) Objects(ctx context.Context, kind string) ([]state.Object, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	var out []state.Object
	err := s.each(ctx, s.keys.kind(kind), s.keys.kindEnd(kind), func() { out = nil }, func(kv *mvccpb.KeyValue) error {
		k := state.Key{Kind: kind, Name: strings.TrimPrefix(string(kv.Key), s.keys.kind(kind))}
		o, err := s.keys.openObject(k, kv.Value)
		if err != nil {
			return s.damaged(err)
		}
		out = append(out, o)
		return nil
	})
	return out, err
}

// each calls f for every key of a range at one revision. When etcd no longer has it, it
// calls anew and begins again.
func (s *Store) each(ctx context.Context, from, end string, anew func(), f func(*mvccpb.KeyValue) error, options ...clientv3.OpOption) error {
	p, reloads := s.pagesOf(from, end, options...), 0
	for {
		kvs, more, err := p.next(ctx)
		if errors.Is(err, rpctypes.ErrCompacted) && reloads < mostReloads {
			reloads++
			p = s.pagesOf(from, end, options...)
			anew()
			continue
		}
		if err != nil {
			return explain("read", err)
		}
		for _, kv := range kvs {
			if err := f(kv); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}
