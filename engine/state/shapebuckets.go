// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
)

// bucket looks at one entry of the root: a table.
func (s *shape) bucket(name, value []byte, flags uint32) error {
	leaf := map[string]leafFunc{string(metaBucket): s.metaEntry, string(journalBucket): s.journalEntry,
		string(objectBucket): s.objectEntry}[string(name)]
	if leaf == nil || flags != isBucket || len(value) < 16 {
		return fmt.Errorf("%q is none of its tables", name)
	}
	root := binary.NativeEndian.Uint64(value)
	s.journal = string(name) == string(journalBucket)
	s.sequences[string(name)] = binary.NativeEndian.Uint64(value[8:])
	if root != 0 {
		return s.tree(root, nil, nil, 0, leaf)
	}
	page := value[16:] // a small table lies in its entry
	if len(page) < pageHeader || binary.NativeEndian.Uint16(page[8:]) != leafPage {
		return fmt.Errorf("table %s is not readable", name)
	}
	return walkLeaves(0, page, int(binary.NativeEndian.Uint16(page[10:])), nil, nil, leaf)
}

var errNested = errors.New("it has a table within a table")

func (s *shape) metaEntry(key, value []byte, flags uint32) error {
	s.meta[string(key)] = string(value)
	return checkPlainEntry(flags)
}

func (s *shape) journalEntry(key, _ []byte, flags uint32) error {
	if len(key) != 8 {
		return fmt.Errorf("record %x has no number", key)
	}
	return checkPlainEntry(flags)
}

func (s *shape) objectEntry(key, _ []byte, flags uint32) error {
	k := kindOf(key)
	if string(k) != s.kind { // they come in order
		s.kind = string(k)
	}
	c := s.kinds[s.kind]
	s.kinds[s.kind] = count{c.n + 1, c.sum + crc64.Checksum(key, ecma)}
	return checkPlainEntry(flags)
}

func checkPlainEntry(flags uint32) error {
	if flags != 0 {
		return errNested
	}
	return nil
}

// free marks the pages of the free list.
func (s *shape) free(id uint64) error {
	page, flags, count, err := s.take(id)
	if err != nil {
		return err
	}
	ids := page[pageHeader:]
	if flags != freePage {
		return fmt.Errorf("page %d is not the list of free pages", id)
	}
	n := uint64(count)
	if count == 0xFFFF && len(ids) >= 8 { // the number stands before the list
		n, ids = binary.NativeEndian.Uint64(ids), ids[8:]
	}
	if n > uint64(len(ids)/8) {
		return errors.New("its list of free pages is cut short")
	}
	for i := range n {
		p := binary.NativeEndian.Uint64(ids[i*8:])
		if p < 2 || p >= s.high {
			return fmt.Errorf("its list of free pages has %d of %d", p, s.high)
		}
		if err := s.mark(p); err != nil {
			return err
		}
	}
	return nil
}

// walkLeaves gives the elements of a leaf page to f.
func walkLeaves(id uint64, page []byte, count int, low, high []byte, f leafFunc) error {
	if pageHeader+count*pageElement > len(page) {
		return fmt.Errorf("page %d cannot have %d elements", id, count)
	}
	var last []byte
	for i := range count {
		e := page[pageHeader+i*pageElement:]
		flags, pos, ks, vs := binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:]), binary.NativeEndian.Uint32(e[8:]), binary.NativeEndian.Uint32(e[12:])
		k, errK := sliceElement(e, pos, ks)
		v, errV := sliceElement(e, pos+ks, vs)
		if errK != nil || errV != nil || pos > 1<<31 || ks > 1<<16 {
			return fmt.Errorf("page %d has an element that does not fit", id)
		}
		if i == 0 && !isWithin(k, low, nil) || i == count-1 && !isWithin(k, nil, high) || i > 0 && bytes.Compare(last, k) >= 0 {
			return fmt.Errorf("page %d has keys out of order", id)
		}
		if err := f(k, v, flags); err != nil {
			return err
		}
		last = k
	}
	return nil
}

// sliceElement cuts n bytes at pos out of what follows an element.
func sliceElement(e []byte, pos, n uint32) ([]byte, error) {
	if uint64(pos)+uint64(n) > uint64(len(e)) {
		return nil, errors.New("out of the page")
	}
	return e[pos : pos+n], nil
}

func isWithin(k, low, high []byte) bool {
	return bytes.Compare(k, low) >= 0 && (high == nil || bytes.Compare(k, high) < 0)
}
