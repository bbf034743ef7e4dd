// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"encoding/binary"
	"errors"
	"io"
)

// Places in the superblock of md, version 1 (linux/raid/md_p.h).
const (
	mdMagic      = 0xa92b4efc
	mdOffset     = 4096 // of version 1.2
	mdArray      = 16
	mdLevel      = 72
	mdLayout     = 76
	mdChunk      = 88
	mdDisks      = 92
	mdDataOffset = 128
	mdNumber     = 160
	mdEvents     = 200
	mdMost       = 220
	mdRoles      = 256
	mdSize       = 4096
)

// member is the superblock of a member of an array, and its data.
type member struct {
	array  string // UUID
	level  int    // as md has it: 1, 10
	layout uint32 // of RAID 10: copies
	chunk  int64  // bytes
	disks  int    // of the array
	role   int    // which of them it is; -1: a spare, or failed
	events uint64 // the higher, the newer
	data   *io.SectionReader
}

// memberOf reads the superblock of md in a range; ok is false where there is none.
func memberOf(r io.ReaderAt, start, size int64) (m member, ok bool) {
	b := make([]byte, mdSize)
	if _, err := r.ReadAt(b, start+mdOffset); err != nil {
		return m, false
	}
	number := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	if number(0) != mdMagic || number(4) != 1 {
		return m, false
	}
	m = member{array: formatUUID(b[mdArray:]), level: int(int32(number(mdLevel))), layout: number(mdLayout), chunk: int64(number(mdChunk)) * 512, disks: int(number(mdDisks)), role: -1, events: binary.LittleEndian.Uint64(b[mdEvents:])}
	if n := number(mdNumber); n < number(mdMost) && mdRoles+2*int64(n)+2 <= mdSize {
		if role := int(binary.LittleEndian.Uint16(b[mdRoles+2*n:])); role < m.disks {
			m.role = role
		}
	}
	if off := binary.LittleEndian.Uint64(b[mdDataOffset:]); off < 1<<40 && int64(off)*512 < size {
		m.data = io.NewSectionReader(r, start+int64(off)*512, size-int64(off)*512)
	}
	return m, true
}

// array reads the data of an array from its members, by their roles.
type array struct {
	members []*io.SectionReader // nil: it is not there
	chunk   int64               // bytes; 0: every member has all
}

// near2 is the layout of RAID 10 with two copies beside each other, the one that mdadm
// makes (md(4)).
const near2 = 0x102

// assemble puts an array together from members of it; ok is false where these do not have
// all of its data, or it is of a kind that is not read here. Of members that differ the
// newest count.
func assemble(all []member) (a array, ok bool) {
	newest := uint64(0)
	for _, m := range all {
		newest = max(newest, m.events)
	}
	for _, m := range all {
		if m.role < 0 || m.data == nil || m.disks > mdSize {
			continue
		}
		if a.members == nil {
			a.members = make([]*io.SectionReader, m.disks)
		}
		if m.role >= len(a.members) || a.members[m.role] != nil || m.events+1 < newest { // they are one apart when power fails between them
			continue
		}
		switch {
		case m.level == 1:
		case m.level == 10 && m.layout == near2 && m.chunk > 0:
			a.chunk = m.chunk
		default:
			return a, false
		}
		a.members[m.role] = m.data
		ok = true
	}
	return a, ok
}

// ReadAt implements io.ReaderAt.
func (a array) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		at, most, first, copies := off+int64(n), int64(len(p)-n), 0, len(a.members)
		if a.chunk > 0 {
			disks := int64(len(a.members))
			place := at / a.chunk * 2 // of the first copy, counted through all members
			first, copies, most = int(place%disks), 2, min(most, a.chunk-at%a.chunk)
			at = place/disks*a.chunk + at%a.chunk
		}
		done, err := a.read(p[n:n+int(most)], at, first, copies)
		if n += done; err != nil {
			return n, err
		}
	}
	return n, nil
}

// read reads from the first of some members that is there.
func (a array) read(p []byte, at int64, first, copies int) (int, error) {
	for i := range copies {
		m := (first + i) % len(a.members)
		shift := int64((first+i)/len(a.members)) * a.chunk // the second copy may begin the next row
		if r := a.members[m]; r != nil {
			return r.ReadAt(p, at+shift)
		}
	}
	return 0, errors.New("no member of the array has it")
}
