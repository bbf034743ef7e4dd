// SPDX-License-Identifier: Apache-2.0

package onrecord

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Borrowed is the state of a site while its owner stays and lends it to this process. It is
// a state.Store: what is appended goes to the owner, and what is read comes from a copy,
// which is made anew after that where it takes more than the owner is asked for.
type Borrowed struct {
	ctx    context.Context // of copies: that of the command
	client *control.Client
	loan   string
	end    func()
	info   state.Info

	mu    sync.Mutex // guards what follows
	copy  *state.Bolt
	drop  func()
	stale bool // something was appended since the copy was made
}

// Borrow borrows the state from the owner of the folder. The error is an OwnedError when
// another command has it, or a run is active.
func (p Place) Borrow(ctx context.Context, b control.Borrower) (*Borrowed, error) {
	var c *control.Client
	var loan string
	var end func()
	owned, err := AskOwner(p.Folder, func(asked *control.Client) (err error) {
		c = asked
		loan, end, err = c.Borrow(ctx, b)
		return err
	})
	if err == nil && !owned {
		err = errkind.New(errkind.Interrupted, "serve has ended just now").Do("Run the command again.")
	}
	if k := errkind.Of(err); k == errkind.Refused || k == errkind.Interrupted {
		return nil, OwnedError{err}
	}
	if err != nil {
		return nil, err
	}
	s := &Borrowed{ctx: context.WithoutCancel(ctx), client: c, loan: loan, end: end, stale: true}
	r, err := s.reader()
	if err != nil {
		end()
		return nil, err
	}
	s.info = r.Info()
	return s, nil
}

// copyState opens a copy of the state that an owner has; drop closes it. It has no name any
// more: nothing is left of it however this process ends.
func copyState(ctx context.Context, c *control.Client) (r *state.Bolt, drop func(), err error) {
	file, err := os.CreateTemp("", "ironrail-state-*.db")
	if err != nil {
		return nil, nil, err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(c.Snapshot(ctx, file), file.Close()); err != nil {
		return nil, nil, err
	}
	if r, err = state.OpenReadOnly(file.Name()); err != nil {
		return nil, nil, err
	}
	return r, func() { _ = r.Close() }, nil
}

// reader is the copy that is read.
func (s *Borrowed) reader() (*state.Bolt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.copy != nil && !s.stale {
		return s.copy, nil
	}
	r, drop, err := copyState(s.ctx, s.client)
	if err != nil {
		return nil, err
	}
	if s.drop != nil {
		s.drop()
	}
	s.copy, s.drop, s.stale = r, drop, false
	return r, nil
}

// Info implements state.Reader.
func (s *Borrowed) Info() state.Info { return s.info }

// Read implements state.Reader.
func (s *Borrowed) Read(ctx context.Context, from uint64, f func(state.Record) error) error {
	r, err := s.reader()
	if err != nil {
		return err
	}
	return r.Read(ctx, from, f)
}

// Object implements state.Reader.
func (s *Borrowed) Object(ctx context.Context, k state.Key) (state.Object, bool, error) {
	if r := s.fresh(); r != nil {
		return r.Object(ctx, k)
	}
	return s.client.Object(ctx, k)
}

// fresh is the copy; nil: it is not that of now.
func (s *Borrowed) fresh() *state.Bolt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stale {
		return nil
	}
	return s.copy
}

// Objects implements state.Reader. Lists of subjects are asked for, since a copy is of all.
func (s *Borrowed) Objects(ctx context.Context, kind string) ([]state.Object, error) {
	if s.fresh() == nil && !state.IsBulk(kind) {
		return s.client.Objects(ctx, kind)
	}
	r, err := s.reader()
	if err != nil {
		return nil, err
	}
	return r.Objects(ctx, kind)
}

// Block implements state.Reader.
func (s *Borrowed) Block(ctx context.Context, d state.Digest) ([]byte, error) {
	r, err := s.reader()
	if err != nil {
		return nil, err
	}
	return r.Block(ctx, d)
}

// Outcome implements state.Store, from what the owner has now. The appends of a borrower are
// under the owner's fence, whatever that of f is.
func (s *Borrowed) Outcome(ctx context.Context, _ state.Fence, id string) (first uint64, done bool, err error) {
	s.Refresh()
	r, err := s.reader()
	if err != nil {
		return 0, false, err
	}
	err = r.Read(ctx, 1, func(x state.Record) error {
		if x.Append == id {
			first, done = x.Seq, true
		}
		return nil
	})
	return first, done, err
}

// Lease implements state.Store: an owner that has lost its own refuses appends.
func (s *Borrowed) Lease(state.Fence) state.Lease { return state.Forever{} }

// PutBlocks implements state.Store: plans are stored by the owner, which does their runs.
func (s *Borrowed) PutBlocks(context.Context, state.Fence, ...[]byte) ([]state.Digest, error) {
	return nil, errOwnerOnly("stores blocks")
}

// Sweep implements state.Store: see PutBlocks.
func (s *Borrowed) Sweep(context.Context, state.Fence) (int, error) {
	return 0, errOwnerOnly("removes blocks")
}

func errOwnerOnly(does string) error {
	return errkind.New(errkind.Refused, "state: only the owner of the state %s", does)
}

// Claim implements state.Store: the owner has claimed it.
func (s *Borrowed) Claim(context.Context, string) (state.Fence, error) {
	return state.Fence{Number: 1}, nil
}

// Append implements state.Store.
func (s *Borrowed) Append(ctx context.Context, _ state.Fence, b state.Batch) (uint64, error) {
	s.mu.Lock()
	s.stale = true
	s.mu.Unlock()
	return s.client.Append(ctx, s.loan, b)
}

// Close implements state.Store: the owner may lend the state to others.
func (s *Borrowed) Close() error {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drop != nil {
		s.drop()
		s.copy, s.drop = nil, nil
	}
	return nil
}

// Begin has the owner do a plan; see control.Lender.
func (s *Borrowed) Begin(ctx context.Context, q control.RunRequest, p *plan.Plan, k plan.Key) (control.RunBegun, error) {
	s.mu.Lock()
	s.stale = true
	s.mu.Unlock()
	return s.client.Begin(ctx, s.loan, q, p, k)
}

// Review has the owner show a plan that waits for its approval; see control.Lender.
func (s *Borrowed) Review(ctx context.Context, q control.ReviewRequest, p *plan.Plan, k plan.Key) error {
	return s.client.Review(ctx, s.loan, q, p, k)
}

// Owner asks the owner.
func (s *Borrowed) Owner() *control.Client { return s.client }

// Refresh lets the next reading see what the owner has now.
func (s *Borrowed) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
}

var _ state.Store = (*Borrowed)(nil)
