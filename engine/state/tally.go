// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/crc64"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// A tally counts the objects of each kind and sums the hashes of their keys. It
// is stored with the objects, so that an object whose key was damaged is missed
// when the file is opened, and not taken for one that was never there.
type tally map[string]count

type count struct {
	n   uint64
	sum uint64 // of hashes, modulo 2^64
}

// ecma is the table of the hash of keys.
var ecma = crc64.MakeTable(crc64.ECMA)

// add counts a key, drop takes it out again.
func (t tally) add(key []byte) {
	k := kindOf(key)
	c := t[string(k)]
	t[string(k)] = count{c.n + 1, c.sum + crc64.Checksum(key, ecma)}
}

func (t tally) drop(key []byte) {
	k := string(kindOf(key))
	c := count{t[k].n - 1, t[k].sum - crc64.Checksum(key, ecma)}
	if t[k] = c; c.n == 0 {
		delete(t, k)
	}
}

// countKind is how many objects of a kind there are, where that is known without
// looking at them; 0 otherwise.
func countKind(r Reader, kind string) int {
	b, ok := r.(*Bolt)
	if !ok {
		return 0
	}
	b.commit.Lock()
	defer b.commit.Unlock()
	return int(b.kinds[kind].n)
}

// kindOf returns the kind in the key of a stored object.
func kindOf(key []byte) []byte {
	for i, c := range key {
		if c == '/' {
			return key[:i]
		}
	}
	return key
}

// encode writes kinds in order: length, name, count, sum.
func (t tally) encode() []byte {
	var out []byte
	for _, k := range slices.Sorted(maps.Keys(t)) {
		out = append(binary.AppendUvarint(out, uint64(len(k))), k...)
		out = binary.BigEndian.AppendUint64(binary.AppendUvarint(out, t[k].n), t[k].sum)
	}
	return out
}

// decodeTally reads what encode wrote.
func decodeTally(raw []byte) (tally, error) {
	t, bad := tally{}, errors.New("its count of objects is not readable")
	for len(raw) > 0 {
		n, used := binary.Uvarint(raw)
		if used <= 0 || n > uint64(len(raw)-used) {
			return nil, bad
		}
		kind := string(raw[used : used+int(n)])
		raw = raw[used+int(n):]
		if n, used = binary.Uvarint(raw); used <= 0 || len(raw) < used+8 {
			return nil, bad
		}
		t[kind] = count{n, binary.BigEndian.Uint64(raw[used:])}
		raw = raw[used+8:]
	}
	return t, nil
}

// differs says how what is there differs from what was counted.
func (t tally) differs(there tally) error {
	for _, k := range slices.Sorted(maps.Keys(t)) {
		if t[k] != there[k] {
			return fmt.Errorf("it has %d of its %d objects of kind %q as they were written", there[k].n, t[k].n, k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(there)) {
		if _, ok := t[k]; !ok {
			return fmt.Errorf("it has objects of kind %q that nobody wrote", k)
		}
	}
	return nil
}

// ofMeta are the keys of the meta bucket that its checksum is of.
var ofMeta = [][]byte{metaFormat, metaReader, metaLineage, metaCreated, metaFence, metaFirst, metaKinds}

// metaSumOf is the checksum of the meta bucket and of the numbers given last.
func metaSumOf(get func([]byte) []byte, journal, objects uint64) []byte {
	var sum uint32
	for _, k := range ofMeta {
		v := get(k)
		sum = crc32.Update(sum, castagnoli, binary.BigEndian.AppendUint32(nil, uint32(len(v))))
		sum = crc32.Update(sum, castagnoli, v)
	}
	if v := get(metaMirror); v != nil {
		sum = crc32.Update(crc32.Update(sum, castagnoli, metaMirror), castagnoli, v)
	}
	sum = crc32.Update(sum, castagnoli, seqKey(journal))
	return fmt.Appendf(nil, "%08x", crc32.Update(sum, castagnoli, seqKey(objects)))
}

// sealMeta writes the checksum of the meta bucket; it ends every transaction.
func sealMeta(tx *bbolt.Tx) error {
	m := tx.Bucket(metaBucket)
	return m.Put(metaSum, metaSumOf(m.Get, tx.Bucket(journalBucket).Sequence(), tx.Bucket(objectBucket).Sequence()))
}
