package state

import (
	"bytes"
	"context"
	"encoding/json"
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

func (b *Bolt) chunk(ctx context.Context, from uint64) ([]Record, error) {
	var out []Record
	err := b.view(ctx, func(tx *bbolt.Tx) error {
		c := tx.Bucket(journalBucket).Cursor()
		for k, v := c.Seek(seqKey(from)); k != nil && len(out) < readChunk; k, v = c.Next() {
			r, err := decodeRecord(k, v)
			if err != nil {
				return damaged(b.path, err)
			}
			out = append(out, r)
		}
		return nil
	})
	return out, err
}

// decodeRecord reads one entry of the journal: its key is its number.
func decodeRecord(key, value []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(value, &r); err != nil {
		return r, fmt.Errorf("record %x: %w", key, err)
	}
	if !bytes.Equal(key, seqKey(r.Seq)) {
		return r, fmt.Errorf("record %x says it is %d", key, r.Seq)
	}
	return r, nil
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
	if len(raw) < 8 || !json.Valid(raw[8:]) {
		return Object{}, damaged(b.path, fmt.Errorf("object %s is not readable", k))
	}
	return Object{Key: k, Version: versionOf(raw), Value: bytes.Clone(raw[8:])}, nil
}

func (b *Bolt) view(ctx context.Context, f func(*bbolt.Tx) error) error {
	if err := b.usable(ctx); err != nil {
		return err
	}
	return guard(b.path, func() error { return b.db.View(f) })
}
