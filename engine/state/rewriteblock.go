// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"
)

// blocks takes over the blocks that a kept object names. A large plan of an older format is
// cut into blocks.
func (r *rewriting) blocks(old *bbolt.Tx) error {
	for _, kind := range BlockKinds {
		prefix := []byte(kind + "/")
		c := old.Bucket(objectBucket).Cursor()
		for k, raw := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, raw = c.Next() {
			_, value, err := r.from.object(k, raw)
			if err != nil {
				return damagedError(r.from.path, err)
			}
			if r.objects != nil && !r.objects(k, value) {
				continue
			}
			named, err := NamedBlocks(keyOf(k), value)
			if err != nil {
				return damagedError(r.from.path, err)
			}
			for _, d := range named {
				if err := r.block(old, d); err != nil {
					return err
				}
			}
			if len(named) == 0 && len(value) > inlinePlan {
				if err := r.cut(k, value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// block copies one block.
func (r *rewriting) block(old *bbolt.Tx, d Digest) error {
	block, err := readBlock(old, d)
	if err == nil && block == nil {
		err = fmt.Errorf("block %s is not there", d)
	}
	if err != nil {
		return damagedError(r.from.path, err)
	}
	if !r.kept[d] {
		_, err = r.put([][]byte{block})
	}
	return err
}

// put writes blocks to the new file.
func (r *rewriting) put(blocks [][]byte) ([]Digest, error) {
	out := make([]Digest, len(blocks))
	return out, r.to.Update(func(tx *bbolt.Tx) error {
		for i, b := range blocks {
			out[i] = DigestOf(b)
			if r.kept[out[i]] {
				continue
			}
			key := blockKey(out[i])
			r.kept[out[i]] = true
			r.kinds.add(key)
			if err := tx.Bucket(objectBucket).Put(key, sealObject(key, r.from.current(), b)); err != nil {
				return err
			}
		}
		return nil
	})
}

// cut cuts a plan or a fact that is one value into blocks.
func (r *rewriting) cut(k, value []byte) error {
	w := planWriter{put: r.put, packs: keyOf(k).Kind == planKind}
	err := cutPlan(value, planParts{head: w.addPart, steps: func(list []byte) error {
		cuts := cutList(list)
		if cuts == nil {
			return fmt.Errorf("the steps of %s are not readable", k)
		}
		for i := 1; i < len(cuts); i++ {
			if err := w.addStep(list[cuts[i-1] : cuts[i]-1]); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return damagedError(r.from.path, err)
	}
	list, err := w.end()
	if err != nil {
		return err
	}
	r.plans[string(k)], err = json.Marshal(list)
	return err
}
