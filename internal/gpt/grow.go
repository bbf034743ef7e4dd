// SPDX-License-Identifier: Apache-2.0

package gpt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// Rest asks Grow for all the room that there is.
const Rest = -1

// mostEntries is what the entries may take, bytes: the usual 128 of 128.
const mostEntries = 128 * 128

// Move makes the table one for sectors of another size, on a disk of size bytes:
// every partition stays at its bytes. One that ends within a sector of the new size
// takes the rest of it, which no other can have; one that begins within one is an
// error. The change is in memory until Write.
func (t *Table) Move(sector, size int64) error {
	if sector == t.sector {
		return nil
	}
	all := t.Partitions()
	for _, p := range all {
		if p.Offset()%sector != 0 {
			return fmt.Errorf("partition %d begins at byte %d, which is not a multiple of %d, the size of the disk's sectors", p.Number, p.Offset(), sector)
		}
	}
	for _, p := range all {
		e := t.entry(p.Number)
		binary.LittleEndian.PutUint64(e[32:], uint64(p.Offset()/sector))
		binary.LittleEndian.PutUint64(e[40:], uint64((p.Offset()+p.Size()-1)/sector))
	}
	t.sector, t.sectors, t.moved = sector, uint64(size/sector), true
	binary.LittleEndian.PutUint64(t.header[40:], 2+t.entrySectors())
	return nil
}

// entrySectors is how many sectors the entries take.
func (t *Table) entrySectors() uint64 {
	return (uint64(len(t.entries)) + uint64(t.sector) - 1) / uint64(t.sector)
}

// Grow moves the table's backup to the end of the disk and, when size is not 0,
// makes the last partition size bytes large, or as large as it can be for Rest.
// A partition is never made smaller: a smaller size leaves it. The change is in
// memory until Write.
func (t *Table) Grow(size int64) error {
	last, ok := t.Last()
	if !ok {
		return fmt.Errorf("partition table without a partition")
	}
	if len(t.entries) > mostEntries {
		return fmt.Errorf("partition table has room for more than the usual 128 partitions")
	}
	usable := t.sectors - 1 - t.entrySectors() - 1 // last sector before the backup entries
	if last.Last > usable {
		return fmt.Errorf("partition %d ends at sector %d; the disk has room up to sector %d", last.Number, last.Last, usable)
	}
	align := uint64(Align / t.sector)
	end := (usable+1)/align*align - 1
	if size > 0 {
		want := last.First + uint64((size+t.sector-1)/t.sector) - 1
		if want > usable {
			return fmt.Errorf("partition %d is to have %d bytes; the disk has room for %d", last.Number, size, int64(usable-last.First+1)*t.sector)
		}
		end = want
	}
	if size != 0 && end > last.Last {
		binary.LittleEndian.PutUint64(t.entry(last.Number)[40:], end)
	}
	binary.LittleEndian.PutUint64(t.header[48:], usable)
	return nil
}

// disk is what a table is written to.
type disk interface {
	io.ReaderAt
	io.WriterAt
}

// Write puts the table down: the backup first, then the primary, so that a cut
// at any point leaves one valid table. Syncing is the caller's work. The header of
// a table that was moved from smaller sectors goes: whoever finds it would believe
// it.
func (t *Table) Write(w disk) error {
	backup := t.sectors - 1
	if err := t.put(w, backup, 1, backup-t.entrySectors()); err != nil {
		return err
	}
	if err := t.put(w, 1, backup, 2); err != nil {
		return err
	}
	if t.moved && t.sector > Sector {
		if _, err := w.WriteAt(make([]byte, t.sector-Sector), Sector); err != nil {
			return fmt.Errorf("write partition table: %w", err)
		}
	}
	return t.protect(w)
}

// put writes the entries, then the header that makes them valid.
func (t *Table) put(w io.WriterAt, lba, other, entries uint64) error {
	h := make([]byte, t.sector)
	copy(h, t.header)
	binary.LittleEndian.PutUint64(h[24:], lba)
	binary.LittleEndian.PutUint64(h[32:], other)
	binary.LittleEndian.PutUint64(h[72:], entries)
	binary.LittleEndian.PutUint32(h[88:], crc32.ChecksumIEEE(t.entries))
	binary.LittleEndian.PutUint32(h[16:], headerSum(h))
	if _, err := w.WriteAt(t.entries, int64(entries)*t.sector); err != nil {
		return fmt.Errorf("write partition entries: %w", err)
	}
	if _, err := w.WriteAt(h, int64(lba)*t.sector); err != nil {
		return fmt.Errorf("write partition table: %w", err)
	}
	return nil
}

// protect sets the size in the protective MBR (UEFI, table 5.4): without it
// some firmware and tools call the table damaged. Boot code stays.
func (t *Table) protect(w disk) error {
	mbr := make([]byte, Sector)
	if _, err := w.ReadAt(mbr, 0); err != nil {
		return fmt.Errorf("read protective MBR: %w", err)
	}
	if mbr[510] != 0x55 || mbr[511] != 0xAA || mbr[446+4] != 0xEE {
		return nil // not a protective MBR: not ours to change
	}
	binary.LittleEndian.PutUint32(mbr[446+12:], uint32(min(t.sectors-1, 0xFFFFFFFF)))
	if _, err := w.WriteAt(mbr, 0); err != nil {
		return fmt.Errorf("write protective MBR: %w", err)
	}
	return nil
}
