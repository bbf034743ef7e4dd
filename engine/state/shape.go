// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// bbolt trusts the pages of its file. A damaged one can send it in circles, hide
// a key, or make it write over a page in use. So the file is walked before it is
// opened: each page must be what it says, be referred to once or be free, and
// have its keys in order and within those of its parent. What lies in the values
// is left to their checksums. The layout is that of bbolt's version 2, see
// https://pkg.go.dev/go.etcd.io/bbolt.

// The parts of a page of bbolt.
const (
	pageHeader  = 16 // id 8, flags 2, count 2, overflow 4
	pageElement = 16
	metaLength  = 64
	branchPage  = 0x01
	leafPage    = 0x02
	metaPage    = 0x04
	freePage    = 0x10
	isBucket    = 0x01 // flag of an element

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	maxDepth    = 32
)

// shape is what a walk over the pages of a state file has found.
type shape struct {
	data  []byte
	page  int    // bytes of a page
	high  uint64 // the first page that was never used
	seen  []bool // pages that are referred to
	taken int    // how many were looked at
	look  look

	empty     bool              // nothing was ever stored
	meta      map[string]string // the meta bucket
	kinds     tally             // of the objects' keys
	kind      string            // of the key before
	journal   bool              // this is the journal's table,
	atLeaves  bool              // and its leaves
	sequences map[string]uint64 // of the buckets
}

// look is how much of a file is walked over.
type look bool

// A reader needs no free pages, and finds what is wrong in the journal when it
// reads it; only a writer has to know each page. With the journal of 12,500 nodes
// that is a fifth of a second.
const (
	forReading look = false
	forWriting look = true
)

// inspectFile walks over the file at path. The result is nil when there is none, or
// an empty one. It waits a moment for a writer to go away.
func inspectFile(path string, l look) (*shape, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	defer f.Close()
	if err := lockShared(f); err != nil {
		return nil, openError(path, err)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	if st.Size() == 0 { // a copy that found no room; a new state has a page from its first moment
		return nil, damagedError(path, errors.New("it is empty"))
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(st.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("state: %s: %w", path, err)
	}
	defer func() { _ = syscall.Munmap(data) }()
	s := &shape{data: data, look: l, meta: map[string]string{}, kinds: tally{}, sequences: map[string]uint64{}}
	err = guardFaults(path, s.walk)
	s.data, s.seen = nil, nil
	if err != nil {
		if errkind.Of(err) == errkind.Corrupt {
			return nil, err
		}
		return nil, damagedError(path, err)
	}
	return s, nil
}

// IsFile reports whether the file at path is one of this store, or was: its first
// page says so. It is read no further.
func IsFile(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("state: %w", err)
	}
	defer f.Close()
	head := make([]byte, pageHeader+4)
	if _, err := io.ReadFull(f, head); err != nil {
		return false, nil // too short for one
	}
	return binary.NativeEndian.Uint32(head[pageHeader:]) == boltMagic, nil
}

// lockShared takes the lock that bbolt takes, for as long as f is open.
func lockShared(f *os.File) error {
	for end := time.Now().Add(lockWait); ; time.Sleep(20 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(end) {
			return errInUse
		}
	}
}

// walk looks at everything.
func (s *shape) walk() error {
	root, free, err := s.headers()
	if err != nil {
		return err
	}
	s.seen = make([]bool, s.high)
	if err := s.tree(root, nil, nil, 0, s.bucket); err != nil {
		return err
	}
	if s.empty = len(s.sequences) == 0; !s.empty && len(s.sequences) != 3 {
		return errors.New("its tables are not all there")
	}
	if s.look == forReading {
		return nil
	}
	if err := s.free(free); err != nil {
		return err
	}
	for id := uint64(2); id < s.high; id++ {
		if !s.seen[id] {
			return fmt.Errorf("nothing leads to its page %d", id)
		}
	}
	return nil
}

// headers reads the two headers, of which the newer one counts, and returns the
// pages of the root and of the free list. Both were written whole at some time:
// one that is damaged may be the newer one, and the other would silently be the
// past.
func (s *shape) headers() (root, free uint64, err error) {
	first, ok := s.header(0)
	if !ok {
		return 0, 0, errors.New("its first header is not valid")
	}
	s.page = int(first.page)
	if first.page < 512 || first.page > 1<<16 || first.page&(first.page-1) != 0 {
		return 0, 0, fmt.Errorf("its pages cannot have %d bytes", first.page)
	}
	second, ok := s.header(s.page)
	if !ok || second.page != first.page {
		return 0, 0, errors.New("its second header is not valid")
	}
	h := first
	if second.tx > first.tx {
		h = second
	}
	if need := h.high * uint64(s.page); need > uint64(len(s.data)) || h.high < 4 {
		return 0, 0, fmt.Errorf("it has %d of its %d bytes", len(s.data), need)
	}
	s.high = h.high
	return h.root, h.free, nil
}

// header is the part of bbolt's meta page that is looked at.
type header struct{ page, root, free, high, tx uint64 }

func (s *shape) header(at int) (h header, ok bool) {
	if at+pageHeader+metaLength > len(s.data) {
		return h, false
	}
	if binary.NativeEndian.Uint16(s.data[at+8:]) != metaPage {
		return h, false
	}
	m, u32, u64 := s.data[at+pageHeader:][:metaLength], binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	sum := fnv.New64a()
	_, _ = sum.Write(m[:metaLength-8])
	h = header{page: uint64(u32(m[8:])), root: u64(m[16:]), free: u64(m[32:]), high: u64(m[40:]), tx: u64(m[48:])}
	return h, u32(m) == boltMagic && u32(m[4:]) == boltVersion && u64(m[56:]) == sum.Sum64()
}

// take returns a page with what it overflows into, and marks all of it.
func (s *shape) take(id uint64) (page []byte, flags uint16, count int, err error) {
	if id < 2 || id >= s.high {
		return nil, 0, 0, fmt.Errorf("it refers to page %d of %d", id, s.high)
	}
	page = s.data[id*uint64(s.page):]
	overflow := uint64(binary.NativeEndian.Uint32(page[12:]))
	if binary.NativeEndian.Uint64(page) != id || overflow >= s.high-id {
		return nil, 0, 0, fmt.Errorf("page %d does not say that it is", id)
	}
	if s.taken++; s.taken%looked == 0 {
		_ = syscall.Madvise(s.data, syscall.MADV_DONTNEED) // it is read again where it is needed
	}
	for i := id; i <= id+overflow; i++ {
		if err := s.mark(i); err != nil {
			return nil, 0, 0, err
		}
	}
	page = page[:(overflow+1)*uint64(s.page)]
	return page, binary.NativeEndian.Uint16(page[8:]), int(binary.NativeEndian.Uint16(page[10:])), nil
}

func (s *shape) mark(id uint64) error {
	if s.seen[id] {
		return fmt.Errorf("page %d is used twice", id)
	}
	s.seen[id] = true
	return nil
}

// leafFunc takes one element of a leaf.
type leafFunc func(key, value []byte, flags uint32) error

// tree walks over the pages below id. Keys lie from low on and before high; nil
// is no limit.
func (s *shape) tree(id uint64, low, high []byte, depth int, leaf leafFunc) error {
	if depth > maxDepth {
		return fmt.Errorf("page %d lies too deep", id)
	}
	page, flags, count, err := s.take(id)
	if err != nil {
		return err
	}
	switch flags {
	case leafPage:
		return walkLeaves(id, page, count, low, high, leaf)
	case branchPage:
		return s.branches(id, page, count, low, high, depth, leaf)
	}
	return fmt.Errorf("page %d is neither branch nor leaf", id)
}

// branches walks over the children of a page.
func (s *shape) branches(id uint64, page []byte, count int, low, high []byte, depth int, leaf leafFunc) error {
	if count == 0 || pageHeader+count*pageElement > len(page) {
		return fmt.Errorf("page %d cannot have %d children", id, count)
	}
	key := func(i int) ([]byte, error) {
		e := page[pageHeader+i*pageElement:]
		return sliceElement(e, binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:]))
	}
	k, err := key(0)
	for i := 0; i < count; i++ {
		if err != nil || !isWithin(k, low, high) {
			return fmt.Errorf("page %d has keys out of order", id)
		}
		next := high
		if i+1 < count {
			if next, err = key(i + 1); err != nil || bytes.Compare(k, next) >= 0 {
				return fmt.Errorf("page %d has keys out of order", id)
			}
		}
		child := binary.NativeEndian.Uint64(page[pageHeader+i*pageElement+8:])
		if s.passes(child, i) {
			k = next
			continue
		}
		if err := s.tree(child, k, next, depth+1, leaf); err != nil {
			return err
		}
		k = next
	}
	return nil
}

// passes reports whether a child is not looked at: a leaf of the journal, which is
// one when its first sibling is.
func (s *shape) passes(child uint64, i int) bool {
	if s.look == forWriting || !s.journal {
		return false
	}
	if i == 0 && child < s.high {
		s.atLeaves = binary.NativeEndian.Uint16(s.data[child*uint64(s.page)+8:]) == leafPage
	}
	return i > 0 && s.atLeaves
}
