// SPDX-License-Identifier: Apache-2.0

package state

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/internal/errkind"
)

// readMeta reads what the file says about itself. Newer formats are refused
// before anything else of them is judged.
func (b *Bolt) readMeta(tx *bbolt.Tx, m *bbolt.Bucket) error {
	var minimum int
	if _, err := fmt.Sscanf(string(m.Get(metaFormat))+" "+string(m.Get(metaReader))+" "+string(m.Get(metaFence)),
		"%d %d %d", &b.info.Format, &minimum, &b.fence); err != nil {
		return damagedError(b.path, fmt.Errorf("its format is not readable: %w", err))
	}
	if err := checkFormat(b.path, b.info.Format, minimum, b.readOnly); err != nil {
		return err
	}
	b.info.Lineage = string(m.Get(metaLineage))
	created, err := time.Parse(time.RFC3339Nano, string(m.Get(metaCreated)))
	if err != nil || b.info.Lineage == "" {
		return damagedError(b.path, errors.New("it has no lineage or no date"))
	}
	b.info.Created, b.info.First = created, 1
	if b.info.Format < 2 {
		return nil
	}
	return b.readSealed(tx, m)
}

// checkFormat refuses a file that needs a newer reader, or writer.
func checkFormat(path string, format, minimum int, readOnly bool) error {
	if minimum > Format || format > Format && !readOnly {
		return errkind.New(errkind.Unsupported, "state: %s was written in format %d; this version knows %d", path, format, Format).
			Do("Use the newer ironrail that wrote it.")
	}
	if format < 1 {
		return damagedError(path, fmt.Errorf("its format is %d", format))
	}
	return nil
}

// readSealed reads what came with format 2.
func (b *Bolt) readSealed(tx *bbolt.Tx, m *bbolt.Bucket) (err error) {
	want := metaSumOf(m.Get, tx.Bucket(journalBucket).Sequence(), tx.Bucket(objectBucket).Sequence())
	if string(m.Get(metaSum)) != string(want) {
		return damagedError(b.path, errors.New("what it says about itself does not match its checksum"))
	}
	if b.info.First, err = strconv.ParseUint(string(m.Get(metaFirst)), 10, 64); err == nil {
		b.kinds, err = decodeTally(m.Get(metaKinds))
	}
	if err != nil {
		return damagedError(b.path, err)
	}
	return nil
}

func (b *Bolt) create() error {
	b.info = Info{Format: Format, Lineage: rand.Text(), Created: time.Now().UTC(), First: 1}
	err := b.db.Update(func(tx *bbolt.Tx) error { return makeTables(tx, b.info, 0) })
	if err != nil {
		return fmt.Errorf("state: create %s: %w", b.path, FullDisk(err))
	}
	return syncDir(filepath.Dir(b.path))
}

// makeTables makes the tables of a new file, which hold nothing yet.
func makeTables(tx *bbolt.Tx, i Info, fence uint64) error {
	for _, name := range [][]byte{metaBucket, journalBucket, objectBucket} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	m := tx.Bucket(metaBucket)
	return errors.Join(
		m.Put(metaFormat, fmt.Append(nil, Format)), m.Put(metaReader, fmt.Append(nil, Format)),
		m.Put(metaFence, fmt.Append(nil, fence)), m.Put(metaLineage, []byte(i.Lineage)),
		m.Put(metaCreated, []byte(i.Created.Format(time.RFC3339Nano))),
		m.Put(metaFirst, fmt.Append(nil, i.First)), m.Put(metaKinds, nil), sealMeta(tx))
}
