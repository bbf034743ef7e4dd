// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/ironrail/ironrail/images/internal/meter"
	"github.com/ironrail/ironrail/internal/errkind"
)

// maxDisk bounds a disk: what unpacks to more is no operating system.
const maxDisk = 1 << 40

// block is what is looked at at once: one of zeroes is left out.
const block = 64 << 10

// Magic numbers: RFC 1952, the .xz file format 1.2, RFC 8878, QEMU's docs/interop/qcow2.
var (
	magicGzip  = []byte{0x1f, 0x8b}
	magicXZ    = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
	magicZstd  = []byte{0x28, 0xb5, 0x2f, 0xfd}
	magicQcow2 = []byte{'Q', 'F', 'I', 0xfb}
)

// unpack makes the plain disk of the source. What it is, its first bytes say, not
// by its name.
func (b *builder) unpack(ctx context.Context) error {
	f, err := os.Open(b.source)
	if err != nil {
		return err
	}
	defer f.Close()
	plain, err := b.decompress(ctx, f)
	if err != nil {
		return err
	}
	defer plain.Close()
	head := make([]byte, 16)
	if _, err := plain.ReadAt(head, 0); err != nil {
		return errkind.New(errkind.Invalid, "%s is no disk image: it has less than 16 bytes", b.recipe.Source)
	}
	if bytes.HasPrefix(head, magicQcow2) {
		return b.convert(ctx, plain)
	}
	info, err := plain.Stat()
	if err != nil {
		return err
	}
	b.disk, b.size = plain.Name(), info.Size()
	return nil
}

// decompress returns the file itself where it is not compressed.
func (b *builder) decompress(ctx context.Context, f *os.File) (*os.File, error) {
	in := bufio.NewReaderSize(meter.WithContext(ctx, f), 1<<20)
	head, _ := in.Peek(len(magicXZ))
	var plain io.Reader
	var err error
	switch {
	case bytes.HasPrefix(head, magicGzip):
		plain, err = gzip.NewReader(in)
	case bytes.HasPrefix(head, magicXZ):
		plain, err = xz.NewReader(in)
	case bytes.HasPrefix(head, magicZstd):
		var z *zstd.Decoder
		if z, err = zstd.NewReader(in, zstd.WithDecoderMaxWindow(1<<31)); err == nil {
			defer z.Close()
			plain = z
		}
	default:
		return os.Open(f.Name())
	}
	if err != nil {
		return nil, errkind.New(errkind.Corrupt, "%s cannot be unpacked: %w", b.recipe.Source, err)
	}
	out, err := os.Create(b.path("plain"))
	if err != nil {
		return nil, err
	}
	if err := b.copySparse(out, plain); err != nil {
		out.Close()
		return nil, fmt.Errorf("%s: %w", b.recipe.Source, err)
	}
	return out, nil
}

// copySparse copies to the end and leaves zeroes out.
func (b *builder) copySparse(out *os.File, in io.Reader) error {
	m := &meter.Meter{Say: b.say, What: "unpacked"}
	p, off := make([]byte, block), int64(0)
	for {
		n, err := readBlock(in, p)
		if !isZero(p[:n]) {
			if _, err := out.WriteAt(p[:n], off); err != nil {
				return err
			}
		}
		if off += int64(n); off > maxDisk {
			return errkind.New(errkind.Refused, "it unpacks to more than %d GiB", int64(maxDisk)>>30)
		}
		m.Add(int64(n))
		switch {
		case errors.Is(err, io.EOF):
			return out.Truncate(off)
		case err != nil:
			return errkind.New(errkind.Corrupt, "it cannot be unpacked beyond byte %d: %w", off, err)
		}
	}
}

// readBlock fills p; io.EOF is a good end, also of a block that is not full.
func readBlock(in io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = in.Read(p[n:])
		n += more
	}
	return n, err
}

// isZero reports whether at most a cluster is nothing but zeroes.
func isZero(p []byte) bool { return bytes.Equal(p, zeroCluster[:len(p)]) }

// convert makes the plain disk of a qcow2 image. One with a backing file is refused: it
// would read files of this controller that nobody named.
func (b *builder) convert(ctx context.Context, in *os.File) (err error) {
	info, err := in.Stat()
	if err != nil {
		return err
	}
	img, err := openQcow2(in, info.Size())
	if err != nil {
		return err
	}
	b.disk, b.size = b.path("disk"), img.size
	out, err := os.Create(b.disk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	m := &meter.Meter{Say: b.say, What: "converted", Total: b.size}
	for off := int64(0); off < b.size; off += 1 << img.bits {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p, err := img.cluster(off)
		if err != nil {
			return err
		}
		n := img.length(off)
		if p != nil && !isZero(p[:n]) {
			if _, err := out.WriteAt(p[:n], off); err != nil {
				return err
			}
		}
		m.Add(n)
	}
	return out.Truncate(b.size)
}

// zeroCluster is as large as a cluster of qcow2 may be.
var zeroCluster [2 << 20]byte
