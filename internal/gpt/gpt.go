// SPDX-License-Identifier: Apache-2.0

// Package gpt reads a GUID partition table (UEFI specification, section 5.3) and
// grows it onto a larger disk: the backup table moves to the end of the disk and
// one partition takes the room. A table for sectors of 512 bytes can be moved onto
// a disk with sectors of 4096. Everything else, GUIDs, names, attributes and the
// boot code in the protective MBR, stays as it was, byte for byte, which is why
// no library that rebuilds tables is used. The bytes are not trusted.
package gpt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
)

// Sector is the size in bytes of the logical sectors that ironrail's images are
// made for; Sector4K is that of the other disks that there are (4Kn). See Move.
const (
	Sector   = 512
	Sector4K = 4096
)

// Align is the alignment in bytes of the end of a grown partition.
const Align = 1 << 20

const (
	signature  = "EFI PART"
	headerSize = 92
	maxEntries = 1024
)

// errNone means that there is no GUID partition table.
var errNone = errors.New("no GUID partition table")

// Partition is one entry that is in use.
type Partition struct {
	Number int    // from 1
	Type   string // GUID, lower case
	GUID   string // lower case
	Name   string // as it stands there: text from outside
	First  uint64 // sector
	Last   uint64 // sector, inclusive
	Sector int64  // bytes of one
}

// Offset returns where the partition starts, in bytes.
func (p Partition) Offset() int64 { return int64(p.First) * p.Sector }

// Size returns the size of the partition in bytes.
func (p Partition) Size() int64 { return int64(p.Last-p.First+1) * p.Sector }

// Table is one partition table, with the raw bytes that it was read from.
type Table struct {
	header  []byte // headerSize bytes of the primary or the backup header
	entries []byte
	size    int // bytes of one entry
	sector  int64
	sectors uint64
	moved   bool // from sectors of another size: see Move
	Backup  bool // read from the backup: the primary is damaged or gone
}

// Read reads the table of a disk of the given size in bytes: the primary one,
// or the backup at the end when the primary is not valid. It knows tables for
// sectors of either size, whatever the disk has: Table.Sector tells. An error that
// is not errNone means that the disk does not read.
func Read(r io.ReaderAt, size int64) (*Table, error) {
	if size < 68*Sector {
		return nil, errNone
	}
	var failed error
	for _, backup := range []bool{false, true} {
		for _, sector := range []int64{Sector, Sector4K} {
			sectors := uint64(size / sector)
			lba := uint64(1)
			if backup {
				lba = sectors - 1
			}
			t, err := readAt(r, lba, sector, sectors)
			if err == nil {
				t.Backup = backup
				return t, nil
			}
			if failed == nil || errors.Is(failed, errNone) && !errors.Is(err, errNone) {
				failed = err
			}
		}
	}
	return nil, failed
}

// Sector returns the bytes of the sectors that the table is made for.
func (t *Table) Sector() int64 { return t.sector }

// readAt reads a header at a sector and its entries, and checks both sums. A header
// names the sector that it stands at, so one for sectors of another size is not
// taken for one of this.
func readAt(r io.ReaderAt, lba uint64, sector int64, sectors uint64) (*Table, error) {
	h := make([]byte, headerSize)
	if _, err := r.ReadAt(h, int64(lba)*sector); err != nil {
		return nil, fmt.Errorf("read partition table: %w", err)
	}
	if string(h[:8]) != signature {
		return nil, errNone
	}
	if n := binary.LittleEndian.Uint32(h[12:]); n != headerSize || headerSum(h) != binary.LittleEndian.Uint32(h[16:]) {
		return nil, fmt.Errorf("%w: the header's checksum is wrong", errNone)
	}
	count, size := binary.LittleEndian.Uint32(h[80:]), binary.LittleEndian.Uint32(h[84:])
	start := binary.LittleEndian.Uint64(h[72:])
	if count == 0 || count > maxEntries || size < 128 || size > 1024 || size%8 != 0 || start < 2 || start >= sectors || binary.LittleEndian.Uint64(h[24:]) != lba {
		return nil, fmt.Errorf("%w: the header is not plausible", errNone)
	}
	entries := make([]byte, count*size)
	if _, err := r.ReadAt(entries, int64(start)*sector); err != nil {
		return nil, fmt.Errorf("read partition entries: %w", err)
	}
	if crc32.ChecksumIEEE(entries) != binary.LittleEndian.Uint32(h[88:]) {
		return nil, fmt.Errorf("%w: the checksum of the entries is wrong", errNone)
	}
	return &Table{header: h, entries: entries, size: int(size), sector: sector, sectors: sectors}, nil
}

// headerSum returns the checksum of a header, taken with its own field as zero.
func headerSum(h []byte) uint32 {
	b := bytes.Clone(h[:headerSize])
	clear(b[16:20])
	return crc32.ChecksumIEEE(b)
}

// Partitions returns the entries in use, by number.
func (t *Table) Partitions() []Partition {
	var out []Partition
	for i := 0; (i+1)*t.size <= len(t.entries); i++ {
		e := t.entry(i + 1)
		if bytes.Equal(e[:16], make([]byte, 16)) {
			continue
		}
		p := Partition{
			Number: i + 1, Type: formatGUID(e[:16]), GUID: formatGUID(e[16:32]), Name: decodeName(e[56:128]),
			First: binary.LittleEndian.Uint64(e[32:]), Last: binary.LittleEndian.Uint64(e[40:]),
			Sector: t.sector,
		}
		if p.First <= p.Last && p.Last < 1<<51 { // in bytes it fits into 63 bits
			out = append(out, p)
		}
	}
	return out
}

// EFISystem is the type of an EFI system partition.
const EFISystem = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"

// GUID returns the GUID of a partition in use as it stands in the table.
func (t *Table) GUID(number int) [16]byte { return [16]byte(t.entry(number)[16:32]) }

// Last returns the partition that lies last on the disk: the one that can grow.
func (t *Table) Last() (Partition, bool) {
	all := t.Partitions()
	if len(all) == 0 {
		return Partition{}, false
	}
	return slices.MaxFunc(all, func(a, b Partition) int {
		if a.First < b.First {
			return -1
		}
		return 1
	}), true
}

// entry returns the raw entry of a partition number.
func (t *Table) entry(number int) []byte { return t.entries[(number-1)*t.size : number*t.size] }

// formatGUID prints the mixed-endian form of appendix A of the specification.
func formatGUID(b []byte) string {
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint16(b[4:]),
		binary.LittleEndian.Uint16(b[6:]), b[8:10], b[10:16])
}

// decodeName decodes a partition's name, 36 UTF-16 units.
func decodeName(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	text, _, _ := strings.Cut(string(utf16.Decode(units)), "\x00")
	return text
}
