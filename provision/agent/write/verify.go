package write

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/images/manifest"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/errkind"
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
		return errkind.New(errkind.Mismatch, "%w", err).Do("The disk does not keep data; look at its health and replace it.")
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
	for range workers() {
		group.Go(func() error {
			buffer := make([]byte, manifest.ChunkSize)
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
func (j *job) same(index int) error { return j.compare(index, make([]byte, manifest.ChunkSize), nil) }

// compare reads a chunk from the disk and compares it. The marker counts as the
// zeroes that the image has there; patch may put other bytes right before that.
func (j *job) compare(index int, buffer []byte, patch func([]byte)) error {
	c := j.image.Chunks[index]
	b := buffer[:c.Plain]
	if _, err := j.dev.ReadAt(b, int64(index)*manifest.ChunkSize); err != nil {
		return fmt.Errorf("read chunk %d: %w", index, err)
	}
	if index == 0 && len(b) >= disk.MarkerOffset+disk.MarkerSize {
		clear(b[disk.MarkerOffset : disk.MarkerOffset+disk.MarkerSize])
		if patch != nil {
			patch(b)
		}
	}
	if c.Zero() && disk.AllZero(b) || !c.Zero() && sum(b) == c.SHA256 {
		return nil
	}
	return fmt.Errorf("chunk %d, at byte %d: %w", index, int64(index)*manifest.ChunkSize, errDiffers)
}

// tableBytes is what a grown partition table changes of the first chunk: the
// protective MBR, the header and 128 entries.
const tableBytes = 34 * 512

// tableFromImage returns a patch that puts the image's own partition table over
// the one that was grown. It fetches the first chunk for it.
func (j *job) tableFromImage(ctx context.Context) (func([]byte), error) {
	packed, err := j.fetchOne(ctx, 0)
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*manifest.ChunkSize))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	first, err := j.unpack(ctx, decoder, piece{0, packed}, nil)
	if err != nil {
		return nil, err
	}
	return func(b []byte) { copy(b[:tableBytes], first) }, nil
}
