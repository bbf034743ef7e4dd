// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// ownership is a claim of this process.
type ownership struct {
	fence   uint64
	text    string // the value of the owner's key
	created int64  // revision at which that key was made: another owner has another one
	lease   *lease
}

// holds are the comparisons that fail once another is the owner, or the lease has ended.
func (o *ownership) holds(k keys) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(k.owner()), "=", o.created),
		clientv3.Compare(clientv3.Value(k.owner()), "=", o.text),
	}
}

// Claim raises the fence, and holds it by a lease. It is refused while the lease of another
// owner lives; a claim of this process replaces its last one.
func (s *Store) Claim(ctx context.Context, owner string) (state.Fence, error) {
	if err := s.usable(ctx); err != nil {
		return state.Fence{}, err
	}
	s.commit.Lock()
	defer s.commit.Unlock()
	held := s.owned()
	if held == nil || !held.lease.lives() {
		if held != nil {
			held.lease.stop()
		}
		if err := s.checkFree(ctx); err != nil {
			return state.Fence{}, err
		}
		l, err := grant(ctx, s.client, s.lease, s.margin)
		if err != nil {
			return state.Fence{}, err
		}
		held = &ownership{lease: l}
	}
	own, err := s.takeOver(ctx, held.lease, owner)
	if err != nil {
		if held != s.owned() {
			held.lease.giveBack(s.client)
		}
		return state.Fence{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = own
	clear(s.fresh)
	return state.Fence{Number: own.fence, Owner: owner}, nil
}

// checkFree refuses while there is an owner.
func (s *Store) checkFree(ctx context.Context) error {
	_, err := s.look(ctx, 0)
	return err
}

// ownedError says who the owner is.
type ownedError struct{ prefix, owner string }

// Error names the owner.
func (e *ownedError) Error() string {
	return fmt.Sprintf("etcd under %s is in use by %s", e.prefix, e.owner)
}

// seen is the head and the owner's key at one revision.
type seen struct {
	last    *entry
	created int64 // of the owner's key; 0: there is no owner
}

// look reads head and owner, and refuses when the owner has another lease than mine.
func (s *Store) look(ctx context.Context, mine clientv3.LeaseID) (seen, error) {
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).Then(clientv3.OpGet(s.keys.head()), clientv3.OpGet(s.keys.owner())).Commit()
	})
	if err != nil {
		return seen{}, explain("claim", err)
	}
	var at seen
	if at.last, err = s.headIn(resp.Responses[0].GetResponseRange().Kvs); err != nil {
		return at, err
	}
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
		if clientv3.LeaseID(kv.Lease) != mine {
			var c claim
			if json.Unmarshal(kv.Value, &c) != nil || c.Owner == "" {
				c.Owner = "another controller"
			}
			return at, errkind.New(errkind.Refused, "state: %w", &ownedError{s.keys.prefix, c.Owner}).
				Do(fmt.Sprintf("Wait until it ends, or run the command there. If it died or is cut off, another can be the owner within %.0f seconds.", (s.lease + electionTime).Seconds()))
		}
		at.created = kv.CreateRevision
	}
	return at, nil
}

// Owner returns who the owner is now; "": nobody.
func (s *Store) Owner(ctx context.Context) (string, error) {
	_, err := s.look(ctx, 0)
	if held, ok := errors.AsType[*ownedError](err); ok {
		return held.owner, nil
	}
	return "", err
}

// takeOver writes the owner's key and a head with the next fence.
func (s *Store) takeOver(ctx context.Context, l *lease, owner string) (*ownership, error) {
	for {
		at, err := s.look(ctx, l.id)
		if err != nil {
			return nil, err
		}
		next := at.last.head // what the last write left stays: its writer may ask for it
		next.Fence++
		next.Nonce = ""
		value, err := json.Marshal(claim{owner, next.Fence})
		if err != nil {
			return nil, fmt.Errorf("state: claim: %w", err)
		}
		resp, err := attempt(ctx, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			return s.client.Txn(ctx).If(
				clientv3.Compare(clientv3.CreateRevision(s.keys.owner()), "=", at.created),
				clientv3.Compare(clientv3.Value(s.keys.head()), "=", at.last.text)).
				Then(clientv3.OpPut(s.keys.owner(), string(value), clientv3.WithLease(l.id)), clientv3.OpPut(s.keys.head(), next.String())).Commit()
		})
		switch {
		case err != nil && (!isPassing(err) || !l.lives() || ctx.Err() != nil):
			return nil, explain("claim", err)
		case err != nil || !resp.Succeeded: // done or not: the next fence is higher than both
			continue
		}
		created := at.created
		if created == 0 {
			created = resp.Header.Revision
		}
		s.last = &entry{next, next.String()}
		return &ownership{fence: next.Fence, text: string(value), created: created, lease: l}, nil
	}
}

// headIn reads the head from an answer.
func (s *Store) headIn(kvs []*mvccpb.KeyValue) (*entry, error) {
	if len(kvs) != 1 {
		return nil, s.damaged(errors.New("its head is not there"))
	}
	e, err := readHead(kvs[0].Value)
	if err != nil {
		return nil, s.damaged(err)
	}
	return e, nil
}

func isLeaseLost(err error) bool { return errors.Is(err, rpctypes.ErrLeaseNotFound) }

// AwaitClaim claims as soon as no other owner's lease lives. It returns when it has, when
// ctx ends, or with an error that waiting does not change.
func (s *Store) AwaitClaim(ctx context.Context, owner string) (state.Fence, error) {
	for {
		f, err := s.Claim(ctx, owner)
		if _, ok := errors.AsType[*ownedError](err); !ok {
			return f, err
		}
		if err := s.awaitFree(ctx); err != nil {
			return state.Fence{}, err
		}
	}
}

// AwaitFree returns once nobody owns the state, with the error of its context, or with one
// that waiting does not change.
func (s *Store) AwaitFree(ctx context.Context) error {
	for {
		owner, err := s.Owner(ctx)
		if err != nil || owner == "" {
			return err
		}
		if err := s.awaitFree(ctx); err != nil {
			return err
		}
	}
}

// awaitFree returns when the owner's key is deleted, or may be.
func (s *Store) awaitFree(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return s.client.Get(ctx, s.keys.owner())
	})
	if err != nil || len(resp.Kvs) == 0 {
		return explainUnless(ctx, "wait for the owner", err)
	}
	for w := range s.client.Watch(clientv3.WithRequireLeader(ctx), s.keys.owner(), clientv3.WithRev(resp.Header.Revision+1)) {
		for _, e := range w.Events {
			if e.Type == clientv3.EventTypeDelete {
				return nil
			}
		}
		if w.Err() != nil {
			break
		}
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(retryPause):
		return nil
	}
}

func explainUnless(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return explain(what, err)
}
