// SPDX-License-Identifier: Apache-2.0

// Package state keeps what ironrail knows between runs: a journal of records,
// which is history, and versioned objects, which are the current picture. Both
// move together in one durable append. Nothing secret is ever written here. The
// format is kept: a later ironrail adds fields and never changes the meaning of
// one.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/subject"
)

// Format is the version of the stored format that this package writes.
const Format = 3

// Versions that a Put may ask for.
const (
	Absent uint64 = 0              // the object must not exist
	Any    uint64 = math.MaxUint64 // whatever is there is replaced
)

// Reader is the reading half of a store. Its methods are safe for concurrent
// use, also with appends; each call sees one consistent picture.
type Reader interface {
	// Info says what this state is.
	Info() Info
	// Read calls f for every record from seq on, in order. An error from f
	// ends it and is returned. Records appended meanwhile may be seen or not.
	Read(ctx context.Context, from uint64, f func(Record) error) error
	// Object returns one object; false when there is none.
	Object(ctx context.Context, k Key) (Object, bool, error)
	// Objects returns all objects of a kind in the order of their names.
	Objects(ctx context.Context, kind string) ([]Object, error)
	// Block returns an immutable block; the error is of kind NotFound when there is
	// none. It is not to be changed.
	Block(ctx context.Context, d Digest) ([]byte, error)
}

// Store is where records and objects are kept. What Append reported as done
// survives the death of the process and of the machine. Implementations pass
// statetest.Run.
//
// The contract is that of several controllers, though one file has one writer
// only. A store in etcd has to keep it so: the fence is a key that only rises, and
// Claim raises it in a transaction that compares its old value; an Append is one
// transaction that compares the fence and the version of every object that it was
// given, takes the next number from one counter, and puts records and objects (so
// that no number is left out or given twice); versions come from that counter too,
// and not from the key's own, which begins anew after a delete. A claim is refused
// while the lease of another owner lives.
type Store interface {
	Reader
	// Claim makes the caller the only writer and returns its fence, whose
	// number is higher than that of every earlier claim. From then on an append
	// with an older fence is refused. owner is shown to whoever is refused. It
	// is refused itself while another process is the writer.
	Claim(ctx context.Context, owner string) (Fence, error)
	// Append writes the records and objects of b together or not at all, and
	// returns the sequence number of the first record once they are durable. It
	// fails before anything is written with a LimitError when b is larger than a
	// batch may be, with a MissingBlockError when an object names a block that is
	// not there, with a ConflictError when an object is not at the version wanted,
	// and with ErrFenced under an old fence. Appends of several goroutines share
	// one write, which is cut between batches only. ctx is looked at before the
	// write only: an append under way is not given up, so that its outcome is
	// known. It returns when the lease ends at the latest, with ErrLeaseEnded; when
	// its outcome is not known even then, with an UnknownError.
	Append(ctx context.Context, f Fence, b Batch) (uint64, error)
	// Outcome reports whether the append with this id, under this fence, was
	// written, and the number of its first record. It is for an UnknownError. Of
	// an append without records the answer holds until the next append.
	Outcome(ctx context.Context, f Fence, id string) (first uint64, done bool, err error)
	// Lease is for how long the writer with this fence is sure to be the only one.
	Lease(f Fence) Lease
	// PutBlocks makes immutable blocks durable, each of at most MaxValue bytes, and
	// returns their digests. Those that are there already stay as they are. A block is
	// put once before each append of an object that names it, also when it is there:
	// until that append it is not swept.
	PutBlocks(ctx context.Context, f Fence, blocks ...[]byte) ([]Digest, error)
	// Sweep removes the blocks that no object names, and returns how many. A block
	// that was put under this fence, for an append that was not written since, stays:
	// that append may be under way.
	Sweep(ctx context.Context, f Fence) (int, error)
	// Close gives the store back. Later calls fail.
	Close() error
}

// Info is what a store says about itself.
type Info struct {
	Format  int       `json:"format"`  // of the stored data
	Lineage string    `json:"lineage"` // random, given when the state was made; tells one state from another
	Created time.Time `json:"created"` // when the state was made
	First   uint64    `json:"first"`   // number of the oldest record that is kept; 0 or 1: none was dropped
}

// Fence is the right to append. The zero Fence has none.
type Fence struct {
	Number uint64
	Owner  string
}

// Key names an object.
type Key struct {
	Kind string // no slash
	Name string // any text, not empty
}

// String returns kind/name.
func (k Key) String() string { return k.Kind + "/" + k.Name }

func (k Key) check() error {
	if k.Kind == blockKind {
		return fmt.Errorf("state: object key %q is that of a block", k.String())
	}
	if k.Kind == "" || k.Name == "" || strings.Contains(k.Kind, "/") {
		return fmt.Errorf("state: object key %q is not kind/name", k.String())
	}
	return nil
}

// SubjectKey returns the key of a subject's object.
func SubjectKey(s subject.ID) Key { return Key{string(s.Kind), s.Name} }

// Object is a stored object. Version rises with every change, and never comes
// back after the object was deleted and made again.
type Object struct {
	Key     Key
	Version uint64
	Value   json.RawMessage
}

// Put changes one object. A nil Value deletes it.
type Put struct {
	Key   Key
	Want  uint64 // the version that must be there now: Absent, Any or a number
	Value json.RawMessage

	encoded bool // Value was made here: it is JSON, and nobody else writes to it
}

// check refuses what cannot be stored.
func (p *Put) check() error {
	if err := p.Key.check(); err != nil {
		return err
	}
	if p.Value != nil && !p.encoded && !json.Valid(p.Value) {
		return fmt.Errorf("state: object %s is not JSON", p.Key)
	}
	return nil
}

// Batch is what one append writes together. See the limits of Check.
type Batch struct {
	Records []Record // Seq, Fence and Append are set by the store
	Puts    []Put
	// ID tells this append from every other; "": the store makes one. It is stored
	// with the first record.
	ID string
}

// ErrFenced is the refusal of an append by a writer that is no longer the owner.
var ErrFenced = errors.New("state: another writer has taken over")

// ErrClosed is returned by calls on a closed store.
var ErrClosed = errors.New("state: the store is closed")

// ConflictError says that an object was not at the version that a Put wanted.
type ConflictError struct {
	Key       Key
	Want, Got uint64
}

// Error says which object moved.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("state: object %s is at version %d, not %d", e.Key, e.Got, e.Want)
}
