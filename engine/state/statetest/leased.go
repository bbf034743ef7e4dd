// SPDX-License-Identifier: Apache-2.0

package statetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// LeasedStore behaves as a store whose writer has a lease and may be cut off from it, on
// top of one that is never. It is safe for concurrent use.
type LeasedStore struct {
	state.Store

	mu    sync.Mutex // guards what follows
	lease *lease
	cut   Moment // "": it answers
}

// NewLeasedStore makes one whose lease lives until it is ended.
func NewLeasedStore(s state.Store) *LeasedStore {
	return &LeasedStore{Store: s, lease: &lease{ended: make(chan struct{}), until: time.Now().Add(time.Hour)}}
}

type lease struct {
	once  sync.Once
	ended chan struct{}
	until time.Time
}

// Until returns when it ends.
func (l *lease) Until() (time.Time, bool) {
	select {
	case <-l.ended:
		return time.Time{}, true
	default:
		return l.until, true
	}
}

// Ended is closed when EndLease was called.
func (l *lease) Ended() <-chan struct{} { return l.ended }

// Lease is that of the writer.
func (s *LeasedStore) Lease(state.Fence) state.Lease { return s.lease }

// EndLease ends the lease; the store stays open.
func (s *LeasedStore) EndLease() { s.lease.once.Do(func() { close(s.lease.ended) }) }

// CutOff makes the store not answer, until heal is called: the next append is lost before it
// is written, or its answer after, and its lease ends meanwhile.
func (s *LeasedStore) CutOff(when Moment) (heal func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = when
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cut = ""
	}
}

func (s *LeasedStore) ended() bool {
	select {
	case <-s.lease.ended:
		return true
	default:
		return false
	}
}

func errEnded() error { return &errkind.Error{Kind: errkind.Refused, Err: state.ErrLeaseEnded} }

// Append waits for an answer as long as the lease lives.
func (s *LeasedStore) Append(ctx context.Context, f state.Fence, b state.Batch) (uint64, error) {
	if s.ended() {
		return 0, errEnded()
	}
	s.mu.Lock()
	cut := s.cut
	s.mu.Unlock()
	if b.ID == "" {
		b.ID = state.NewAppendID()
	}
	if cut == "" {
		return s.Store.Append(ctx, f, b)
	}
	if cut == AfterCommit {
		if _, err := s.Store.Append(ctx, f, b); err != nil {
			return 0, err
		}
	}
	s.EndLease() // its renewals have no answer either
	return 0, &state.UnknownError{Fence: f, ID: b.ID, Err: errEnded()}
}

// PutBlocks is refused after the lease.
func (s *LeasedStore) PutBlocks(ctx context.Context, f state.Fence, blocks ...[]byte) ([]state.Digest, error) {
	if s.ended() {
		return nil, errEnded()
	}
	return s.Store.PutBlocks(ctx, f, blocks...)
}

// OnMemory is a harness for stores in memory, or for LeasedStores on them.
func OnMemory(leased bool) Harness {
	var mu sync.Mutex // guards disks
	disks := map[string]*state.Memory{}
	plain := func(_ *testing.T, dir string) state.Store {
		mu.Lock()
		defer mu.Unlock()
		if disks[dir] == nil {
			disks[dir] = state.NewMemory()
		}
		return disks[dir].Reopen()
	}
	twin := func(t *testing.T, dir string, _ state.Store) state.Store { return plain(t, dir) }
	if !leased {
		return Harness{Open: plain, Twin: twin}
	}
	return Harness{
		Open:     func(t *testing.T, dir string) state.Store { return NewLeasedStore(plain(t, dir)) },
		Twin:     twin,
		EndLease: func(_ *testing.T, s state.Store) { s.(*LeasedStore).EndLease() },
		CutOff:   func(_ *testing.T, s state.Store, when Moment) func() { return s.(*LeasedStore).CutOff(when) },
	}
}
