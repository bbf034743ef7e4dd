// SPDX-License-Identifier: Apache-2.0

package gpt

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf16"
)

// Types of partitions that ironrail makes, as Partition.Type has them (UEFI
// specification, table 5.7; uapi-group.org, Discoverable Partitions).
const (
	BIOSBoot        = "21686148-6449-6e6f-744e-656564454649"
	LinuxRAID       = "a19d880f-05fc-4d3b-a006-743f0f84911e"
	LinuxSwap       = "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"
	LinuxFilesystem = "0fc63daf-8483-4772-8e79-3d69d8477de4"
	LinuxLVM        = "e6d6d379-f507-44c2-a23c-238f2a3df928"
)

const (
	entryCount = 128
	entrySize  = 128
	longName   = 36 // UTF-16 units
)

// New makes a table of 128 entries for a disk of size bytes with sectors of the given
// size. Partitions lie where they say, in bytes as Offset and Size count with their own
// Sector, and do not overlap. Nothing is written before Write.
func New(size, sector int64, guid string, parts []Partition) (*Table, error) {
	t := &Table{header: make([]byte, headerSize), entries: make([]byte, entryCount*entrySize), size: entrySize, sector: sector, sectors: uint64(size / sector)}
	disk, err := parseGUID(guid)
	if err != nil {
		return nil, err
	}
	first, last := 2+t.entrySectors(), t.sectors-2-t.entrySectors()
	copy(t.header, signature)
	binary.LittleEndian.PutUint32(t.header[8:], 0x10000)
	binary.LittleEndian.PutUint32(t.header[12:], headerSize)
	binary.LittleEndian.PutUint64(t.header[40:], first)
	binary.LittleEndian.PutUint64(t.header[48:], last)
	copy(t.header[56:], disk[:])
	binary.LittleEndian.PutUint32(t.header[80:], entryCount)
	binary.LittleEndian.PutUint32(t.header[84:], entrySize)
	for i, p := range parts {
		if err := t.add(p, first, last); err != nil {
			return nil, err
		}
		for _, o := range parts[:i] {
			if p.Number == o.Number || p.Offset() < o.Offset()+o.Size() && o.Offset() < p.Offset()+p.Size() {
				return nil, fmt.Errorf("partitions %d (%s) and %d (%s) have one number or one place", p.Number, p.Name, o.Number, o.Name)
			}
		}
	}
	return t, nil
}

// add enters a partition, which lies between two sectors of the table's.
func (t *Table) add(p Partition, first, last uint64) error {
	if p.Number < 1 || p.Number > entryCount || p.Sector <= 0 || p.First > p.Last || p.Offset()%t.sector != 0 || p.Size()%t.sector != 0 {
		return fmt.Errorf("partition %d (%s) is not possible", p.Number, p.Name)
	}
	from, to := uint64(p.Offset()/t.sector), uint64((p.Offset()+p.Size())/t.sector)-1
	if from < first || to > last {
		return fmt.Errorf("partition %d (%s) lies at the sectors %d to %d; the disk has room from %d to %d", p.Number, p.Name, from, to, first, last)
	}
	kind, err := parseGUID(p.Type)
	if err != nil {
		return err
	}
	own, err := parseGUID(p.GUID)
	if err != nil {
		return err
	}
	name := utf16.Encode([]rune(p.Name))
	if len(name) > longName {
		return fmt.Errorf("partition name %q has more than %d characters", p.Name, longName)
	}
	e := t.entry(p.Number)
	copy(e, kind[:])
	copy(e[16:], own[:])
	binary.LittleEndian.PutUint64(e[32:], from)
	binary.LittleEndian.PutUint64(e[40:], to)
	for i, u := range name {
		binary.LittleEndian.PutUint16(e[56+2*i:], u)
	}
	return nil
}

// ProtectiveMBR returns the first sector of a disk of sectors of the table's, with boot
// code in front: the one partition keeps tools that know no GPT off the disk (UEFI
// specification, section 5.2.3).
func (t *Table) ProtectiveMBR(code []byte) []byte {
	b := make([]byte, Sector)
	copy(b[:440], code)
	copy(b[446:], []byte{0, 0, 2, 0, 0xEE, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0})
	binary.LittleEndian.PutUint32(b[446+12:], uint32(min(t.sectors-1, 0xFFFFFFFF)))
	b[510], b[511] = 0x55, 0xAA
	return b
}

// parseGUID reads what formatGUID prints.
func parseGUID(text string) (g [16]byte, err error) {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != 16 || len(text) != 36 {
		return g, fmt.Errorf("%q is no GUID", text)
	}
	for i, from := range []int{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15} {
		g[i] = b[from]
	}
	return g, nil
}
