// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Mirror is a local copy of a state that lies elsewhere, in the form of a state file: with
// the numbers, versions, fence and lineage of the original. OpenReadOnly reads it as any
// other state; Open refuses it. Its methods are safe for concurrent use.
type Mirror struct {
	file     *Bolt  // refuses appends and claims
	position string // owned by who holds file.commit
}

// Change is what a mirror takes over together.
type Change struct {
	Records []Record // with their numbers, from the one after the last of the mirror
	Objects []Object // a nil Value: the object was deleted
	Blocks  [][]byte
	Dropped []Digest // blocks that were swept
	// Fence, Version and Position are those of the original after it: number of the last
	// claim, the highest version of an object, and where the original stood, in its own
	// words. Zero or "": as before.
	Fence, Version uint64
	Position       string
}

// CreateMirror makes an empty mirror of a state at path, in the place of what is there.
func CreateMirror(path string, of Info) (*Mirror, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("state: mirror: %w", err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, openError(path, FullDisk(err))
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if err := makeTables(tx, of, 0); err != nil {
			return err
		}
		return errors.Join(tx.Bucket(metaBucket).Put(metaMirror, []byte{}), sealMeta(tx))
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, fmt.Errorf("state: create %s: %w", path, FullDisk(err))
	}
	return OpenMirror(path)
}

// OpenMirror opens a mirror for writing. The error is os.ErrNotExist when there is none,
// and of kind refused when the file is a state of its own, or in use. One whose Info has
// another format than Format can be read, and is then to be made anew.
func OpenMirror(path string) (*Mirror, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("state: mirror: %w", err)
	}
	b, err := openFile(path, opening{mirror: true})
	if err != nil {
		return nil, err
	}
	b.readOnly = true
	at, _, err := b.MirrorPosition()
	if err == nil {
		err = b.CheckMirror(true)
	}
	if err != nil {
		_ = b.db.Close()
		return nil, err
	}
	return &Mirror{file: b, position: at}, nil
}

// otherKind refuses a mirror where an original is due, or the other way round.
func otherKind(path string, isMirror bool) error {
	if isMirror {
		return errkind.New(errkind.Refused, "state: %s is a copy of a state that several controllers share", path).
			Do("Change the state where it lies: the copy follows.")
	}
	return errkind.New(errkind.Refused, "state: %s is a state of its own, not a copy of one", path).
		Do("`ironrail state move etcd` moves it. Where it is given up, move the file away: the copy is made anew.")
}

// MirrorPosition returns the position of a file that is a mirror; false: it is not one.
func (b *Bolt) MirrorPosition() (at string, is bool, err error) {
	err = guardFaults(b.path, func() error {
		return b.db.View(func(tx *bbolt.Tx) error {
			raw := tx.Bucket(metaBucket).Get(metaMirror)
			at, is = string(raw), raw != nil
			return nil
		})
	})
	return at, is, err
}

// CheckMirror refuses a mirror where an original is due, or the other way round.
func (b *Bolt) CheckMirror(due bool) error {
	_, is, err := b.MirrorPosition()
	if err == nil && is != due {
		err = otherKind(b.path, is)
	}
	return err
}

// Reader reads the mirror, between two changes.
func (m *Mirror) Reader() Reader { return m.file }

// Snapshot writes the mirror to w, as it stands now.
func (m *Mirror) Snapshot(ctx context.Context, w io.Writer) error { return m.file.Snapshot(ctx, w) }

// Close gives the file back.
func (m *Mirror) Close() error { return m.file.Close() }

// Position is where the original stood after the last change; "": nothing was taken over.
func (m *Mirror) Position() string {
	m.file.commit.Lock()
	defer m.file.commit.Unlock()
	return m.position
}

// Apply takes a change over, whole or not at all.
func (m *Mirror) Apply(c Change) error {
	b := m.file
	b.commit.Lock()
	defer b.commit.Unlock()
	if b.broken != nil {
		return b.broken
	}
	kinds := maps.Clone(b.kinds)
	err := guardFaults(b.path, func() error {
		return b.db.Update(func(tx *bbolt.Tx) error { return c.write(tx, kinds) })
	})
	if err != nil {
		b.broken = fmt.Errorf("state: mirror: %w", FullDisk(err))
		return b.broken
	}
	b.kinds = kinds
	if c.Position != "" {
		m.position = c.Position
	}
	return nil
}

func (c *Change) write(tx *bbolt.Tx, kinds tally) error {
	if err := c.writeRecords(tx.Bucket(journalBucket)); err != nil {
		return err
	}
	if err := c.writeBlocks(tx.Bucket(objectBucket), kinds); err != nil {
		return err
	}
	if err := c.writeObjects(tx.Bucket(objectBucket), kinds); err != nil {
		return err
	}
	meta := tx.Bucket(metaBucket)
	err := meta.Put(metaKinds, kinds.encode())
	if c.Fence != 0 {
		err = errors.Join(err, meta.Put(metaFence, fmt.Append(nil, c.Fence)))
	}
	if c.Position != "" {
		err = errors.Join(err, meta.Put(metaMirror, []byte(c.Position)))
	}
	return errors.Join(err, sealMeta(tx))
}

func (c *Change) writeRecords(journal *bbolt.Bucket) error {
	journal.FillPercent = 0.95 // keys only rise
	for _, r := range c.Records {
		if last := journal.Sequence(); last != 0 && r.Seq != last+1 {
			return fmt.Errorf("record %d comes after record %d", r.Seq, last)
		}
		if err := journal.SetSequence(r.Seq); err != nil {
			return err
		}
		body, err := json.Marshal(r)
		if err == nil {
			err = journal.Put(seqKey(r.Seq), sealRecord(seqKey(r.Seq), body))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Change) writeBlocks(table *bbolt.Bucket, kinds tally) error {
	for _, b := range c.Blocks {
		key := blockKey(DigestOf(b))
		if table.Get(key) == nil {
			kinds.add(key)
		}
		if err := table.Put(key, sealObject(key, c.Fence, b)); err != nil {
			return err
		}
	}
	for _, d := range c.Dropped {
		key := blockKey(d)
		if table.Get(key) == nil {
			continue
		}
		kinds.drop(key)
		if err := table.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

func (c *Change) writeObjects(objects *bbolt.Bucket, kinds tally) error {
	for _, o := range c.Objects {
		key := []byte(o.Key.String())
		was := objects.Get(key) != nil
		var err error
		switch {
		case o.Value != nil:
			if !was {
				kinds.add(key)
			}
			err = objects.Put(key, sealObject(key, o.Version, o.Value))
		case was:
			kinds.drop(key)
			err = objects.Delete(key)
		}
		if err != nil {
			return err
		}
	}
	return objects.SetSequence(max(objects.Sequence(), c.Version))
}
