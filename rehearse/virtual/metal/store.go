// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"hash/maphash"
	"sync"

	"github.com/ironrail/ironrail/provision/agent/disk"
)

// Sizes of what is kept of a disk, bytes.
const (
	blockSize   = 4 << 10
	segmentSize = 1 << 20
	perSegment  = segmentSize / blockSize
)

// block is a part of a disk that is not all zeroes. It is immutable once it is on
// a disk, so that disks share it.
type block [blockSize]byte

// store keeps one copy of each block that many disks have. It is safe for
// concurrent use. Blocks stay until the store goes: images are few and small.
type store struct {
	seed maphash.Seed

	mu     sync.Mutex
	blocks map[uint64][]*block // guarded by mu; by hash
}

func newStore() *store { return &store{seed: maphash.MakeSeed(), blocks: map[uint64][]*block{}} }

// of returns the block with the content of b, blockSize bytes; nil for zeroes.
func (s *store) of(b []byte) *block {
	if disk.AllZero(b) {
		return nil
	}
	sum := maphash.Bytes(s.seed, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, have := range s.blocks[sum] {
		if string(have[:]) == string(b) {
			return have
		}
	}
	fresh := block(b)
	s.blocks[sum] = append(s.blocks[sum], &fresh)
	return &fresh
}

// segment is a stretch of a disk; a block that is nil is zero.
type segment [perSegment]*block

// blocks is the content of a disk. It is not safe for concurrent use.
type blocks struct {
	store    *store
	segments map[int64]*segment
}

// read fills p with what stands at off.
func (b *blocks) read(p []byte, off int64) {
	for len(p) > 0 {
		n := min(blockSize-int(off%blockSize), len(p))
		var have *block
		if s := b.segments[off/segmentSize]; s != nil {
			have = s[off%segmentSize/blockSize]
		}
		if have == nil {
			clear(p[:n])
		} else {
			copy(p[:n], have[off%blockSize:])
		}
		p, off = p[n:], off+int64(n)
	}
}

// zeroed reports whether nothing but zeroes stands in a range.
func (b *blocks) zeroed(off, length int64) bool {
	end := off + length
	for off < end {
		s := b.segments[off/segmentSize]
		if s == nil {
			off = (off/segmentSize + 1) * segmentSize
			continue
		}
		if s[off%segmentSize/blockSize] != nil {
			return false
		}
		off = (off/blockSize + 1) * blockSize
	}
	return true
}

// write puts p at off. A write of several whole blocks is an image's, whose blocks
// other disks have too; a small one is this disk's own.
func (b *blocks) write(p []byte, off int64) {
	share := len(p) > blockSize
	for len(p) > 0 {
		from := int(off % blockSize)
		n := min(blockSize-from, len(p))
		s := b.segments[off/segmentSize]
		if s == nil {
			s = &segment{}
			b.segments[off/segmentSize] = s
		}
		at := &s[off%segmentSize/blockSize]
		switch {
		case n == blockSize && share:
			*at = b.store.of(p[:n])
		default:
			*at = mergeBlock(*at, p[:n], from)
		}
		p, off = p[n:], off+int64(n)
	}
}

// mergeBlock returns a copy of a block with p at from; nil when it is all zeroes.
func mergeBlock(old *block, p []byte, from int) *block {
	var fresh block
	if old != nil {
		fresh = *old
	}
	copy(fresh[from:], p)
	if disk.AllZero(fresh[:]) {
		return nil
	}
	return &fresh
}

// zero makes a range read as zeroes. It takes time for what is there, not for the
// range: disks are terabytes.
func (b *blocks) zero(off, length int64) {
	end := off + length
	for i, s := range b.segments {
		start := i * segmentSize
		if start >= end || start+segmentSize <= off {
			continue
		}
		if off <= start && start+segmentSize <= end {
			delete(b.segments, i)
			continue
		}
		for j := range s {
			from := start + int64(j)*blockSize
			lo, hi := max(off, from), min(end, from+blockSize)
			if lo < hi && s[j] != nil {
				s[j] = mergeBlock(s[j], make([]byte, hi-lo), int(lo-from))
			}
		}
	}
}
