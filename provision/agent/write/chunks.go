// SPDX-License-Identifier: Apache-2.0

package write

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
)

// refetches is how often a chunk that is corrupt on the wire is fetched again.
const refetches = 5

// maxPacked bounds one compressed chunk: zstd never makes 4 MiB much larger.
const maxPacked = manifest.ChunkSize + 64<<10

// piece is a chunk on its way.
type piece struct {
	index  int
	packed []byte
}

// stream fetches the image in order, in one request as long as the connection
// holds, and writes it. Fetching runs ahead of unpacking by a few chunks.
func (j *job) stream(ctx context.Context) error {
	j.progress("write", 0)
	wanted, err := j.wanted(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	pieces := make(chan piece, 2)
	group.Go(func() error {
		defer close(pieces)
		return j.fetch(ctx, wanted, pieces)
	})
	for range j.workers() {
		group.Go(func() error { return j.put(ctx, pieces) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := j.dev.Sync(); err != nil {
		return &wire.PartError{Part: wire.PartDisk, Err: err}
	}
	return nil
}

// wanted zeroes the chunks of zeroes and returns the others, in order, less what
// a write that was cut off has put down already.
func (j *job) wanted(ctx context.Context) ([]int, error) {
	var wanted []int
	for i, c := range j.image.Chunks {
		off := int64(i) * manifest.ChunkSize
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		switch {
		case c.Zero():
			if err := j.dev.Zero(off, c.Plain); err != nil {
				return nil, refused(i, err)
			}
		case j.resume && j.same(i) == nil:
		default:
			wanted = append(wanted, i)
			continue
		}
		j.progress("write", c.Plain)
	}
	return wanted, nil
}

// fetch reads the wanted chunks and hands them on. After any trouble it goes on
// at the chunk that it was at.
func (j *job) fetch(ctx context.Context, wanted []int, pieces chan<- piece) error {
	p := retrier{Writer: j.Writer}
	for len(wanted) > 0 {
		done, err := j.fetchRun(ctx, wanted, pieces)
		if done > 0 {
			p.reset()
		}
		wanted = wanted[done:]
		if err == nil {
			continue
		}
		if err := p.again(ctx, "image", err); err != nil {
			return &wire.PartError{Part: wire.PartStream, Err: fmt.Errorf("chunk %d of %d: %w", wanted[0], len(j.image.Chunks), err)}
		}
	}
	return nil
}

// fetchRun reads chunks that follow one another in the blob, in one request, and
// returns how many it has handed on.
func (j *job) fetchRun(ctx context.Context, wanted []int, pieces chan<- piece) (done int, err error) {
	run, end := j.neighbours(wanted)
	r, err := j.fetcher(j.params.BlobURL).open(ctx, j.image.Chunks[wanted[0]].Offset, end)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	buffered := bufio.NewReaderSize(r, 256<<10)
	for _, i := range run {
		packed := make([]byte, j.image.Chunks[i].Length)
		if _, err := io.ReadFull(buffered, packed); err != nil {
			return done, errkind.New(kindOr(err, errkind.Unreachable), "connection ended in chunk %d: %w", i, err)
		}
		select {
		case pieces <- piece{i, packed}:
			done++
		case <-ctx.Done():
			return done, context.Cause(ctx)
		}
	}
	return done, nil
}

// neighbours returns the chunks at the head of wanted that lie side by side in the
// blob, and where the last of them ends.
func (j *job) neighbours(wanted []int) (run []int, end int64) {
	end = j.image.Chunks[wanted[0]].Offset
	for n, i := range wanted {
		c := j.image.Chunks[i]
		if c.Offset != end {
			return wanted[:n], end
		}
		end += c.Length
	}
	return wanted, end
}

// kindOr returns the kind of err where it has one, else the given kind.
func kindOr(err error, other errkind.Kind) errkind.Kind {
	if kind := errkind.Of(err); kind != errkind.Internal {
		return kind
	}
	return other
}

// put unpacks, checks and writes pieces until there are no more.
func (j *job) put(ctx context.Context, pieces <-chan piece) error {
	for p := range pieces {
		err := j.unpacked(ctx, p, func(plain []byte) error { return j.putChunk(p.index, plain) })
		if err != nil {
			return err
		}
		plain := j.image.Chunks[p.index].Plain
		j.written.Add(plain)
		j.progress("write", plain)
	}
	return nil
}

// unpacked unpacks and checks a piece and calls do with the plain bytes, which
// are do's until it returns.
func (j *job) unpacked(ctx context.Context, p piece, do func(plain []byte) error) error {
	b, err := j.Buffers.take()
	if err != nil {
		return err
	}
	defer j.Buffers.give(b)
	if b.plain, err = j.unpack(ctx, b.decoder, p, b.plain); err != nil {
		return err
	}
	return do(b.plain)
}

// unpack returns the plain bytes of a piece. One whose bytes are not those of
// the manifest is fetched again, alone, before anything of it is written.
func (j *job) unpack(ctx context.Context, decoder *zstd.Decoder, p piece, buffer []byte) ([]byte, error) {
	c := j.image.Chunks[p.index]
	_, function := c.Digest()
	came := map[string]bool{} // digests of the packed bytes, one for each way of being damaged
	for try := 0; ; try++ {
		plain, err := decoder.DecodeAll(p.packed, buffer[:0])
		got := ""
		switch {
		case err != nil:
			got = fmt.Sprintf("%d packed bytes that do not unpack (%v)", len(p.packed), err)
		case c.Is(plain):
			return plain, nil
		default:
			got = fmt.Sprintf("%d bytes of %s %s", len(plain), function, c.SumOf(plain))
		}
		came[sum(p.packed)] = true
		if try == 0 {
			j.retried.Add(1)
		}
		if try == refetches {
			return nil, j.corrupt(p.index, got, len(came))
		}
		j.note(fmt.Sprintf("chunk %d was corrupt on the wire, fetched again", p.index))
		if p.packed, err = j.fetchOne(ctx, p.index); err != nil {
			return nil, err
		}
	}
}

// corrupt is the error of a chunk whose bytes were wrong at every try. ways is in how
// many ways they were: damage that is always the same lies in the image, or is done
// by something that rewrites the stream; damage that varies is done on the way.
func (j *job) corrupt(index int, got string, ways int) error {
	c := j.image.Chunks[index]
	want, function := c.Digest()
	alike := "the same wrong bytes every time"
	if ways > 1 {
		alike = fmt.Sprintf("wrong in %d different ways", ways)
	}
	return &wire.PartError{Part: wire.PartChunk, Err: errkind.New(errkind.Corrupt,
		"chunk %d of %d of the image came corrupt %d times (fetched again %d times, %s): expected %d bytes of %s %s, got %s",
		index, len(j.image.Chunks), refetches+1, refetches, alike, c.Plain, function, want, got).
		Do("Run `ironrail image verify`; if the image is good, look at the cabling and the memory between the controller and the node.")}
}

// fetchOne fetches one chunk as it lies in the blob.
func (j *job) fetchOne(ctx context.Context, index int) ([]byte, error) {
	c := j.image.Chunks[index]
	packed := make([]byte, c.Length)
	err := j.retry(ctx, fmt.Sprintf("chunk %d", index), func() error {
		r, err := j.fetcher(j.params.BlobURL).open(ctx, c.Offset, c.Offset+c.Length)
		if err != nil {
			return err
		}
		defer r.Close()
		if _, err = io.ReadFull(r, packed); err != nil {
			return errkind.New(kindOr(err, errkind.Unreachable), "connection ended: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, &wire.PartError{Part: wire.PartStream, Err: err}
	}
	return packed, nil
}

// putChunk writes a chunk, around the marker in the first one.
func (j *job) putChunk(index int, plain []byte) error {
	off := int64(index) * manifest.ChunkSize
	if index == 0 && !j.unmarked {
		const end = disk.MarkerOffset + disk.MarkerSize
		if len(plain) < end || !disk.AllZero(plain[disk.MarkerOffset:end]) {
			return errkind.New(errkind.Invalid, "the image has data where the install marker belongs, at bytes %d to %d", disk.MarkerOffset, end)
		}
		if _, err := j.dev.WriteAt(plain[:disk.MarkerOffset], 0); err != nil {
			return refused(index, err)
		}
		plain, off = plain[end:], end
	}
	if _, err := j.dev.WriteAt(plain, off); err != nil {
		return refused(index, err)
	}
	return nil
}

// refused is the error of a disk that does not take a chunk.
func refused(index int, err error) error {
	return &wire.PartError{Part: wire.PartDisk, Err: errkind.New(errkind.Mismatch, "write chunk %d: %w", index, err).
		Do("The disk does not take data; look at its health and replace it.")}
}

// sum returns the SHA-256 of b in hex.
func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
