// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// pending is an append that waits for a write, which fills in first and err.
type pending struct {
	fence state.Fence
	batch state.Batch
	first uint64
	err   error
}

// fits reports whether a group takes one more append: their transaction has room, and no
// object is put twice, which etcd refuses.
func fits(group []*pending, next *pending) bool {
	var all state.Batch
	put := map[state.Key]bool{}
	for _, p := range group {
		all.Add(p.batch)
		for i := range p.batch.Puts {
			put[p.batch.Puts[i].Key] = true
		}
	}
	for i := range next.batch.Puts {
		if put[next.batch.Puts[i].Key] {
			return false
		}
	}
	return all.Fits(next.batch)
}

// Append writes b in one transaction, which it may share with others. While no majority of
// the members answers it waits, at most until the lease ends.
func (s *Store) Append(ctx context.Context, f state.Fence, b state.Batch) (uint64, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	if err := b.Check(); err != nil {
		return 0, err
	}
	if b.ID == "" {
		b.ID = state.NewAppendID()
	}
	p := &pending{fence: f, batch: b}
	s.groups.Join(p, s.write)
	return p.first, p.err
}

// write writes a group. An append that is refused leaves the others alone.
func (s *Store) write(group []*pending) {
	s.commit.Lock()
	defer s.commit.Unlock()
	own := s.owned()
	var left []*pending
	for _, p := range group {
		if p.err = s.admit(own, p); p.err == nil {
			left = append(left, p)
		}
	}
	if len(left) == 0 {
		return
	}
	until, _ := own.lease.Until()
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	for len(left) > 0 {
		if s.closedNow() {
			failAll(left, state.ErrClosed)
			return
		}
		if left = s.writeOnce(ctx, own, left); ctx.Err() != nil {
			failAll(left, s.leaseEnded())
			return
		}
	}
}

// admit refuses an append by what this process knows of its fence and lease.
func (s *Store) admit(own *ownership, p *pending) error {
	switch {
	case own == nil || own.fence != p.fence.Number:
		return fencedError()
	case !own.lease.lives():
		return s.leaseEnded()
	}
	return nil
}

func fencedError() error {
	return &errkind.Error{Kind: errkind.Refused, Err: state.ErrFenced,
		Action: "Look which controller owns the state with ironrail status, and let it go on."}
}

func (s *Store) leaseEnded() error {
	return &errkind.Error{Kind: errkind.Refused, Err: state.ErrLeaseEnded,
		Action: "Look with etcdctl endpoint health whether a majority of the members answers, and with ironrail status which controller owns the state."}
}

func failAll(group []*pending, err error) {
	for _, p := range group {
		p.first, p.err = 0, err
	}
}

// writeOnce writes a group in one transaction, and returns those that are to be tried
// again: with what was read meanwhile, or without those that conflict.
func (s *Store) writeOnce(ctx context.Context, own *ownership, group []*pending) []*pending {
	if s.last == nil {
		if err := s.readLast(ctx); err != nil {
			failAll(group, err)
			return nil
		}
	}
	group, compared := s.compareObjects(ctx, group)
	if len(group) == 0 {
		return nil
	}
	t, err := s.transactionOf(own, group, compared)
	if err != nil {
		failAll(group, err)
		return nil
	}
	outcome, err := s.commitUntilKnown(ctx, t)
	switch outcome {
	case done:
		s.last = t.next
		for i, p := range group {
			p.first, p.err = t.firsts[i], nil
			s.forgetFresh(p)
		}
		return nil
	case refused:
		failAll(group, err)
		return nil
	case unknown:
		s.last = nil
		for _, p := range group {
			p.first, p.err = 0, &errkind.Error{Kind: errkind.Interrupted, Err: &state.UnknownError{Fence: p.fence, ID: p.batch.ID, Err: err}}
		}
		return nil
	}
	return group // the head has moved
}

// readLast reads the head that the next write compares.
func (s *Store) readLast(ctx context.Context) error {
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.GetResponse, error) { return s.client.Get(ctx, s.keys.head()) })
	if err != nil {
		return explain("append", err)
	}
	s.last, err = s.headIn(resp.Kvs)
	return err
}

// transaction is one that is ready to be made.
type transaction struct {
	own    *ownership
	ifs    []clientv3.Cmp
	thens  []clientv3.Op
	next   *entry
	firsts []uint64 // number of the first record of each append; 0: it has none
}

func (s *Store) transactionOf(own *ownership, group []*pending, compared []clientv3.Cmp) (*transaction, error) {
	next := s.last.head
	next.Appends, next.Nonce = nil, ""
	t := &transaction{own: own, ifs: append(own.holds(s.keys), clientv3.Compare(clientv3.Value(s.keys.head()), "=", s.last.text))}
	t.ifs = append(t.ifs, compared...)
	for _, p := range group {
		first := uint64(0)
		for i, r := range p.batch.Records {
			next.Seq++
			r.Seq = next.Seq
			if i == 0 {
				first, r.Fence, r.Append = r.Seq, p.fence.Number, p.batch.ID
			}
			text, err := s.keys.sealRecord(r)
			if err != nil {
				return nil, err
			}
			t.thens = append(t.thens, clientv3.OpPut(s.keys.record(r.Seq), text))
		}
		t.firsts = append(t.firsts, first)
		t.thens = append(t.thens, s.putsOf(p, &next.Version)...)
		next.Appends = append(next.Appends, p.batch.ID)
	}
	t.next = &entry{next, next.String()}
	t.thens = append(t.thens, clientv3.OpPut(s.keys.head(), t.next.text))
	return t, nil
}

// putsOf are the objects of an append. Of two puts of one object the last counts.
func (s *Store) putsOf(p *pending, version *uint64) (ops []clientv3.Op) {
	last := map[state.Key]int{}
	for i := range p.batch.Puts {
		last[p.batch.Puts[i].Key] = i
	}
	for i := range p.batch.Puts {
		put := &p.batch.Puts[i]
		if put.Value != nil {
			*version++
		}
		switch {
		case last[put.Key] != i:
		case put.Value == nil:
			ops = append(ops, clientv3.OpDelete(s.keys.object(put.Key)))
		default:
			ops = append(ops, clientv3.OpPut(s.keys.object(put.Key), s.keys.sealObject(put.Key, *version, put.Value)))
		}
	}
	return ops
}

// outcome is what became of a transaction.
type outcome string

const (
	done    outcome = "done"
	refused outcome = "refused" // for good, and nothing was written
	moved   outcome = "moved"   // nothing was written: what it compares has changed
	unknown outcome = "unknown" // no answer came
)

// commitUntilKnown makes a transaction until its outcome is known. It can be made again and
// again: once it is done, the head that it compares is another, and has the ids of its
// appends.
func (s *Store) commitUntilKnown(ctx context.Context, t *transaction) (outcome, error) {
	open := false // an earlier try may be done, or still be on its way
	for {
		resp, err := attempt(ctx, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			return s.client.Txn(ctx).If(t.ifs...).Then(t.thens...).Else(clientv3.OpGet(s.keys.head()), clientv3.OpGet(s.keys.owner())).Commit()
		})
		switch {
		case err == nil && resp.Succeeded:
			return done, nil
		case err == nil:
			return s.judge(ctx, t, resp, open)
		case !isPassing(err) && !open:
			return refused, explain("append", err)
		case !isPassing(err):
			return unknown, explain("append", err)
		}
		open = open || !errors.Is(err, rpctypes.ErrNoLeader)
		select {
		case <-ctx.Done():
			if !open {
				return refused, s.leaseEnded()
			}
			return unknown, fmt.Errorf("%w: %w", state.ErrLeaseEnded, explain("append", err))
		case <-time.After(retryPause):
		}
	}
}

// judge says what it means that a comparison failed.
func (s *Store) judge(ctx context.Context, t *transaction, resp *clientv3.TxnResponse, open bool) (outcome, error) {
	now, err := s.headIn(resp.Responses[0].GetResponseRange().Kvs)
	switch {
	case err != nil && open: // such as of a state that was moved since
		return unknown, err
	case err != nil:
		return refused, err
	}
	wasDone := open && now.text == t.next.text
	if open && !wasDone && now.Fence != t.own.fence { // another has claimed since: what was written before it stays
		if wasDone, err = s.isThere(ctx, now, t.next); err != nil {
			return unknown, err
		}
	}
	owner := resp.Responses[1].GetResponseRange().Kvs
	holds := len(owner) == 1 && owner[0].CreateRevision == t.own.created && string(owner[0].Value) == t.own.text
	if !holds {
		t.own.lease.end()
	}
	switch {
	case wasDone:
		return done, nil
	case !holds || now.Fence != t.own.fence:
		return refused, fencedError()
	}
	s.last = now
	return moved, nil
}

// isThere reports whether a write came before the claim that made the head as it is now.
func (s *Store) isThere(ctx context.Context, now, wrote *entry) (bool, error) {
	if sameIDs(now.Appends, wrote.Appends) {
		return true, nil
	}
	for _, id := range wrote.Appends {
		_, ok, err := s.find(ctx, wrote.Fence, id)
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func sameIDs(a, b []string) bool { return len(a) > 0 && len(a) == len(b) && a[0] == b[0] }

func (s *Store) closedNow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
