// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// errKilled is what a store says whose process is dead.
var errKilled = errors.New("the controller was killed here")

// Kill says when the controller dies: between which two records of the journal, or
// amid a step.
type Kill struct {
	At   uint64 // number of the record from which on nothing is written; 0: never
	Kept bool   // the append of that record is still durable; else it is lost

	Step  string        // such as validate.burn; empty: amid none
	After time.Duration // how long after the first of these steps began, on the hardware's clock

	// Disk is how old the copy of the state is at least that the next process begins with,
	// since the disk of the controller died with it; 0: it lives.
	Disk time.Duration
}

// Store is the state of a controller that can be killed. Like the store of a dead
// process it refuses everything afterwards; Reopen gives the next process a living one.
type Store struct {
	state.Store
	when   []Trigger
	cancel context.CancelCauseFunc

	mu     sync.Mutex // guards what follows; held while the store in memory appends, which never waits
	next   uint64     // number of the next record
	killed bool
	kills  int
}

// Trigger says of the records that are to be written whether the controller dies at
// them, and whether they are durable even so.
type Trigger func(batch state.Batch, first uint64) (fire, kept bool)

// NewStore makes a Store of one whose journal is empty, or that counts no records.
func NewStore(s state.Store) *Store { return &Store{Store: s, next: 1} }

// KillWhen has the controller die at its next record that fires the trigger.
func (k *Store) KillWhen(t Trigger) { k.when = append(k.when, t) }

// atRecord fires when the record with that number is written.
func atRecord(k Kill) Trigger {
	return func(b state.Batch, first uint64) (bool, bool) {
		return k.At > 0 && first <= k.At && k.At < first+uint64(len(b.Records)), k.Kept
	}
}

// AtStep fires at the first record of a step, of the node that the fault names or
// of a group with that node.
func (t *Rehearsal) AtStep(f fault.Fault) Trigger {
	return func(b state.Batch, _ uint64) (bool, bool) {
		for _, r := range b.Records {
			if stepMatches(r.Step, f.At) && (f.Node == "" || t.isOf(r.Step, f.Node)) {
				return true, true
			}
		}
		return false, false
	}
}

// amid never fires: the process dies so long after the step began, while nothing is
// written.
func (t *Rehearsal) amid(k Kill) Trigger {
	var once sync.Once
	return func(b state.Batch, _ uint64) (bool, bool) {
		for _, r := range b.Records {
			if stepMatches(r.Step, k.Step) {
				once.Do(func() {
					go func() { // ends when the time has come
						_ = t.Clock.Sleep(context.Background(), k.After)
						t.Store.kill()
					}()
				})
			}
		}
		return false, false
	}
}

// kill ends the process that runs now.
func (k *Store) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.killed {
		k.killed = true
		k.kills++
		k.cancel(errKilled)
	}
}

// Append writes unless the process dies before, or died.
func (k *Store) Append(ctx context.Context, f state.Fence, b state.Batch) (uint64, error) {
	first, die, err := k.append(ctx, f, b)
	if die != nil {
		die(errKilled)
	}
	return first, err
}

// append is Append; die is not nil when the process dies of it. Batches are
// written one at a time, so that "the record with that number" has a meaning.
func (k *Store) append(ctx context.Context, f state.Fence, b state.Batch) (first uint64, die context.CancelCauseFunc, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.killed {
		return 0, nil, errKilled
	}
	kept := false
	for i, when := range k.when {
		if k.killed, kept = when(b, k.next); k.killed {
			k.when = append(k.when[:i:i], k.when[i+1:]...)
			k.kills++
			die = k.cancel
			break
		}
	}
	if k.killed && !kept {
		return 0, die, errKilled
	}
	if first, err = k.Store.Append(ctx, f, b); err == nil {
		k.next = max(k.next, first+uint64(len(b.Records)))
	}
	if k.killed {
		return 0, die, errKilled // it is durable, and nobody was told
	}
	return first, nil, err
}

// Reopen is the store as the next process finds it; die ends that process.
func (k *Store) Reopen(die context.CancelCauseFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.killed, k.cancel = false, die
}

// records is how many records the journal has.
func (k *Store) records() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.next - 1
}

// countKills is how often the process died.
func (k *Store) countKills() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kills
}
