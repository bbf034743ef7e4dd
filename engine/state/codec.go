// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
)

// castagnoli is the table of CRC-32C, which processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumLength is how many bytes the checksum of a value takes.
const sumLength = 4

// Since format 2 a record is stored as its checksum and its JSON, and an object as
// its version, its checksum and its JSON; numbers are big-endian. The checksum
// is of the key and of everything but itself: a value that was put under another
// key is found as a flipped bit is.

// sealRecord returns the stored form of a record.
func sealRecord(key, body []byte) []byte {
	return sealInPlace(key, append(make([]byte, sumLength, sumLength+len(body)), body...))
}

// sealInPlace fills in the checksum of a record that has room for it before its JSON.
func sealInPlace(key, raw []byte) []byte {
	binary.BigEndian.PutUint32(raw, crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, raw[sumLength:]))
	return raw
}

// openRecord returns the JSON of a stored record, which lies in raw.
func openRecord(key, raw []byte) ([]byte, error) {
	if len(raw) < sumLength {
		return nil, fmt.Errorf("record %x is cut short", key)
	}
	body := raw[sumLength:]
	if binary.BigEndian.Uint32(raw) != crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, body) {
		return nil, fmt.Errorf("record %x does not match its checksum", key)
	}
	return body, nil
}

// decodeRecord reads one entry of the journal in this format: its key is its
// number.
func decodeRecord(key, raw []byte) (r Record, err error) {
	body, err := openRecord(key, raw)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("record %x: %w", key, err)
	}
	if !bytes.Equal(key, seqKey(r.Seq)) {
		return r, fmt.Errorf("record %x says it is %d", key, r.Seq)
	}
	return r, nil
}

// sealObject returns the stored form of an object.
func sealObject(key []byte, version uint64, value []byte) []byte {
	out := make([]byte, 8+sumLength, 8+sumLength+len(value))
	binary.BigEndian.PutUint64(out, version)
	binary.BigEndian.PutUint32(out[8:], objectSum(key, out[:8], value))
	return append(out, value...)
}

// openObject returns the version and the value of a stored object; the value
// lies in raw.
func openObject(key, raw []byte) (version uint64, value []byte, err error) {
	if len(raw) < 8+sumLength {
		return 0, nil, fmt.Errorf("object %q is cut short", key)
	}
	value = raw[8+sumLength:]
	if binary.BigEndian.Uint32(raw[8:]) != objectSum(key, raw[:8], value) {
		return 0, nil, fmt.Errorf("object %q does not match its checksum", key)
	}
	return binary.BigEndian.Uint64(raw), value, nil
}

func objectSum(key, version, value []byte) uint32 {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, version)
	return crc32.Update(sum, castagnoli, value)
}

// versionOf returns the version in a stored object, Absent for none.
func versionOf(raw []byte) uint64 {
	if len(raw) < 8 {
		return Absent
	}
	return binary.BigEndian.Uint64(raw)
}

// migration turns what one format stored into what the next one stores.
type migration struct {
	from   int    // the next is from+1
	why    string // what the next format brought
	record func(key, raw []byte) ([]byte, error)
	object func(key, raw []byte) ([]byte, error)
}

// migrations has a row for every format but the present one, oldest first. A new
// format is one row here, and a file of the old one in testdata.
var migrations = []migration{
	{from: 1, why: "every value carries a checksum", record: recordFrom1, object: objectFrom1},
	{from: 2, why: "plans lie in blocks", record: asItIs, object: asItIs}, // a large plan is cut by rewriting.plans
}

// asItIs takes over a value that the next format stores in the same way.
func asItIs(_, raw []byte) ([]byte, error) { return raw, nil }

// recordFrom1 gives a checksum to a record, which was its JSON alone.
func recordFrom1(key, raw []byte) ([]byte, error) {
	var r struct{ Seq uint64 }
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("record %x: %w", key, err)
	}
	if !bytes.Equal(key, seqKey(r.Seq)) {
		return nil, fmt.Errorf("record %x says it is %d", key, r.Seq)
	}
	return sealRecord(key, raw), nil
}

// objectFrom1 gives a checksum to an object, which was its version and its JSON.
func objectFrom1(key, raw []byte) ([]byte, error) {
	if len(raw) < 8 || !json.Valid(raw[8:]) {
		return nil, fmt.Errorf("object %q is not readable", key)
	}
	return sealObject(key, versionOf(raw), raw[8:]), nil
}

// liftValue brings a stored value of an older format to this one: pick names which
// part of the migration is meant.
func liftValue(format int, key, raw []byte, pick func(migration) func(key, raw []byte) ([]byte, error)) (_ []byte, err error) {
	if format == Format {
		return raw, nil
	}
	for _, m := range migrations {
		if m.from < format {
			continue
		}
		if raw, err = pick(m)(key, raw); err != nil {
			return nil, err
		}
	}
	return raw, nil
}

func pickRecord(m migration) func(key, raw []byte) ([]byte, error) { return m.record }
func pickObject(m migration) func(key, raw []byte) ([]byte, error) { return m.object }
