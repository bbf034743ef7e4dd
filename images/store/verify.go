// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/ironrail/ironrail/images/internal/meter"
	"github.com/ironrail/ironrail/internal/manifest"
)

// Verify reads the whole image and compares it with its manifest: signature,
// every chunk, the disk as a whole, the further files, and the vendor's signature of a
// list of checksums. The first difference is returned as errkind.Corrupt with the chunk's
// number, counted from 0.
func (s *Store) Verify(ctx context.Context, digest string) error {
	m, err := s.Manifest(digest)
	if err != nil {
		return err
	}
	if err := s.verifyBlob(ctx, digest, m); err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := s.verifyFile(ctx, digest, f); err != nil {
			return err
		}
	}
	if err := s.verifyVendor(ctx, digest, m.Vendor); err != nil {
		return damagedError(digest, "%w", err)
	}
	return nil
}

func (s *Store) verifyBlob(ctx context.Context, digest string, m manifest.Manifest) error {
	f, err := os.Open(s.file(digest, BlobFile))
	if err != nil {
		return damagedError(digest, "%w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("image %s: %w", digest, err)
	}
	if info.Size() != m.Blob {
		return damagedError(digest, "the blob has %d bytes, not %d", info.Size(), m.Blob)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*manifest.ChunkSize))
	if err != nil {
		return err
	}
	defer dec.Close()
	v := chunkReader{dec: dec, whole: sha256.New(), zeroes: make([]byte, manifest.ChunkSize)}
	for i, c := range m.Chunks {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := v.check(f, c); errors.Is(err, errDiffers) {
			return damagedError(digest, "chunk %d at byte %d of the blob: %w", i, c.Offset, err)
		} else if err != nil {
			return fmt.Errorf("image %s: chunk %d: %w", digest, i, err)
		}
	}
	if got := hex.EncodeToString(v.whole.Sum(nil)); got != m.SHA256 {
		return damagedError(digest, "the disk has SHA-256 %s, not %s", got, m.SHA256)
	}
	return nil
}

// errDiffers is bytes that are not what was built, in contrast to bytes that
// cannot be read.
var errDiffers = errors.New("not the bytes that were built")

// chunkReader decompresses and hashes chunks, with its buffers kept.
type chunkReader struct {
	dec           *zstd.Decoder
	whole         hash.Hash
	packed, plain []byte
	zeroes        []byte
}

func (v *chunkReader) check(f io.ReaderAt, c manifest.Chunk) error {
	if c.Zero() {
		v.whole.Write(v.zeroes[:c.Plain])
		return nil
	}
	if c.Length > 2*manifest.ChunkSize {
		return fmt.Errorf("%w: %d bytes for one chunk", errDiffers, c.Length)
	}
	v.packed = append(v.packed[:0], make([]byte, c.Length)...)
	if _, err := f.ReadAt(v.packed, c.Offset); err != nil {
		return err
	}
	var err error
	if v.plain, err = v.dec.DecodeAll(v.packed, v.plain[:0]); err != nil {
		return fmt.Errorf("%w: %w", errDiffers, err)
	}
	if !c.Is(v.plain) {
		return errDiffers
	}
	v.whole.Write(v.plain)
	return nil
}

// ReadFile returns a small file of an image, compared with the manifest. One that the
// image does not have is fs.ErrNotExist.
func (s *Store) ReadFile(ctx context.Context, digest, name string) ([]byte, error) {
	m, err := s.Manifest(digest)
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(m.Files, func(f manifest.File) bool { return f.Name == name })
	if n < 0 {
		return nil, fmt.Errorf("image %s: %s: %w", digest, name, fs.ErrNotExist)
	}
	if err := s.verifyFile(ctx, digest, m.Files[n]); err != nil {
		return nil, err
	}
	return os.ReadFile(s.file(digest, name))
}

func (s *Store) verifyFile(ctx context.Context, digest string, want manifest.File) error {
	f, err := os.Open(s.file(digest, want.Name))
	if err != nil {
		return damagedError(digest, "%w", err)
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, meter.WithContext(ctx, f))
	if err != nil {
		return fmt.Errorf("image %s: %s: %w", digest, want.Name, err)
	}
	sum, err := hex.DecodeString(want.SHA256)
	if err != nil || n != want.Size || !bytes.Equal(sum, h.Sum(nil)) {
		return damagedError(digest, "file %s: %w", want.Name, errDiffers)
	}
	return nil
}
