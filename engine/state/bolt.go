// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/ironrail/ironrail/engine/state/commit"
	"github.com/ironrail/ironrail/internal/errkind"
)

// The buckets of the file.
var (
	metaBucket    = []byte("meta")    // name -> value, see below
	journalBucket = []byte("journal") // sequence number, 8 bytes big-endian -> Record, see sealRecord
	objectBucket  = []byte("objects") // kind/name -> version and value, see sealObject
)

// The keys of the meta bucket; numbers are decimal text.
var (
	metaFormat  = []byte("format")
	metaReader  = []byte("minimum_reader") // oldest format number whose reader understands this file
	metaLineage = []byte("lineage")
	metaCreated = []byte("created") // RFC 3339
	metaFence   = []byte("fence")   // number of the last claim
	metaFirst   = []byte("first")   // number of the oldest record that is kept; since format 2
	metaKinds   = []byte("kinds")   // a tally of the objects; since format 2
	metaSum     = []byte("sum")     // checksum of these, see metaSumOf; since format 2
	metaLast    = []byte("last")    // the ids of the last write, see writeMarker; since format 3
	metaMirror  = []byte("mirror")  // where the original stood; only a Mirror has it
)

// lockWait bounds the wait for readers of the file to go away, and readers' for
// each other.
const lockWait = 2 * time.Second

// Bolt is the store in one local file. It is safe for concurrent use. While it
// is open for writing no other process can open the file.
type Bolt struct {
	db       *bbolt.DB
	path     string
	readOnly bool
	migrated int // the format it was brought from; 0: it was in this one
	info     Info

	groups commit.Queue[*pending] // of appends
	commit sync.Mutex             // held while the file is written

	mu     sync.Mutex // guards what follows
	fence  uint64     // number of the last claim
	closed bool

	// Owned by who holds commit.
	kinds   tally   // of the objects
	broken  error   // a write that failed in a way that leaves the file's pages open
	unnamed unnamed // blocks that were put under this fence and that no append named since
}

var _ Store = (*Bolt)(nil)

// Open opens the state file at path for writing, and makes it when there is
// none. The error is of kind refused when another process has it open, and when it is a
// Mirror.
func Open(path string) (*Bolt, error) { return openFile(path, opening{}) }

// OpenReadOnly opens an existing state file for reading. Appends and claims are
// refused. The error is os.ErrNotExist when there is no file, and of kind
// refused while another process writes it.
func OpenReadOnly(path string) (*Bolt, error) { return openFile(path, opening{readOnly: true}) }

// opening is what a file is opened for. The zero value is for writing the original.
type opening struct{ readOnly, mirror bool }

func openFile(path string, as opening) (*Bolt, error) {
	readOnly := as.readOnly
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular(): // a pipe would be waited for without end
		return nil, errkind.New(errkind.Refused, "state: %s is no regular file", path).Do("Name a state file, or a copy of one.")
	case err != nil && readOnly:
		return nil, fmt.Errorf("state: %w", err)
	}
	found, err := inspectFile(path, look(!readOnly))
	if err != nil {
		return nil, err
	}
	b := &Bolt{path: path, readOnly: readOnly, kinds: tally{}, unnamed: unnamed{}}
	if b.migrated, err = as.prepare(path, found); err != nil {
		return nil, err
	}
	if b.migrated > 0 {
		found = nil // it was of the file before, and the new one was read back
	}
	err = guardFaults(path, func() (err error) {
		b.db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout: lockWait, ReadOnly: readOnly, FreelistType: bbolt.FreelistMapType,
		})
		return err
	})
	if err != nil {
		return nil, openError(path, err)
	}
	if err := guardFaults(path, func() error { return b.loadAs(found) }); err != nil {
		_ = b.db.Close()
		return nil, err
	}
	return b, nil
}

// prepare refuses a file that is not what it is opened for, and brings an original that is
// to be written to this format. It returns the format that it had; 0: it was in this one.
func (as opening) prepare(path string, found *shape) (from int, err error) {
	if as.readOnly || found == nil || found.empty {
		return 0, nil
	}
	switch _, is := found.meta[string(metaMirror)]; {
	case is != as.mirror:
		return 0, otherKind(path, is)
	case is:
		return 0, nil // an older one is made anew
	}
	return migrateFile(path, found)
}

// errInUse is bbolt's word for a lock that somebody else holds.
var errInUse = bolterrors.ErrTimeout

// openError says what a failed open means to the operator.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return errkind.New(errkind.Refused, "state: %s is in use by %s", path, ownerOf(path)).
			Do("Wait until it ends, or ask it with ironrail status.")
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, bolterrors.ErrVersionMismatch):
		return damagedError(path, err)
	}
	if _, ok := errors.AsType[*errkind.Error](err); ok {
		return err
	}
	return fmt.Errorf("state: open %s: %w", path, err)
}

func damagedError(path string, err error) error {
	return errkind.New(errkind.Corrupt, "state: %s is damaged or not a state file: %w", path, err).
		Do("Put back a copy with `ironrail state restore`. Without one, move the file away and adopt the nodes that run: nothing is installed because the state is lost.")
}

// ownerOf returns what the last claim wrote beside the file.
func ownerOf(path string) string {
	b, err := os.ReadFile(path + ".owner")
	if s := strings.TrimSpace(string(b)); err == nil && s != "" {
		return s
	}
	return "another process"
}

// loadAs loads a file of which a walk has found something; nil: nothing is known of it.
func (b *Bolt) loadAs(found *shape) error {
	if err := b.load(); err != nil || found == nil || b.info.Format < 2 {
		return err
	}
	if err := b.kinds.differs(found.kinds); err != nil {
		return damagedError(b.path, err)
	}
	return nil
}

// load reads the meta bucket, and makes all buckets in a new file.
func (b *Bolt) load() error {
	isNew := false
	err := b.db.View(func(tx *bbolt.Tx) error {
		m := tx.Bucket(metaBucket)
		if m == nil {
			isNew = true
			return nil
		}
		return b.readMeta(tx, m)
	})
	switch {
	case err != nil:
		return err
	case isNew && b.readOnly:
		return damagedError(b.path, errors.New("it holds nothing"))
	case isNew:
		return b.create()
	}
	return nil
}

// Info says what this state is.
func (b *Bolt) Info() Info { return b.info }

// Path is the file of the store.
func (b *Bolt) Path() string { return b.path }

// Migrated returns the format that opening the file brought it from; 0 when it
// was in this one. The old file lies at OldFormatPath(path, format).
func (b *Bolt) Migrated() int { return b.migrated }

// Claim raises the fence. The file lock is already held since Open.
func (b *Bolt) Claim(ctx context.Context, owner string) (Fence, error) {
	if err := b.usable(ctx); err != nil {
		return Fence{}, err
	}
	if b.readOnly {
		return Fence{}, errkind.New(errkind.Refused, "state: %s is open for reading only", b.path)
	}
	b.commit.Lock()
	defer b.commit.Unlock()
	if b.broken != nil {
		return Fence{}, b.broken
	}
	next := b.current() + 1
	err := guardFaults(b.path, func() error {
		return b.db.Update(func(tx *bbolt.Tx) error {
			return errors.Join(tx.Bucket(metaBucket).Put(metaFence, fmt.Append(nil, next)), sealMeta(tx))
		})
	})
	if err != nil {
		b.broken = fmt.Errorf("state: claim: %w", FullDisk(err))
		return Fence{}, b.broken
	}
	b.unnamed = unnamed{} // what the owner before has under way is refused from here on
	b.mu.Lock()
	b.fence = next
	b.mu.Unlock()
	// Who owns it is a courtesy to those who are refused; the lock is the truth.
	_ = os.WriteFile(b.path+".owner", []byte(owner+"\n"), 0o600)
	return Fence{Number: next, Owner: owner}, nil
}

// Lease is that of a file: it is locked for as long as it is open.
func (b *Bolt) Lease(Fence) Lease { return Forever{} }

// Close waits for the append under way, then gives the file back.
func (b *Bolt) Close() error {
	b.mu.Lock()
	was := b.closed
	b.closed = true
	b.mu.Unlock()
	if was {
		return nil
	}
	b.commit.Lock()
	defer b.commit.Unlock()
	if !b.readOnly {
		_ = os.Remove(b.path + ".owner")
	}
	return b.db.Close()
}

func (b *Bolt) current() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fence
}

// usable returns why a call must not go on.
func (b *Bolt) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	return nil
}

// seqKey is the key of a record in the journal.
func seqKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// encodeValue is json.Marshal that says what it could not encode.
func encodeValue(k Key, v any) (json.RawMessage, error) {
	if raw, ok := quickJSON(v); ok {
		return raw, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("state: object %s: %w", k, err)
	}
	return raw, nil
}
