// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/ironrail/ironrail/internal/errkind"
)

// qcow2 reads the disk of a qcow2 image, version 2 or 3 (QEMU's docs/interop/qcow2).
// What its file does not hold is an error and never zeroes: an image that was cut off
// is not taken for a whole one.
type qcow2 struct {
	in       io.ReaderAt
	file     int64 // bytes of the image file
	size     int64 // bytes of the disk
	bits     uint  // of an offset within a cluster
	isZstd   bool  // compressed clusters are of zstd, not of deflate
	l1       []uint64
	l2       []uint64 // the table that was read last
	l2Offset uint64
}

// Bits of entries.
const (
	qcowOffset     = 0x00fffffffffffe00
	qcowCompressed = 1 << 62
	qcowZero       = 1
)

// Incompatible features that change nothing for a reader: the image was not closed (its
// reference counts may be wrong), and clusters may be compressed by zstd. All others
// (a file of its own for the data, longer entries) do.
const (
	qcowDirty       = 1 << 0
	qcowCompression = 1 << 3
)

func corruptQcow2(format string, args ...any) error {
	return errkind.New(errkind.Corrupt, "the qcow2 image cannot be read: "+format, args...).
		Do("Look at it with `qemu-img check` and fetch it again.")
}

// openQcow2 reads the header and the first table of an image file of size bytes.
func openQcow2(in io.ReaderAt, size int64) (*qcow2, error) {
	h := make([]byte, 112)
	if n, err := in.ReadAt(h, 0); n < 72 {
		return nil, corruptQcow2("its header is cut off: %w", err)
	}
	u32, u64 := binary.BigEndian.Uint32, binary.BigEndian.Uint64
	q := &qcow2{in: in, file: size, size: int64(u64(h[24:])), bits: uint(u32(h[20:]))}
	version := u32(h[4:])
	switch {
	case version != 2 && version != 3:
		return nil, errkind.New(errkind.Unsupported, "the qcow2 image is of version %d; 2 and 3 are read", version)
	case u64(h[8:]) != 0:
		return nil, errkind.New(errkind.Refused, "the qcow2 image has a backing file, and is nothing without it").Do("Make it whole: qemu-img convert -O qcow2 OLD NEW")
	case u32(h[32:]) != 0:
		return nil, errkind.New(errkind.Unsupported, "the qcow2 image is encrypted").Do("Decrypt it: qemu-img convert")
	case q.bits < 9 || q.bits > 21:
		return nil, corruptQcow2("clusters of 2^%d bytes", q.bits)
	case q.size <= 0 || q.size > maxDisk:
		return nil, errkind.New(errkind.Refused, "the qcow2 image is a disk of %d bytes; at most %d GiB are taken", q.size, int64(maxDisk)>>30)
	}
	if version == 3 {
		if features := u64(h[72:]) &^ (qcowDirty | qcowCompression); features != 0 {
			return nil, errkind.New(errkind.Unsupported, "the qcow2 image has features (%#x) that are not read: a data file of its own, long entries, or that it is corrupt", features).
				Do("Make a plain one: qemu-img convert -O qcow2 OLD NEW")
		}
		q.isZstd = u64(h[72:])&qcowCompression != 0 && h[104] == 1
	}
	return q, q.readL1(u64(h[40:]), u32(h[36:]))
}

// readL1 reads the first table, which need not be longer than the disk is large.
func (q *qcow2) readL1(offset uint64, entries uint32) error {
	perEntry := int64(1) << (2*q.bits - 3) // bytes of the disk
	need := (q.size + perEntry - 1) / perEntry
	if int64(entries) < need {
		return corruptQcow2("its first table has %d entries, and its disk needs %d", entries, need)
	}
	var err error
	q.l1, err = q.table(offset, need)
	return err
}

// table reads a table of entries.
func (q *qcow2) table(offset uint64, entries int64) ([]uint64, error) {
	p, err := q.bytes(offset, 8*entries)
	if err != nil {
		return nil, err
	}
	t := make([]uint64, entries)
	for i := range t {
		t[i] = binary.BigEndian.Uint64(p[8*i:])
	}
	return t, nil
}

// bytes reads from the image file, all or nothing.
func (q *qcow2) bytes(offset uint64, n int64) ([]byte, error) {
	if offset > uint64(q.file) || n > q.file-int64(offset) {
		return nil, corruptQcow2("it is cut off: %d bytes at byte %d are referred to, and the file ends at byte %d", n, offset, q.file)
	}
	p := make([]byte, n)
	if got, err := q.in.ReadAt(p, int64(offset)); int64(got) < n {
		return nil, corruptQcow2("byte %d: %w", offset, err)
	}
	return p, nil
}

// cluster returns what the disk holds at offset, which begins a cluster; nil: zeroes.
func (q *qcow2) cluster(offset int64) ([]byte, error) {
	n := offset >> q.bits
	perTable := int64(1) << (q.bits - 3)
	at := q.l1[n/perTable] & qcowOffset
	if at == 0 {
		return nil, nil
	}
	if at != q.l2Offset {
		t, err := q.table(at, perTable)
		if err != nil {
			return nil, err
		}
		q.l2, q.l2Offset = t, at
	}
	entry := q.l2[n%perTable]
	switch {
	case entry&qcowCompressed != 0:
		return q.unpack(entry)
	case entry&qcowOffset == 0 || entry&qcowZero != 0:
		return nil, nil
	}
	return q.bytes(entry&qcowOffset, q.length(offset)) // the file may end with the disk
}

// length is that of the cluster at offset: the last one may be shorter.
func (q *qcow2) length(offset int64) int64 { return min(1<<q.bits, q.size-offset) }

// unpack reads a compressed cluster: its place, and how many sectors of 512 bytes it
// goes on beyond the one that it begins in.
func (q *qcow2) unpack(entry uint64) ([]byte, error) {
	x := 62 - (q.bits - 8)
	at := entry & (1<<x - 1)
	sectors := int64(entry & (qcowCompressed - 1) >> x)
	n := (sectors+1)*512 - int64(at%512)
	if at < uint64(q.file) {
		n = min(n, q.file-int64(at)) // the last sector of the file may be shorter
	}
	packed, err := q.bytes(at, n)
	if err != nil {
		return nil, err
	}
	plain := io.Reader(flate.NewReader(bytes.NewReader(packed)))
	if q.isZstd {
		z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		plain = z
	}
	p := make([]byte, 1<<q.bits)
	if _, err := io.ReadFull(plain, p); err != nil {
		return nil, corruptQcow2("a compressed cluster at byte %d: %w", at, errors.Join(err))
	}
	return p, nil
}
