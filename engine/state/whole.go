// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/internal/errkind"
)

// EachChange gives all that the file has to f, as changes that make another store the same:
// each within the limits of a batch, blocks first, and the last one with Fence and Version.
// The file is not written meanwhile, and what is given is good until f returns.
func (b *Bolt) EachChange(ctx context.Context, f func(Change) error) error {
	c := changes{give: f}
	var version uint64
	err := b.view(ctx, func(tx *bbolt.Tx) error {
		objects := tx.Bucket(objectBucket)
		version = objects.Sequence()
		return objects.ForEach(func(k, raw []byte) error {
			v, value, err := b.object(k, raw)
			if err != nil {
				return damagedError(b.path, err)
			}
			if err := c.room(len(k) + len(value)); err != nil {
				return err
			}
			if _, is := isBlock(k); is {
				c.next.Blocks = append(c.next.Blocks, value)
			} else {
				c.next.Objects = append(c.next.Objects, Object{keyOf(k), v, value})
			}
			return nil
		})
	})
	if err == nil {
		err = b.Read(ctx, b.info.First, func(r Record) error {
			batch := Batch{Records: []Record{r}}
			err := c.room(batch.Size())
			c.next.Records = append(c.next.Records, r)
			return err
		})
	}
	if err != nil {
		return err
	}
	c.next.Fence, c.next.Version = b.current(), version
	return f(c.next)
}

// changes gathers what fits together.
type changes struct {
	next    Change
	n, size int // of next
	give    func(Change) error
}

// room makes room for one more of so many bytes.
func (c *changes) room(size int) error {
	var err error
	if c.n == MaxEntries || c.n > 0 && c.size+size > MaxBatch {
		err = c.give(c.next)
		c.next, c.n, c.size = Change{}, 0, 0
	}
	c.n, c.size = c.n+1, c.size+size
	return err
}

// Last returns the number of the newest record.
func (b *Bolt) Last(ctx context.Context) (last uint64, err error) {
	err = b.view(ctx, func(tx *bbolt.Tx) error {
		last = tx.Bucket(journalBucket).Sequence()
		return nil
	})
	return last, err
}

// Digest is that of all that a state holds, whatever file it lies in: of what Export prints
// without the size of the file.
func (b *Bolt) Digest(ctx context.Context) (string, error) {
	p, err := b.CountContents(ctx)
	if err != nil {
		return "", err
	}
	p.Bytes = 0
	sum := sha256.New()
	if err := b.export(ctx, sum, p); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// MakeOriginal makes a mirror a state of its own, which is at no other place.
func MakeOriginal(path string) error {
	return remark(path, opening{mirror: true}, func(m *bbolt.Bucket) error { return m.Delete(metaMirror) })
}

// MakeMirror makes a state file a mirror of the state that was made of it elsewhere: it can be read,
// and nothing writes it any more but what follows that state.
func MakeMirror(path string) error {
	return remark(path, opening{}, func(m *bbolt.Bucket) error { return m.Put(metaMirror, []byte{}) })
}

func remark(path string, as opening, mark func(*bbolt.Bucket) error) error {
	b, err := openFile(path, as)
	if err != nil {
		return err
	}
	err = guardFaults(path, func() error {
		return b.db.Update(func(tx *bbolt.Tx) error {
			return errors.Join(mark(tx.Bucket(metaBucket)), sealMeta(tx))
		})
	})
	if err = errors.Join(err, b.Close()); err != nil {
		return fmt.Errorf("state: mark %s: %w", path, FullDisk(err))
	}
	return nil
}

// InstallFile verifies the file at from and puts it in the place of the one at path, which stays
// beside it under the name kept. At every moment path is one or the other.
func InstallFile(ctx context.Context, from, path, kept string) (Contents, error) {
	p, err := VerifyFile(ctx, from)
	if err != nil {
		return Contents{}, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		kept = ""
	}
	return p, installFile(from, path, kept)
}

// sameState refuses two files of which one is not what the other was made of.
func sameState(ctx context.Context, a, b *Bolt) error {
	x, err := a.Digest(ctx)
	if err != nil {
		return err
	}
	y, err := b.Digest(ctx)
	if err != nil || x == y {
		return err
	}
	return errkind.New(errkind.Mismatch, "state: %s has digest %s, and %s has %s: the copy is not what it was made of", a.path, x, b.path, y).
		Do("Nothing was changed. Run the command again.")
}

// CompareFiles refuses two files that do not hold the same state, record for record.
func CompareFiles(ctx context.Context, a, b string) error {
	x, err := OpenReadOnly(a)
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := OpenReadOnly(b)
	if err != nil {
		return err
	}
	defer y.Close()
	return sameState(ctx, x, y)
}
