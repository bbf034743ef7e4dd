// SPDX-License-Identifier: Apache-2.0

// Package lvm reads what LVM2 has on a physical volume: the volume group that it belongs
// to and where the logical volumes lie on it, without the programs and without device
// mapper. It writes nothing.
//
// The format is that of lib/format_text/layout.h of LVM2: a label in one of the first four
// sectors, which leads to metadata areas; in each a header, which leads to the text of the
// newest metadata in a ring.
package lvm

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// sector is what LVM2 counts in, bytes, whatever the disk has.
const sector = 512

// Group is a volume group as one of its physical volumes has it.
type Group struct {
	Name       string // "": the physical volume belongs to none
	ExtentSize int64  // bytes
	Extents    int64  // of this physical volume
	Whole      bool   // it has no other physical volume
	Volumes    []Volume
}

// Volume is a logical volume.
type Volume struct {
	Name    string
	Extents int64
	At      int64 // where its first byte lies on the physical volume; -1: not on this one, or not as it is
}

// Places in the label, the header of the physical volume behind it, and the header of a
// metadata area.
const (
	labelMagic = "LABELONE"
	labelType  = "LVM2 001"
	mdaMagic   = " LVM2 x[5A%r0N*>"
	mdaHeader  = sector
	mostText   = 16 << 20 // a group of thousands of volumes has some MiB
	mostAreas  = 16
)

// Read reads what a device of size bytes has. ok is false for one that is no physical
// volume; of one whose metadata cannot be read there is an error.
func Read(r io.ReaderAt, size int64) (g Group, ok bool, err error) {
	head := make([]byte, 4*sector)
	if _, err := r.ReadAt(head, 0); err != nil {
		return g, false, nil
	}
	for at := 0; at < len(head); at += sector {
		b := head[at : at+sector]
		if string(b[:8]) == labelMagic && string(b[24:32]) == labelType && sum(b[20:]) == binary.LittleEndian.Uint32(b[16:]) {
			g, err = readGroup(r, size, b)
			return g, true, err
		}
	}
	return g, false, nil
}

// sum is the checksum of LVM2: CRC-32 with a start of its own, and not inverted.
func sum(b []byte) uint32 {
	const start = 0xf597a6cf
	return ^crc32.Update(^uint32(start), crc32.IEEETable, b)
}

var errCorrupt = errkind.New(errkind.Corrupt, "the metadata of its volume group cannot be read")

// readGroup reads the newest metadata that a label leads to.
func readGroup(r io.ReaderAt, size int64, label []byte) (g Group, err error) {
	at := binary.LittleEndian.Uint32(label[20:])
	if at > sector-40-2*16 {
		return g, errCorrupt
	}
	header := label[at:]
	id := string(header[:32])
	areas, found := areasOf(header[40:]), false
	newest := int64(-1)
	for _, a := range areas {
		text, err := readText(r, size, a)
		if err != nil {
			continue // the other copy may do
		}
		found = true
		if len(text) == 0 {
			continue
		}
		if is, sequence, err := parseGroup(text, id); err == nil && sequence > newest {
			g, newest = is, sequence
		} else if err != nil {
			found = false
		}
	}
	if newest < 0 && !found {
		return g, errCorrupt
	}
	return g, nil
}

// area is a range of a device, bytes.
type area struct{ at, size int64 }

// areasOf are the metadata areas: the second of two lists that end with zeroes, of which
// the first are areas of data.
func areasOf(b []byte) (areas []area) {
	lists := 0
	for ; len(b) >= 16 && lists < 2 && len(areas) < mostAreas; b = b[16:] {
		at, size := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		switch {
		case at == 0:
			lists++
		case lists == 1 && at < 1<<62 && size < 1<<62:
			areas = append(areas, area{int64(at), int64(size)})
		}
	}
	return areas
}

// readText reads the text of the newest metadata of an area; "": there is none yet.
func readText(r io.ReaderAt, size int64, a area) (string, error) {
	if a.size <= mdaHeader || a.at > size || a.size > size-a.at {
		return "", errCorrupt
	}
	h := make([]byte, mdaHeader)
	if _, err := r.ReadAt(h, a.at); err != nil {
		return "", err
	}
	if string(h[4:20]) != mdaMagic || sum(h[4:]) != binary.LittleEndian.Uint32(h) {
		return "", errCorrupt
	}
	at, length, want := binary.LittleEndian.Uint64(h[40:]), binary.LittleEndian.Uint64(h[48:]), binary.LittleEndian.Uint32(h[56:])
	switch {
	case at == 0:
		return "", nil
	case at < mdaHeader || at >= uint64(a.size) || length > mostText || length > uint64(a.size)-mdaHeader:
		return "", errCorrupt
	}
	text, err := readRing(r, a, int64(at), int64(length))
	if err != nil {
		return "", err
	}
	if sum(text) != want {
		return "", errCorrupt
	}
	return strings.TrimRight(string(text), "\x00"), nil
}

// readRing reads bytes of the ring of an area, which goes on at its beginning.
func readRing(r io.ReaderAt, a area, at, length int64) ([]byte, error) {
	text := make([]byte, length)
	first := min(length, a.size-at)
	if _, err := r.ReadAt(text[:first], a.at+at); err != nil {
		return nil, err
	}
	if first == length {
		return text, nil
	}
	_, err := r.ReadAt(text[first:], a.at+mdaHeader)
	return text, err
}

// parseGroup reads the text of metadata, as the physical volume with an identifier sees it.
func parseGroup(text, id string) (g Group, sequence int64, err error) {
	all, err := parse(text)
	if err != nil {
		return g, 0, err
	}
	var group section
	for name, v := range all {
		if s, ok := v.(section); ok {
			g.Name, group = name, s
		}
	}
	sectors, sequence := group.number("extent_size"), group.number("seqno")
	if g.Name == "" || sectors <= 0 || sectors > 1<<32 || sequence < 0 {
		return g, 0, errCorrupt
	}
	g.ExtentSize = sectors * sector
	physical := group.section("physical_volumes")
	g.Whole = len(physical) == 1
	own, start := "", int64(0)
	for name := range physical {
		p := physical.section(name)
		if strings.ReplaceAll(p.text("id"), "-", "") == id {
			own, start, g.Extents = name, p.number("pe_start")*sector, p.number("pe_count")
		}
	}
	if own == "" || start < 0 || start > 1<<20 || g.Extents < 0 {
		return g, 0, errCorrupt
	}
	logical := group.section("logical_volumes")
	for _, name := range logical.names() {
		g.Volumes = append(g.Volumes, volumeOf(name, logical.section(name), own, start, g.ExtentSize))
	}
	return g, sequence, nil
}

// volumeOf reads a logical volume.
func volumeOf(name string, s section, own string, start, extent int64) Volume {
	v := Volume{Name: name, At: -1}
	for _, n := range s.names() {
		seg := s.section(n)
		if seg == nil {
			continue
		}
		v.Extents += max(0, seg.number("extent_count"))
		stripes := seg.list("stripes")
		if seg.number("start_extent") != 0 || seg.text("type") != "striped" || seg.number("stripe_count") != 1 || len(stripes) != 2 || stripes[0] != own {
			continue
		}
		if at, ok := stripes[1].(int64); ok && at >= 0 && at < 1<<62/extent-start {
			v.At = start + at*extent
		}
	}
	return v
}
