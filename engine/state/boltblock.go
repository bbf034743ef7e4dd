// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/internal/errkind"
)

// blockKind begins the keys of blocks, which lie among the objects, so that an ironrail of an
// older format finds the tables that it knows and says that the format is a newer one. A
// block is stored as an object is, with the fence under which it was put as its version.
const blockKind = "block"

func blockKey(d Digest) []byte { return []byte(blockKind + "/" + string(d)) }

// isBlock reports whether a key among the objects is that of a block, and of which.
func isBlock(key []byte) (Digest, bool) {
	name, ok := bytes.CutPrefix(key, []byte(blockKind+"/"))
	return Digest(name), ok
}

// PutBlocks makes blocks durable.
func (b *Bolt) PutBlocks(ctx context.Context, f Fence, blocks ...[]byte) ([]Digest, error) {
	if err := checkBlocks(blocks); err != nil {
		return nil, err
	}
	out := make([]Digest, len(blocks))
	for i, x := range blocks {
		out[i] = DigestOf(x)
	}
	return out, b.writeBlocks(ctx, f, out, func(tx *bbolt.Tx, kinds tally) error {
		table := tx.Bucket(objectBucket)
		for i, d := range out {
			key := blockKey(d)
			if table.Get(key) != nil {
				continue
			}
			kinds.add(key)
			if err := table.Put(key, sealObject(key, f.Number, blocks[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeBlocks runs change in a transaction of the writer with a fence. It puts the blocks.
func (b *Bolt) writeBlocks(ctx context.Context, f Fence, puts []Digest, change func(*bbolt.Tx, tally) error) error {
	if b.readOnly {
		return errkind.New(errkind.Refused, "state: %s is open for reading only", b.path)
	}
	if err := b.usable(ctx); err != nil {
		return err
	}
	b.commit.Lock()
	defer b.commit.Unlock()
	if b.broken != nil {
		return b.broken
	}
	if err := checkFence(f, b.current()); err != nil {
		return err
	}
	kinds := maps.Clone(b.kinds)
	err := guardFaults(b.path, func() error {
		return b.db.Update(func(tx *bbolt.Tx) error {
			if err := change(tx, kinds); err != nil {
				return err
			}
			return errors.Join(tx.Bucket(metaBucket).Put(metaKinds, kinds.encode()), sealMeta(tx))
		})
	})
	if err != nil {
		b.broken = fmt.Errorf("state: blocks: %w", FullDisk(err))
		return b.broken
	}
	b.kinds = kinds
	b.unnamed.add(puts)
	return nil
}

// Block returns a block.
func (b *Bolt) Block(ctx context.Context, d Digest) (out []byte, err error) {
	err = b.view(ctx, func(tx *bbolt.Tx) error {
		if err := d.check(); err != nil {
			return err
		}
		value, err := readBlock(tx, d)
		if err != nil {
			return damagedError(b.path, err)
		}
		if value == nil {
			return missingBlock(d)
		}
		out = bytes.Clone(value)
		return nil
	})
	return out, err
}

// readBlock opens a stored block, which lies in the file; nil when there is none.
func readBlock(tx *bbolt.Tx, d Digest) ([]byte, error) {
	key := blockKey(d)
	raw := tx.Bucket(objectBucket).Get(key)
	if raw == nil {
		return nil, nil
	}
	_, value, err := openObject(key, raw)
	if err == nil && value == nil {
		value = []byte{}
	}
	return value, err
}

// Sweep removes blocks that no object names.
func (b *Bolt) Sweep(ctx context.Context, f Fence) (n int, err error) {
	err = b.writeBlocks(ctx, f, nil, func(tx *bbolt.Tx, kinds tally) error {
		named, err := b.namedIn(tx)
		if err != nil {
			return err
		}
		for d := range b.unnamed { // their append may be under way
			named[d] = true
		}
		var drop [][]byte
		prefix := blockKey("")
		c := tx.Bucket(objectBucket).Cursor()
		for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			if d, _ := isBlock(k); !named[d] {
				drop = append(drop, bytes.Clone(k))
			}
		}
		n = len(drop)
		for _, k := range drop {
			kinds.drop(k)
			err = errors.Join(err, tx.Bucket(objectBucket).Delete(k))
		}
		return err
	})
	return n, err
}

// namedIn returns the blocks that objects name.
func (b *Bolt) namedIn(tx *bbolt.Tx) (map[Digest]bool, error) {
	named := map[Digest]bool{}
	for _, kind := range BlockKinds {
		prefix := []byte(kind + "/")
		c := tx.Bucket(objectBucket).Cursor()
		for k, raw := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, raw = c.Next() {
			_, value, err := b.object(k, raw)
			if err != nil {
				return nil, damagedError(b.path, err)
			}
			ds, err := NamedBlocks(keyOf(k), value)
			if err != nil {
				return nil, damagedError(b.path, err)
			}
			for _, d := range ds {
				named[d] = true
			}
		}
	}
	return named, nil
}

// keyOf splits the key of a stored object.
func keyOf(k []byte) Key {
	kind := string(kindOf(k))
	return Key{kind, string(k[min(len(kind)+1, len(k)):])}
}

// checkBlocksIn finds a block that an object names and that is not there.
func (b *Bolt) checkBlocksIn(tx *bbolt.Tx) error {
	named, err := b.namedIn(tx)
	if err != nil {
		return err
	}
	for d := range named {
		if tx.Bucket(objectBucket).Get(blockKey(d)) == nil {
			return fmt.Errorf("block %s is not there", d)
		}
	}
	return nil
}

// checkValue finds what is wrong with the value at a key among the objects.
func checkValue(key, value []byte) error {
	if d, ok := isBlock(key); ok {
		if DigestOf(value) != d {
			return fmt.Errorf("block %q has other bytes", string(d))
		}
		return nil
	}
	if !json.Valid(value) {
		return fmt.Errorf("object %q is not JSON", key)
	}
	return nil
}
