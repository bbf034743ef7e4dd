// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"
)

// writeMarker notes which appends a write has, for those without records: fence and ids,
// with spaces between them, sealed as a record.
func writeMarker(tx *bbolt.Tx, fence uint64, group []*pending) error {
	text := fmt.Append(nil, fence)
	for _, p := range group {
		if p.err == nil && len(p.batch.Records) == 0 {
			text = append(append(text, ' '), p.batch.ID...)
		}
	}
	return tx.Bucket(metaBucket).Put(metaLast, sealRecord(metaLast, text))
}

// Outcome reports whether an append was written.
func (b *Bolt) Outcome(ctx context.Context, f Fence, id string) (first uint64, done bool, err error) {
	err = b.view(ctx, func(tx *bbolt.Tx) error {
		if done, err = inMarker(tx, f, id); done || err != nil {
			return err
		}
		c := tx.Bucket(journalBucket).Cursor()
		for k, raw := c.Last(); k != nil; k, raw = c.Prev() {
			r, err := b.record(k, raw)
			switch {
			case err != nil:
				return damagedError(b.path, err)
			case r.Append == id && r.Fence == f.Number:
				first, done = binary.BigEndian.Uint64(k), true
				return nil
			case r.Append != "" && r.Fence < f.Number: // fences only rise
				return nil
			}
		}
		return nil
	})
	return first, done, err
}

// inMarker reports whether the last write had an append without records of that id.
func inMarker(tx *bbolt.Tx, f Fence, id string) (bool, error) {
	raw := tx.Bucket(metaBucket).Get(metaLast)
	if raw == nil {
		return false, nil
	}
	text, err := openRecord(metaLast, raw)
	if err != nil {
		return false, errors.New("state: what it says of its last write does not match its checksum")
	}
	words := strings.Fields(string(text))
	if words[0] != fmt.Sprint(f.Number) {
		return false, nil
	}
	for _, w := range words[1:] {
		if w == id {
			return true, nil
		}
	}
	return false, nil
}
