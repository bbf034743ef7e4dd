// SPDX-License-Identifier: Apache-2.0

package write

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/provision/agent/disk"
)

// errDiffers means that the disk returns other bytes than the image has.
var errDiffers = errors.New("the disk returns other bytes than the image has")

// verify reads the whole image back from the disk, not from the cache. Every
// chunk has the digest of the signed manifest, so the image has the manifest's.
func (j *job) verify(ctx context.Context) error {
	began := time.Now()
	err := j.check(ctx, nil)
	j.verified = time.Since(began)
	if errors.Is(err, errDiffers) {
		return errkind.New(errkind.Corrupt, "%w", err).Do("The disk does not keep data; look at its health and replace it.")
	}
	return err
}

// check compares every chunk on the disk with the manifest, in order, several at
// a time, and returns the first difference.
func (j *job) check(ctx context.Context, patch func([]byte)) error {
	if err := j.dev.Forget(); err != nil {
		return err
	}
	j.progress("verify", 0)
	group, ctx := errgroup.WithContext(ctx)
	indexes := make(chan int)
	group.Go(func() error {
		defer close(indexes)
		for i := range j.image.Chunks {
			select {
			case indexes <- i:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for range j.workers() {
		group.Go(func() error {
			buffer := disk.Aligned(compareSize)
			for i := range indexes {
				if err := j.compare(i, buffer, patch); err != nil {
					return err
				}
				j.progress("verify", j.image.Chunks[i].Plain)
			}
			return nil
		})
	}
	return group.Wait()
}

// same reports whether a chunk stands on the disk as in the image.
func (j *job) same(index int) error { return j.compare(index, disk.Aligned(compareSize), nil) }

// compareSize is how much is read back at a time. The install marker lies in the
// first such piece of a disk, at its end.
const compareSize = disk.MarkerOffset + disk.MarkerSize

// compare reads a chunk from the disk, piece by piece, and compares it. The marker
// counts as the zeroes that the image has there; patch may put other bytes right
// in the first piece before that. buffer has compareSize bytes.
func (j *job) compare(index int, buffer []byte, patch func([]byte)) error {
	c := j.image.Chunks[index]
	hash, zero := c.Hash(), true
	for off := int64(0); off < c.Plain; off += compareSize {
		b := buffer[:min(c.Plain-off, compareSize)]
		if _, err := j.dev.ReadAt(b, int64(index)*manifest.ChunkSize+off); err != nil {
			return fmt.Errorf("read chunk %d: %w", index, err)
		}
		if index == 0 && off == 0 && len(b) == compareSize {
			j.asInImage(b, patch)
		}
		if zero = zero && disk.AllZero(b); zero && c.Zero() {
			continue
		}
		if c.Zero() {
			break
		}
		hash.Write(b)
	}
	if want, _ := c.Digest(); c.Zero() && zero || !c.Zero() && hex.EncodeToString(hash.Sum(nil)) == want {
		return nil
	}
	return fmt.Errorf("chunk %d, at byte %d: %w", index, int64(index)*manifest.ChunkSize, errDiffers)
}

// asInImage makes the first piece of a disk what it is in the image.
func (j *job) asInImage(b []byte, patch func([]byte)) {
	if j.unmarked {
		return
	}
	clear(b[disk.MarkerOffset:])
	if patch != nil {
		patch(b)
	}
}

// tableBytes is what a grown or moved partition table changes of the first chunk:
// the protective MBR, the header and 128 entries, for sectors of 4096 bytes.
const tableBytes = 6 * gpt.Sector4K

// tableFromImage returns a patch that puts the image's own partition table over
// the one that was grown.
func (j *job) tableFromImage(ctx context.Context) (func([]byte), error) {
	table, err := j.tableOfImage(ctx)
	return func(b []byte) { copy(b, table) }, err
}

// tableOfImage returns the bytes of the image that its partition table is in. It
// fetches the first chunk for them.
func (j *job) tableOfImage(ctx context.Context) (table []byte, err error) {
	packed, err := j.fetchOne(ctx, 0)
	if err != nil {
		return nil, err
	}
	err = j.unpacked(ctx, piece{0, packed}, func(first []byte) error {
		table = bytes.Clone(first[:min(tableBytes, len(first))])
		return nil
	})
	return table, err
}
