// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// Compaction is what a compaction did, or would do.
type Compaction struct {
	Before   int64    `json:"bytes_before"`
	After    int64    `json:"bytes_after"`     // 0 when it was not done
	Runs     []string `json:"runs"`            // that are kept whole, the oldest first
	First    uint64   `json:"first"`           // the oldest record that is kept
	Records  uint64   `json:"records_dropped"` // before it
	Effects  int      `json:"effects_dropped"` // settled ones of runs that are not kept
	Groups   int      `json:"groups_dropped"`  // frozen members of plans that ended
	boundary map[string]bool
}

// keep is what a rewrite takes over. The zero value takes everything.
type keep struct {
	first    uint64                       // the oldest record
	objects  func(key, value []byte) bool // nil: all
	versions uint64                       // is added to the number of the last version
	// change returns an object's value as it is kept, with the version that it has;
	// nil: as it is.
	change func(key, value []byte) ([]byte, error)
}

// Plan finds what compacting to the last runs would drop. The journal of those
// runs stays whole, and so does that of every run of an unfinished plan. Nodes,
// steps, facts, holds, plans and effects in doubt stay whatever their age.
func (b *Bolt) planCompaction(ctx context.Context, runs int) (c Compaction, err error) {
	last, left, err := lastRun(ctx, b)
	if err != nil {
		return c, err
	}
	type begun struct {
		seq uint64
		run Run
	}
	var all []begun
	mark := []byte(`"kind":"` + string(RunStarted) + `"`)
	err = b.view(ctx, func(tx *bbolt.Tx) error {
		return tx.Bucket(journalBucket).ForEach(func(k, v []byte) error {
			if !bytes.Contains(v, mark) {
				return nil
			}
			r, err := b.record(k, v)
			if err != nil {
				return damagedError(b.path, err)
			}
			var run Run
			if r.Kind == RunStarted && json.Unmarshal(r.Data, &run) == nil {
				all = append(all, begun{r.Seq, run})
			}
			return nil
		})
	})
	if err != nil {
		return c, err
	}
	from := max(len(all)-runs, 0)
	for i, x := range all {
		if left && x.run.Plan == last.Plan {
			from = min(from, i)
		}
	}
	c.First, c.boundary = b.info.First, map[string]bool{last.ID: true}
	if from > 0 {
		c.First = all[from].seq
	}
	for _, x := range all[from:] {
		c.Runs, c.boundary[x.run.ID] = append(c.Runs, x.run.ID), true
	}
	c.Records = c.First - b.info.First
	return c, b.countDropped(ctx, &c, last, left)
}

// countDropped counts the objects that keeps does not keep.
func (b *Bolt) countDropped(ctx context.Context, c *Compaction, last Run, left bool) error {
	keeps := c.keeps(last, left)
	return b.view(ctx, func(tx *bbolt.Tx) error {
		c.Before = tx.Size()
		return tx.Bucket(objectBucket).ForEach(func(k, raw []byte) error {
			_, value, err := b.object(k, raw)
			switch {
			case err != nil:
				return damagedError(b.path, err)
			case keeps(k, value):
			case string(kindOf(k)) == effectKind:
				c.Effects++
			default:
				c.Groups++
			}
			return nil
		})
	})
}

// keeps reports which objects stay.
func (c *Compaction) keeps(last Run, left bool) func(key, value []byte) bool {
	return func(key, value []byte) bool {
		switch string(kindOf(key)) {
		case effectKind:
			var e struct{ Run string }
			return !settledEffect(value) || json.Unmarshal(value, &e) != nil || c.boundary[e.Run]
		case frozenKind:
			of, _, _ := strings.Cut(keyOf(key).Name, "/") // its value may lie in blocks
			return left && of == last.Plan
		}
		return true
	}
}

// Compact writes the state at path anew, without what the last runs do not need
// and without free pages. Nobody has it open. With dry nothing is written.
func Compact(ctx context.Context, path string, runs int, dry bool) (c Compaction, err error) {
	old, err := OpenReadOnly(path)
	if err != nil {
		return c, err
	}
	defer old.Close()
	if err := old.CheckMirror(false); err != nil {
		return c, err
	}
	if c, err = old.planCompaction(ctx, max(runs, 1)); err != nil || dry {
		return c, err
	}
	last, left, err := lastRun(ctx, old)
	if err != nil {
		return c, err
	}
	next := path + ".next"
	if err := old.rewrite(next, keep{first: c.First, objects: c.keeps(last, left)}); err != nil {
		return c, err
	}
	p, err := VerifyFile(ctx, next)
	if err == nil {
		err = os.Rename(next, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		_ = os.Remove(next)
		return c, fmt.Errorf("state: compact %s: %w", path, FullDisk(err))
	}
	c.After, c.Runs = p.Bytes, slices.Clip(c.Runs)
	return c, nil
}
