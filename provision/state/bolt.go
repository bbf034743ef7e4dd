package state

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/ironrail/ironrail/provision/errkind"
)

// The buckets of the file.
var (
	metaBucket    = []byte("meta")    // name -> value, see metaKeys
	journalBucket = []byte("journal") // sequence number, 8 bytes big-endian -> Record as JSON
	objectBucket  = []byte("objects") // kind/name -> version, 8 bytes big-endian, then the value as JSON
)

// The keys of the meta bucket; numbers are decimal text.
var (
	metaFormat  = []byte("format")
	metaReader  = []byte("minimum_reader") // oldest format number whose reader understands this file
	metaLineage = []byte("lineage")
	metaCreated = []byte("created") // RFC 3339
	metaFence   = []byte("fence")   // number of the last claim
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
	info     Info

	commit sync.Mutex // held while the file is written

	mu      sync.Mutex // guards what follows
	queue   []*pending // appends that wait for the next write
	writing bool       // one of them writes, or is about to
	fence   uint64     // number of the last claim
	closed  bool
}

var _ Store = (*Bolt)(nil)

// Open opens the state file at path for writing, and makes it when there is
// none. The error is of kind refused when another process has it open.
func Open(path string) (*Bolt, error) { return open(path, false) }

// OpenReadOnly opens an existing state file for reading. Appends and claims are
// refused. The error is os.ErrNotExist when there is no file, and of kind
// refused while another process writes it.
func OpenReadOnly(path string) (*Bolt, error) { return open(path, true) }

func open(path string, readOnly bool) (*Bolt, error) {
	if readOnly {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
	}
	if err := checkLength(path); err != nil {
		return nil, err
	}
	b := &Bolt{path: path, readOnly: readOnly}
	err := guard(path, func() (err error) {
		b.db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout: lockWait, ReadOnly: readOnly, FreelistType: bbolt.FreelistMapType,
		})
		return err
	})
	if err != nil {
		return nil, openError(path, err)
	}
	if err := guard(path, b.load); err != nil {
		_ = b.db.Close()
		return nil, err
	}
	return b, nil
}

// checkLength finds a file that is shorter than its own account of itself, as
// a copy cut short is, before anything reads past its end.
func checkLength(path string) error {
	st, err := os.Stat(path)
	if err != nil || st.Size() == 0 {
		return nil // made by open, or reported by it
	}
	return guard(path, func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, ReadOnly: true})
		if err != nil {
			return openError(path, err)
		}
		defer db.Close()
		return db.View(func(tx *bbolt.Tx) error {
			if tx.Size() > st.Size() {
				return damaged(path, fmt.Errorf("it has %d of its %d bytes", st.Size(), tx.Size()))
			}
			return nil
		})
	})
}

// openError says what a failed open means to the operator.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return errkind.New(errkind.Refused, "state: %s is in use by %s", path, ownerOf(path)).
			Do("Wait until it ends, or ask it with ironrail status.")
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, bolterrors.ErrVersionMismatch):
		return damaged(path, err)
	}
	if _, ok := errors.AsType[*errkind.Error](err); ok {
		return err
	}
	return fmt.Errorf("state: open %s: %w", path, err)
}

func damaged(path string, err error) error {
	return errkind.New(errkind.Mismatch, "state: %s is damaged or not a state file: %w", path, err).
		Do("Put back a copy of the file. Without one, move it away and adopt the nodes that run: nothing is installed because the state is lost.")
}

// ownerOf returns what the last claim wrote beside the file.
func ownerOf(path string) string {
	b, err := os.ReadFile(path + ".owner")
	if s := strings.TrimSpace(string(b)); err == nil && s != "" {
		return s
	}
	return "another process"
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
		return b.readMeta(m)
	})
	switch {
	case err != nil:
		return err
	case isNew && b.readOnly:
		return damaged(b.path, errors.New("it holds nothing"))
	case isNew:
		return b.create()
	}
	return nil
}

func (b *Bolt) readMeta(m *bbolt.Bucket) error {
	var minimum int
	if _, err := fmt.Sscanf(string(m.Get(metaFormat))+" "+string(m.Get(metaReader))+" "+string(m.Get(metaFence)),
		"%d %d %d", &b.info.Format, &minimum, &b.fence); err != nil {
		return damaged(b.path, fmt.Errorf("its format is not readable: %w", err))
	}
	if minimum > Format || b.info.Format > Format && !b.readOnly {
		return errkind.New(errkind.Unsupported, "state: %s was written in format %d; this ironrail knows %d", b.path, b.info.Format, Format).
			Do("Use the newer ironrail that wrote it.")
	}
	b.info.Lineage = string(m.Get(metaLineage))
	created, err := time.Parse(time.RFC3339Nano, string(m.Get(metaCreated)))
	if err != nil || b.info.Lineage == "" {
		return damaged(b.path, errors.New("it has no lineage or no date"))
	}
	b.info.Created = created
	return nil
}

func (b *Bolt) create() error {
	b.info = Info{Format: Format, Lineage: rand.Text(), Created: time.Now().UTC()}
	err := b.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{metaBucket, journalBucket, objectBucket} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		m := tx.Bucket(metaBucket)
		return errors.Join(
			m.Put(metaFormat, fmt.Append(nil, Format)), m.Put(metaReader, fmt.Append(nil, Format)),
			m.Put(metaFence, []byte("0")), m.Put(metaLineage, []byte(b.info.Lineage)),
			m.Put(metaCreated, []byte(b.info.Created.Format(time.RFC3339Nano))))
	})
	if err != nil {
		return fmt.Errorf("state: create %s: %w", b.path, err)
	}
	return syncDir(filepath.Dir(b.path))
}

// Info says what this state is.
func (b *Bolt) Info() Info { return b.info }

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
	next := b.current() + 1
	err := guard(b.path, func() error {
		return b.db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(metaBucket).Put(metaFence, fmt.Append(nil, next))
		})
	})
	if err != nil {
		return Fence{}, fmt.Errorf("state: claim: %w", err)
	}
	b.mu.Lock()
	b.fence = next
	b.mu.Unlock()
	// Who owns it is a courtesy to those who are refused; the lock is the truth.
	_ = os.WriteFile(b.path+".owner", []byte(owner+"\n"), 0o600)
	return Fence{Number: next, Owner: owner}, nil
}

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

// encode is json.Marshal that says what it could not encode.
func encode(k Key, v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("state: object %s: %w", k, err)
	}
	return raw, nil
}
