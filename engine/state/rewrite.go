// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// rewriteBatch is how many bytes a rewrite puts into one transaction.
const rewriteBatch = 16 << 20

// rewriting is a new state file in the making, from an old one that stays as it
// is. Versions and numbers are those of the old file.
type rewriting struct {
	from *Bolt
	to   *bbolt.DB
	keep
	kinds tally
	kept  map[Digest]bool   // blocks that are written
	plans map[string][]byte // values of plans that are kept and were cut into blocks, by key
}

// rewrite writes what is kept of b to a new file at path, in this format, and
// makes it durable. b is not written meanwhile.
func (b *Bolt) rewrite(path string, k keep) (err error) {
	_ = os.Remove(path) // of a rewrite that died
	to, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoGrowSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return fmt.Errorf("state: rewrite: %w", FullDisk(err))
	}
	k.first = max(k.first, b.info.First)
	r := &rewriting{from: b, to: to, keep: k, kinds: tally{}, plans: map[string][]byte{}, kept: map[Digest]bool{}}
	err = guardFaults(b.path, func() error { return b.db.View(r.run) })
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		_ = os.Remove(path)
		return FullDisk(err)
	}
	return nil
}

func (r *rewriting) run(old *bbolt.Tx) error {
	i := r.from.info
	i.First = r.first
	if err := r.to.Update(func(tx *bbolt.Tx) error { return makeTables(tx, i, r.from.current()) }); err != nil {
		return err
	}
	c := old.Bucket(journalBucket).Cursor()
	k, v := c.Seek(seqKey(r.first))
	if err := r.copy(journalBucket, k, v, c.Next, r.record); err != nil {
		return err
	}
	if err := r.blocks(old); err != nil {
		return err
	}
	c = old.Bucket(objectBucket).Cursor()
	k, v = c.First()
	if err := r.copy(objectBucket, k, v, c.Next, r.object); err != nil {
		return err
	}
	return r.to.Update(func(tx *bbolt.Tx) error {
		return errors.Join(
			tx.Bucket(journalBucket).SetSequence(old.Bucket(journalBucket).Sequence()),
			tx.Bucket(objectBucket).SetSequence(old.Bucket(objectBucket).Sequence()+r.versions),
			tx.Bucket(metaBucket).Put(metaKinds, r.kinds.encode()), sealMeta(tx))
	})
}

// copy takes what next returns, until the end, through change into a table.
func (r *rewriting) copy(table, k, v []byte, next func() ([]byte, []byte), change func(k, v []byte) ([]byte, error)) error {
	for k != nil {
		err := r.to.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket(table)
			b.FillPercent = 0.95 // they come in order
			for n := 0; k != nil && n < rewriteBatch; k, v = next() {
				out, err := change(k, v)
				if err != nil {
					return damagedError(r.from.path, err)
				}
				if out == nil {
					continue
				}
				if err := b.Put(k, out); err != nil {
					return err
				}
				n += len(k) + len(out)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// record checks a record on its way; nothing is copied that nobody could read.
func (r *rewriting) record(k, v []byte) ([]byte, error) {
	v, err := liftValue(r.from.info.Format, k, v, pickRecord)
	if err == nil {
		_, err = openRecord(k, v)
	}
	return v, err
}

// object checks an object on its way; nil when it is not kept.
func (r *rewriting) object(k, v []byte) ([]byte, error) {
	if _, ok := isBlock(k); ok {
		return nil, nil // blocks takes over those that are named
	}
	v, err := liftValue(r.from.info.Format, k, v, pickObject)
	var version uint64
	var value []byte
	if err == nil {
		version, value, err = openObject(k, v)
	}
	if err != nil || r.objects != nil && !r.objects(k, value) {
		return nil, err
	}
	r.kinds.add(k)
	if cut := r.plans[string(k)]; cut != nil {
		return sealObject(k, version, cut), nil
	}
	if r.change == nil {
		return v, nil
	}
	if value, err = r.change(k, value); err != nil {
		return nil, err
	}
	return sealObject(k, version, value), nil
}

// installFile puts the file at from in the place of the one at path, which stays
// beside it under the name kept, unless that is "". At every moment path is one or
// the other.
func installFile(from, path, kept string) error {
	if kept != "" {
		if err := os.Remove(kept); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("state: %w", err)
		}
		if err := os.Link(path, kept); err != nil {
			return fmt.Errorf("state: keep %s: %w", path, FullDisk(err))
		}
		if err := syncDir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	if err := os.Rename(from, path); err != nil {
		return fmt.Errorf("state: %w", FullDisk(err))
	}
	return syncDir(filepath.Dir(path))
}
