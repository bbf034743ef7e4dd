// SPDX-License-Identifier: Apache-2.0

package statetest

import (
	"context"
	"errors"
	"sync"

	"github.com/ironrail/ironrail/engine/state"
)

// ErrCrash is what every call on a CrashStore returns once it has died.
var ErrCrash = errors.New("statetest: the process was killed here")

// Moment is the side of the write to disk on which a CrashStore dies.
type Moment string

// The moments: the record is lost, or it is on disk and nobody was told.
const (
	BeforeCommit Moment = "before"
	AfterCommit  Moment = "after"
)

// CrashStore behaves as the store of a process that is killed at one append:
// that append and every later call fail. The store below stays open, as the file
// on disk does. It is safe for concurrent use.
type CrashStore struct {
	state.Store
	At   int    // die at the At-th append, counted from 1; 0: never
	When Moment // before or after it is on disk

	mu   sync.Mutex // guards n, dead
	n    int
	dead bool
}

// Appends returns how many appends were made.
func (c *CrashStore) Appends() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// Dead reports whether the store has died.
func (c *CrashStore) Dead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// Append counts, and dies when its time has come. Appends are made one at a
// time, so that "the At-th" has a meaning.
func (c *CrashStore) Append(ctx context.Context, f state.Fence, b state.Batch) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return 0, ErrCrash
	}
	c.n++
	c.dead = c.n == c.At
	if c.dead && c.When == BeforeCommit {
		return 0, ErrCrash
	}
	seq, err := c.Store.Append(ctx, f, b)
	if c.dead {
		return 0, ErrCrash
	}
	return seq, err
}

// Read fails once the store has died.
func (c *CrashStore) Read(ctx context.Context, from uint64, f func(state.Record) error) error {
	if c.Dead() {
		return ErrCrash
	}
	return c.Store.Read(ctx, from, f)
}

// Object fails once the store has died.
func (c *CrashStore) Object(ctx context.Context, k state.Key) (state.Object, bool, error) {
	if c.Dead() {
		return state.Object{}, false, ErrCrash
	}
	return c.Store.Object(ctx, k)
}

// Objects fails once the store has died.
func (c *CrashStore) Objects(ctx context.Context, kind string) ([]state.Object, error) {
	if c.Dead() {
		return nil, ErrCrash
	}
	return c.Store.Objects(ctx, kind)
}

// Claim fails once the store has died.
func (c *CrashStore) Claim(ctx context.Context, owner string) (state.Fence, error) {
	if c.Dead() {
		return state.Fence{}, ErrCrash
	}
	return c.Store.Claim(ctx, owner)
}
