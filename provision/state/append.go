package state

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"runtime"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/provision/errkind"
)

// pending is an append that waits for a write. The writer of its group fills in
// first and err before it wakes it.
type pending struct {
	fence Fence
	batch Batch
	first uint64
	err   error
	wake  chan role // one message: what to do now
}

// role is what a waiting append is woken for.
type role bool

const (
	settled role = false // its group was written
	writer  role = true  // it writes the next group, and is the first of it
)

// maxGroup bounds how many appends share one write, and with it the time that
// the first of them waits.
const maxGroup = 256

// Append writes b. The first of several concurrent appends writes for all that
// came while an earlier write was under way: one pair of fsyncs serves them all.
func (b *Bolt) Append(ctx context.Context, f Fence, batch Batch) (uint64, error) {
	if b.readOnly {
		return 0, errkind.New(errkind.Refused, "state: %s is open for reading only", b.path)
	}
	for _, p := range batch.Puts {
		if err := p.Key.check(); err != nil {
			return 0, err
		}
		if p.Value != nil && !json.Valid(p.Value) {
			return 0, fmt.Errorf("state: object %s is not JSON", p.Key)
		}
	}
	p := &pending{fence: f, batch: batch, wake: make(chan role, 1)}
	first, err := b.enqueue(ctx, p)
	if err != nil {
		return 0, err
	}
	if first || <-p.wake == writer {
		b.writeGroup()
	}
	return p.first, p.err
}

// enqueue reports whether p has to write: nobody does.
func (b *Bolt) enqueue(ctx context.Context, p *pending) (bool, error) {
	if err := b.usable(ctx); err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, p)
	first := !b.writing
	b.writing = true
	return first, nil
}

// writeGroup writes for the oldest that wait, the caller first, and hands the
// next group to the first of it.
func (b *Bolt) writeGroup() {
	runtime.Gosched() // those that the last write has just woken may join
	b.mu.Lock()
	n := min(len(b.queue), maxGroup)
	group := b.queue[:n:n]
	b.queue = b.queue[n:]
	b.mu.Unlock()
	b.write(group)
	for _, p := range group[1:] {
		p.wake <- settled
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.writing = len(b.queue) > 0; b.writing {
		b.queue[0].wake <- writer
	}
}

// write commits a group. An append that is refused leaves the others alone; a
// failed commit fails them all.
func (b *Bolt) write(group []*pending) {
	b.commit.Lock()
	defer b.commit.Unlock()
	fence := b.current()
	err := guard(b.path, func() error {
		return b.db.Update(func(tx *bbolt.Tx) error {
			for _, p := range group {
				if p.err = p.admit(tx, fence); p.err != nil {
					continue
				}
				if err := p.store(tx); err != nil {
					return err
				}
			}
			return nil
		})
	})
	for _, p := range group {
		if err != nil && p.err == nil {
			p.first, p.err = 0, fmt.Errorf("state: append: %w", err)
		}
	}
}

// admit checks everything that can refuse an append before it writes a byte.
func (p *pending) admit(tx *bbolt.Tx, fence uint64) error {
	if p.fence.Number != fence || fence == 0 {
		return &errkind.Error{Kind: errkind.Refused, Err: ErrFenced,
			Action: "Look which process owns the state with ironrail status, and let it go on."}
	}
	objects := tx.Bucket(objectBucket)
	for _, put := range p.batch.Puts {
		if put.Want == Any {
			continue
		}
		if got := versionOf(objects.Get([]byte(put.Key.String()))); got != put.Want {
			return &errkind.Error{Kind: errkind.Refused, Err: &ConflictError{Key: put.Key, Want: put.Want, Got: got}}
		}
	}
	return nil
}

// store writes the batch into tx; an error fails the whole transaction.
func (p *pending) store(tx *bbolt.Tx) error {
	journal, objects := tx.Bucket(journalBucket), tx.Bucket(objectBucket)
	journal.FillPercent = 0.95 // keys only rise
	for i, r := range p.batch.Records {
		seq, err := journal.NextSequence()
		if err != nil {
			return err
		}
		if i == 0 {
			p.first = seq
		}
		r.Seq = seq
		raw, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("record %d: %w", seq, err)
		}
		if err := journal.Put(seqKey(seq), raw); err != nil {
			return err
		}
	}
	for _, put := range p.batch.Puts {
		if err := putObject(objects, put); err != nil {
			return err
		}
	}
	return nil
}

func putObject(objects *bbolt.Bucket, p Put) error {
	key := []byte(p.Key.String())
	if p.Value == nil {
		return objects.Delete(key)
	}
	version, err := objects.NextSequence()
	if err != nil {
		return err
	}
	return objects.Put(key, append(binary.BigEndian.AppendUint64(nil, version), p.Value...))
}

// versionOf returns the version in a stored object, Absent for none.
func versionOf(raw []byte) uint64 {
	if len(raw) < 8 {
		return Absent
	}
	return binary.BigEndian.Uint64(raw)
}
