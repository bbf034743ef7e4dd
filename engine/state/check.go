// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"

	"go.etcd.io/bbolt"
)

// Check reads everything: every checksum, every number of the journal, and that
// all of it can be decoded. The pages were walked over when the file was opened.
func (b *Bolt) Check() error {
	return guardFaults(b.path, func() error { return b.db.View(b.checkAll) })
}

func (b *Bolt) checkAll(tx *bbolt.Tx) error {
	journal, due := tx.Bucket(journalBucket), b.info.First
	err := journal.ForEach(func(k, v []byte) error {
		r, err := b.record(k, v)
		if err == nil && r.Seq != due {
			err = fmt.Errorf("record %d is where %d is due", r.Seq, due)
		}
		due++
		return err
	})
	if last := journal.Sequence(); err == nil && due != last+1 {
		err = fmt.Errorf("records %d to %d are not there", due, last)
	}
	if err != nil {
		return damagedError(b.path, err)
	}
	there := tally{}
	err = tx.Bucket(objectBucket).ForEach(func(k, raw []byte) error {
		_, value, err := b.object(k, raw)
		if err == nil {
			err = checkValue(k, value)
		}
		there.add(k)
		return err
	})
	if err == nil && b.info.Format >= 2 {
		err = b.kinds.differs(there)
	}
	if err == nil {
		err = b.checkBlocksIn(tx)
	}
	if err != nil {
		return damagedError(b.path, err)
	}
	return nil
}
