// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// The places that a scan looks at.
const (
	edge      = 4 * mib   // read whole, at both ends
	window    = 68 * kib  // read at every MiB up to near: the start of a btrfs is 64 KiB away from its superblock
	near      = 256 * mib // where first and second partitions start
	sample    = 8 * kib   // read elsewhere: the superblocks of all others, md 1.2 among them
	far       = 4 << 30   // sampled at every 16 MiB
	samples   = 512       // spread over the whole disk
	quarter   = 2 * mib   // read on both sides of each quarter of the disk: an xfs has four allocation groups
	mostTries = 64        // places with data that may have no name until the scan ends
)

// Span is a range of a disk, in bytes.
type Span struct{ Off, Length int64 }

// scan looks at a disk without a partition table and without anything at its own
// start, and names what it meets, or where: file systems of partitions whose table
// is lost, their backups, and data of any other kind. It returns nothing when every
// place is erased.
func (p *prober) scan() []string {
	unknown, tries := int64(-1), 0
	var buffer []byte // made where something may be: most places of most disks read as zeroes unread
	for _, s := range Places(p.size) {
		if p.failed {
			break // decided; a disk takes seconds for each place that it cannot read
		}
		if p.zeroed(s.Off, s.Length) {
			continue
		}
		if buffer == nil {
			buffer = make([]byte, mib)
		}
		b := buffer[:s.Length]
		if _, err := p.ReadAt(b, s.Off); err != nil {
			break
		}
		first := notErased(b)
		if first < 0 {
			continue
		}
		if unknown < 0 || s.Off+first < unknown {
			unknown = s.Off + first
		}
		if what, at := p.begins(s); what != "" {
			return []string{"no partition table", fmt.Sprintf("%s at byte %d", what, at)}
		}
		if tries++; tries >= mostTries {
			break
		}
	}
	if unknown < 0 {
		return nil
	}
	return []string{fmt.Sprintf("unknown data at byte %d", unknown)}
}

// begins names a file system that begins at a place, or has a copy of its
// superblock there. Sector 63 is where partitions began before disks had 4 KiB.
func (p *prober) begins(s Span) (string, int64) {
	candidates := []int64{s.Off}
	if s.Off == 0 {
		candidates = append(candidates, 63*512)
	}
	for _, at := range candidates {
		reach := min(512*kib, p.size-at)
		found := p.named(starts, at, reach)
		if len(found) == 0 {
			found = p.named(copies, at, reach)
		}
		if len(found) > 0 {
			return strings.Join(found, ", "), at
		}
	}
	return "", 0
}

// Places lists what Probe reads of a disk without a partition table, beside the
// places of known signatures: in order, each once. They do not depend on what
// stands on the disk.
func Places(size int64) []Span {
	at := map[int64]int64{}
	add := func(off, length int64) {
		if off >= 0 && off < size {
			at[off] = max(at[off], min(length, size-off))
		}
	}
	for off := int64(far); off >= near; off -= 16 * mib {
		add(off, sample)
	}
	for off := int64(edge); off < near; off += mib {
		add(off, window)
	}
	for i := range int64(samples) {
		add(size/samples*i/mib*mib, sample)
	}
	// Backup superblocks of ext2 to ext4 stand in the block groups 1 and the powers of
	// 3, 5 and 7, of 128 MiB each; those of btrfs at 64 MiB and 256 GiB; groups of a
	// large xfs begin at every TiB. Their file system begins at byte 0 or a MiB or two.
	for _, base := range []int64{3, 5, 7} {
		for group := int64(1); group < size>>27+1; group *= base {
			for start := range int64(3) {
				add(group<<27+start*mib, sample)
			}
		}
	}
	for start := range int64(3) {
		add(256<<30+start*mib+64*kib, sample)
		for off := int64(1 << 40); off < size; off += 1 << 40 {
			add(off+start*mib, sample)
		}
	}
	for off := int64(0); off < edge; off += mib {
		add(off, mib)
		add((size-edge)+off, mib)
		for i := range int64(3) {
			add(size/4*(i+1)/mib*mib-quarter+off, mib)
		}
	}
	out := make([]Span, 0, len(at))
	for off, length := range at {
		out = append(out, Span{off, length})
	}
	slices.SortFunc(out, func(a, b Span) int {
		if a.Off < b.Off {
			return -1
		}
		return 1
	})
	return out
}

// notErased returns where data begins, or -1. Each 4 KiB are erased when they are
// all zero, or all ones: a flash disk may return either for what was never written
// or is deallocated (NVM Express NVM Command Set Specification, DLFEAT).
func notErased(b []byte) int64 {
	const piece = 4 * kib
	zeros, ones := make([]byte, piece), bytes.Repeat([]byte{0xff}, piece)
	for off := 0; off < len(b); off += piece {
		c := b[off:min(off+piece, len(b))]
		if bytes.Equal(c, zeros[:len(c)]) || bytes.Equal(c, ones[:len(c)]) {
			continue
		}
		for i := range c {
			if c[i] != 0 && c[i] != 0xff || c[i] != c[0] {
				return int64(off + i)
			}
		}
	}
	return -1
}
