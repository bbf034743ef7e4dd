// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Append writes b. The first of several concurrent appends writes for all that
// came while an earlier write was under way: one pair of fsyncs serves them all.
func (b *Bolt) Append(ctx context.Context, f Fence, batch Batch) (uint64, error) {
	if b.readOnly {
		return 0, errkind.New(errkind.Refused, "state: %s is open for reading only", b.path)
	}
	p, err := newPending(f, batch)
	if err != nil {
		return 0, err
	}
	if err := p.encode(); err != nil {
		return 0, err
	}
	if err := b.usable(ctx); err != nil {
		return 0, err
	}
	b.groups.Join(p, b.write)
	return p.first, p.err
}

// pending is an append that waits for a write. The writer of its group fills in
// first and err.
type pending struct {
	fence Fence
	batch Batch
	named []Digest // blocks that its objects name
	lines [][]byte // the records as JSON, with number 0
	first uint64
	err   error
}

// newPending refuses what no store takes, and gives the batch an id.
func newPending(f Fence, b Batch) (*pending, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	if b.ID == "" {
		b.ID = NewAppendID()
	}
	named, err := b.namedBlocks()
	return &pending{fence: f, batch: b, named: named}, err
}

// unnumbered is how a record begins as JSON before it has its number.
const unnumbered = `{"seq":0,`

// encode makes the records ready, while others write.
func (p *pending) encode() error {
	p.lines = make([][]byte, len(p.batch.Records))
	for i, r := range p.batch.Records {
		if r.Fence, r.Append = 0, ""; i == 0 {
			r.Fence, r.Append = p.fence.Number, p.batch.ID
		}
		raw, err := p.batch.line(r)
		if err != nil {
			return fmt.Errorf("state: record of kind %s: %w", r.Kind, err)
		}
		p.lines[i] = raw[len(unnumbered):]
	}
	return nil
}

// encodeNumbered is a record as it is stored.
func encodeNumbered(seq uint64, line []byte) []byte {
	out := make([]byte, sumLength, sumLength+len(unnumbered)+20+len(line))
	out = append(strconv.AppendUint(append(out, unnumbered[:len(unnumbered)-2]...), seq, 10), ',')
	return sealInPlace(seqKey(seq), append(out, line...))
}

// write commits a group. An append that is refused leaves the others alone; a
// failed commit fails them all.
func (b *Bolt) write(group []*pending) {
	b.commit.Lock()
	defer b.commit.Unlock()
	err := b.broken
	if err == nil {
		err = b.transact(group)
	}
	for _, p := range group {
		if err != nil && p.err == nil {
			p.first, p.err = 0, fmt.Errorf("state: append: %w", err)
		}
	}
}

// transact writes a group in one transaction. After a commit that failed nobody
// knows which of its pages are on disk, so that nothing more is written: the
// next process begins with what is there.
func (b *Bolt) transact(group []*pending) error {
	fence, kinds, written := b.current(), maps.Clone(b.kinds), false
	err := guardFaults(b.path, func() error {
		return b.db.Update(func(tx *bbolt.Tx) error {
			for _, p := range group {
				if p.err = p.admit(tx, fence); p.err != nil {
					continue
				}
				if err := p.store(tx, kinds); err != nil {
					return err
				}
			}
			written = true
			return errors.Join(writeMarker(tx, fence, group), tx.Bucket(metaBucket).Put(metaKinds, kinds.encode()), sealMeta(tx))
		})
	})
	if err == nil {
		b.kinds = kinds
		for _, p := range group {
			if p.err == nil {
				b.unnamed.drop(p.named)
			}
		}
		return nil
	}
	err = FullDisk(err)
	if written {
		b.broken = fmt.Errorf("an earlier write failed: %w", err)
	}
	return err
}

// checkFence refuses an append under an old fence.
func checkFence(f Fence, now uint64) error {
	if f.Number == now && now != 0 {
		return nil
	}
	return &errkind.Error{Kind: errkind.Refused, Err: ErrFenced,
		Action: "Look which process owns the state with ironrail status, and let it go on."}
}

// admit checks everything that can refuse an append before it writes a byte.
func (p *pending) admit(tx *bbolt.Tx, fence uint64) error {
	if err := checkFence(p.fence, fence); err != nil {
		return err
	}
	for _, d := range p.named {
		if tx.Bucket(objectBucket).Get(blockKey(d)) == nil {
			return missingBlock(d)
		}
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
func (p *pending) store(tx *bbolt.Tx, kinds tally) error {
	journal, objects := tx.Bucket(journalBucket), tx.Bucket(objectBucket)
	journal.FillPercent = 0.95 // keys only rise
	for i, line := range p.lines {
		seq, err := journal.NextSequence()
		if err != nil {
			return err
		}
		if i == 0 {
			p.first = seq
		}
		if err := journal.Put(seqKey(seq), encodeNumbered(seq, line)); err != nil {
			return err
		}
	}
	for _, put := range p.batch.Puts {
		if err := putObject(objects, put, kinds); err != nil {
			return err
		}
	}
	return nil
}

func putObject(objects *bbolt.Bucket, p Put, kinds tally) error {
	key := []byte(p.Key.String())
	was := objects.Get(key) != nil
	if p.Value == nil {
		if was {
			kinds.drop(key)
		}
		return objects.Delete(key)
	}
	version, err := objects.NextSequence()
	if err != nil {
		return err
	}
	if !was {
		kinds.add(key)
	}
	return objects.Put(key, sealObject(key, version, p.Value))
}
