// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"fmt"

	"go.etcd.io/bbolt"
)

// readChunk is how many records are read in one transaction: a caller of Read
// may append, and a long transaction would keep old pages from being reused.
const readChunk = 512

// Read calls f for the records from seq on. f may append.
func (b *Bolt) Read(ctx context.Context, from uint64, f func(Record) error) error {
	for {
		chunk, err := b.chunk(ctx, from)
		if err != nil {
			return err
		}
		for _, r := range chunk {
			if err := f(r); err != nil {
				return err
			}
		}
		if len(chunk) < readChunk {
			return nil
		}
		from = chunk[len(chunk)-1].Seq + 1
	}
}

// chunk reads the next records. A number that is missing is damage: none is
// ever left out.
func (b *Bolt) chunk(ctx context.Context, from uint64) ([]Record, error) {
	var out []Record
	due := max(from, b.info.First)
	err := b.view(ctx, func(tx *bbolt.Tx) error {
		journal := tx.Bucket(journalBucket)
		c := journal.Cursor()
		for k, v := c.Seek(seqKey(from)); k != nil && len(out) < readChunk; k, v = c.Next() {
			r, err := b.record(k, v)
			if err == nil && r.Seq != due {
				err = fmt.Errorf("record %d is where %d is due", r.Seq, due)
			}
			if err != nil {
				return damagedError(b.path, err)
			}
			out = append(out, r)
			due++
		}
		if last := journal.Sequence(); len(out) < readChunk && due <= last {
			return damagedError(b.path, fmt.Errorf("records %d to %d are not there", due, last))
		}
		b.letGo(tx)
		return nil
	})
	return out, err
}

// record decodes a stored record of this file's format.
func (b *Bolt) record(k, v []byte) (Record, error) {
	v, err := liftValue(b.info.Format, k, v, pickRecord)
	if err != nil {
		return Record{}, err
	}
	return decodeRecord(k, v)
}

// Object returns one object.
func (b *Bolt) Object(ctx context.Context, k Key) (o Object, ok bool, err error) {
	err = b.view(ctx, func(tx *bbolt.Tx) error {
		raw := tx.Bucket(objectBucket).Get([]byte(k.String()))
		if raw == nil {
			return nil
		}
		ok = true
		o, err = b.decodeObject(k, raw)
		return err
	})
	return o, ok, err
}

// Objects returns the objects of a kind.
func (b *Bolt) Objects(ctx context.Context, kind string) ([]Object, error) {
	var out []Object
	prefix := []byte(kind + "/")
	err := b.view(ctx, func(tx *bbolt.Tx) error {
		c := tx.Bucket(objectBucket).Cursor()
		for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
			o, err := b.decodeObject(Key{kind, string(k[len(prefix):])}, v)
			if err != nil {
				return err
			}
			out = append(out, o)
		}
		return nil
	})
	return out, err
}

// decodeObject copies an object out of the file.
func (b *Bolt) decodeObject(k Key, raw []byte) (Object, error) {
	version, value, err := b.object([]byte(k.String()), raw)
	if err != nil {
		return Object{}, damagedError(b.path, err)
	}
	return Object{Key: k, Version: version, Value: bytes.Clone(value)}, nil
}

// object opens a stored object of this file's format; the value may lie in the
// file.
func (b *Bolt) object(k, raw []byte) (version uint64, value []byte, err error) {
	if raw, err = liftValue(b.info.Format, k, raw, pickObject); err != nil {
		return 0, nil, err
	}
	return openObject(k, raw)
}

func (b *Bolt) view(ctx context.Context, f func(*bbolt.Tx) error) error {
	if err := b.usable(ctx); err != nil {
		return err
	}
	return guardFaults(b.path, func() error { return b.db.View(f) })
}
