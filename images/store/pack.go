// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/images/internal/meter"
	"github.com/ironrail/ironrail/internal/manifest"
)

// packers is how many chunks are compressed at once. The reader may be as many
// ahead again, so memory stays below 40 MiB.
const packers = 2

// piece is one chunk on its way from the disk to the blob.
type piece struct {
	plain  []byte
	packed []byte        // empty for a chunk of zeroes
	sum    string        // of plain, as manifest.Sum; empty for a chunk of zeroes
	ready  chan struct{} // closed when packed and sum are set
}

// packDisk cuts the disk into chunks, compresses them into the blob, and describes
// them in m. The blob is synced.
func packDisk(ctx context.Context, m *manifest.Manifest, disk, blob string, say func(string)) error {
	in, err := os.Open(disk)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	return pack(ctx, m, in, info.Size(), blob, say)
}

// PackTree writes the archive of a root file system as a blob of chunks and their list,
// manifest.TreeBlob and manifest.TreeFile, into dir: further files of an image. About size
// bytes come.
func PackTree(ctx context.Context, archive io.Reader, size int64, dir string, say func(string)) error {
	m := manifest.Manifest{Format: manifest.Format, Name: manifest.TreeBlob}
	if err := pack(ctx, &m, archive, size, filepath.Join(dir, manifest.TreeBlob), say); err != nil {
		return err
	}
	return writeList(m, filepath.Join(dir, manifest.TreeFile))
}

// PackLoaders does the same with a disk of loaders, as manifest.LoadersBlob and
// manifest.LoadersFile.
func PackLoaders(ctx context.Context, disk, dir string, say func(string)) error {
	m := manifest.Manifest{Format: manifest.Format, Name: manifest.LoadersBlob}
	if err := packDisk(ctx, &m, disk, filepath.Join(dir, manifest.LoadersBlob), say); err != nil {
		return err
	}
	return writeList(m, filepath.Join(dir, manifest.LoadersFile))
}

// writeList writes a list of chunks, without a signature.
func writeList(m manifest.Manifest, path string) error {
	list, _, err := m.Marshal()
	if err != nil {
		return err
	}
	return os.WriteFile(path, list, 0o644)
}

// pack cuts what comes into chunks; size is about how much.
func pack(ctx context.Context, m *manifest.Manifest, in io.Reader, size int64, blob string, say func(string)) error {
	out, err := os.OpenFile(blob, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	jobs, order := make(chan *piece, packers), make(chan *piece, 2*packers)
	whole := sha256.New()
	group.Go(func() error { return cutDisk(ctx, io.TeeReader(in, whole), jobs, order) })
	for range packers {
		group.Go(func() error { return compressPieces(jobs) })
	}
	group.Go(func() error { return assembleBlob(ctx, m, out, order, size, say) })
	if err := errors.Join(group.Wait(), out.Sync(), out.Close()); err != nil {
		return err
	}
	m.SHA256 = hex.EncodeToString(whole.Sum(nil))
	return nil
}

// cutDisk reads chunks and hands each to a compressor and, in order, to the writer.
func cutDisk(ctx context.Context, in io.Reader, jobs, order chan<- *piece) error {
	defer close(jobs)
	defer close(order)
	for {
		p := &piece{plain: make([]byte, manifest.ChunkSize), ready: make(chan struct{})}
		n, err := io.ReadFull(in, p.plain)
		if err == io.EOF {
			return nil
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return err
		}
		p.plain = p.plain[:n]
		for _, to := range []chan<- *piece{order, jobs} {
			select {
			case to <- p:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// compressPieces works through jobs. Each chunk is one frame of its own, made by one
// goroutine, so that the same disk gives the same blob.
func compressPieces(jobs <-chan *piece) error {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return err
	}
	defer enc.Close()
	for p := range jobs {
		if !isZero(p.plain) {
			p.sum = manifest.Sum(p.plain)
			p.packed = enc.EncodeAll(p.plain, make([]byte, 0, len(p.plain)/2))
		}
		close(p.ready)
	}
	return nil
}

// assembleBlob writes the chunks in their order and fills in the manifest.
func assembleBlob(ctx context.Context, m *manifest.Manifest, out io.Writer, order <-chan *piece, size int64, say func(string)) error {
	far := meter.Meter{Say: say, What: "compressed", Total: size}
	for p := range order {
		select {
		case <-p.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		c := manifest.Chunk{Length: int64(len(p.packed)), Plain: int64(len(p.plain)), BLAKE3: p.sum}
		if !c.Zero() {
			c.Offset = m.Blob
			if _, err := out.Write(p.packed); err != nil {
				return err
			}
		}
		m.Chunks = append(m.Chunks, c)
		m.Size, m.Blob = m.Size+c.Plain, m.Blob+c.Length
		far.Add(c.Plain)
	}
	return nil
}

// isZero compares with itself, shifted by one: the run time's memequal is far
// faster than a loop.
func isZero(b []byte) bool {
	return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
}
