// SPDX-License-Identifier: Apache-2.0

// Package metaltest makes disk images for tests of virtual nodes.
package metaltest

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"unicode/utf16"

	"github.com/google/uuid"

	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/provision/agent/disk"
)

const (
	smallest  = 5 << 20 // has room for the partitions, bytes
	blockSize = 4 << 10 // of content
)

// MakeImage makes the bytes of a small disk image that a virtual node can write, boot
// and be judged by: a GUID partition table with the partitions of a Debian image
// (BIOS boot, EFI system, root), file systems that begin as real ones do, and
// content that belongs to seed. A size below 5 MiB is made 5 MiB; it is rounded up
// to whole MiB.
func MakeImage(size int64, seed uint64) []byte {
	b := make([]byte, (max(size, smallest)+1<<20-1)>>20<<20)
	const mib = 1 << 20 / gpt.Sector
	last := uint64(len(b)/gpt.Sector - 1)
	parts := []entry{
		{"BIOS boot", "21686148-6449-6e6f-744e-656564454649", 1 * mib, 2*mib - 1},
		{"EFI system", "c12a7328-f81f-11d2-ba4b-00a0c93ec93b", 2 * mib, 3*mib - 1},
		{"root", "0fc63daf-8483-4772-8e79-3d69d8477de4", 3 * mib, (last-33)/mib*mib - 1},
	}
	fillBlocks(b[1<<20:], seed)
	writeTable(b, parts, seed)
	esp := b[2<<20:]
	copy(esp[43:], "ESP        FAT16   ")
	root := b[3<<20:]
	clear(root[:8<<10])
	copy(root[1024+56:], "\x53\xef") // of ext4
	root[1024+96] = 0x40             // extents: it is an ext4
	copy(root[1024+120:], "ironrail-root")
	copy(b[510:], "\x55\xaa")
	return b
}

// fillBlocks writes a quarter of the blocks with noise; the rest compresses well, as in
// real images.
func fillBlocks(b []byte, seed uint64) {
	noise := rand.NewPCG(seed, 1)
	for off := 0; off+blockSize <= len(b); off += blockSize {
		if off/blockSize%4 == 0 {
			for i := 0; i < blockSize; i += 8 {
				binary.LittleEndian.PutUint64(b[off+i:], noise.Uint64())
			}
		} else {
			binary.LittleEndian.PutUint64(b[off:], seed+uint64(off))
		}
	}
}

// entry is one partition; sectors are inclusive.
type entry struct {
	name, kind  string
	first, last uint64
}

// writeTable writes a GUID partition table (UEFI, section 5.3) at both ends of b.
func writeTable(b []byte, parts []entry, seed uint64) {
	const count, size = 128, 128
	entries := make([]byte, count*size)
	for i, p := range parts {
		e := entries[i*size:]
		kind := uuid.MustParse(p.kind) // the first three fields are little-endian
		slices.Reverse(kind[0:4])
		slices.Reverse(kind[4:6])
		slices.Reverse(kind[6:8])
		copy(e, kind[:])
		binary.LittleEndian.PutUint64(e[16:], seed)
		binary.LittleEndian.PutUint64(e[24:], uint64(i)+1)
		binary.LittleEndian.PutUint64(e[32:], p.first)
		binary.LittleEndian.PutUint64(e[40:], p.last)
		for j, c := range utf16.Encode([]rune(p.name)) {
			binary.LittleEndian.PutUint16(e[56+2*j:], c)
		}
	}
	sectors := uint64(len(b)) / gpt.Sector
	const entrySectors = count * size / gpt.Sector
	put := func(at, other, list uint64) {
		h := make([]byte, gpt.Sector)
		copy(h, "EFI PART\x00\x00\x01\x00\x5c\x00\x00\x00")
		for off, v := range map[int]uint64{24: at, 32: other, 40: 2 + entrySectors, 48: sectors - 2 - entrySectors, 56: seed, 64: 1, 72: list} {
			binary.LittleEndian.PutUint64(h[off:], v)
		}
		for off, v := range map[int]uint32{80: count, 84: size, 88: crc32.ChecksumIEEE(entries)} {
			binary.LittleEndian.PutUint32(h[off:], v)
		}
		binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(h[:92]))
		copy(b[at*gpt.Sector:], h)
		copy(b[list*gpt.Sector:], entries)
	}
	clear(b[uint64(len(b))-(1+entrySectors)*gpt.Sector:])
	put(1, sectors-1, 2)
	put(sectors-1, 1, sectors-1-entrySectors)
	b[446+4] = 0xEE
	binary.LittleEndian.PutUint32(b[446+8:], 1)
	binary.LittleEndian.PutUint32(b[446+12:], uint32(sectors-1))
	clear(b[disk.MarkerOffset : disk.MarkerOffset+disk.MarkerSize])
}
