// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/engine/state"
)

// keys are the keys of a state, all under its prefix.
//
//	/about             about, as JSON
//	/head              head, as JSON: in every transaction that writes
//	/owner             claim, as JSON, under the lease of the owner
//	/r/0000000000000007   record 7, in hexadecimal digits: its checksum and its JSON
//	/o/kind/name       an object: its version, its checksum and its JSON
//	/b/DIGEST          an immutable block
//
// Numbers and checksums are hexadecimal, so that etcdctl shows a state that can be read.
type keys struct{ prefix string }

func (k keys) about() string              { return k.prefix + "/about" }
func (k keys) head() string               { return k.prefix + "/head" }
func (k keys) owner() string              { return k.prefix + "/owner" }
func (k keys) record(seq uint64) string   { return fmt.Sprintf("%s/r/%016x", k.prefix, seq) }
func (k keys) recordsEnd() string         { return k.prefix + "/r0" } // "0" comes after "/"
func (k keys) object(o state.Key) string  { return k.prefix + "/o/" + o.String() }
func (k keys) kind(kind string) string    { return k.prefix + "/o/" + kind + "/" }
func (k keys) kindEnd(kind string) string { return k.prefix + "/o/" + kind + "0" }
func (k keys) block(hex string) string    { return k.prefix + "/b/" + hex }

// head is what every write compares and replaces: it puts all writes in one order.
type head struct {
	Fence   uint64   `json:"fence"`   // of the last claim
	Seq     uint64   `json:"seq"`     // number of the last record
	Version uint64   `json:"version"` // the highest version of an object
	Appends []string `json:"appends"` // ids of the appends that wrote it together
	// Nonce is random where nothing but the text was to change, so that a write which is
	// still on its way can no longer be done.
	Nonce string `json:"nonce,omitempty"`
	// Moved says where the state is now: nobody writes this one any more.
	Moved string `json:"moved,omitempty"`
}

// String is the head as it is stored. Texts of two writes always differ: by the fence, by
// an id, or by the nonce.
func (h head) String() string {
	b, err := json.Marshal(h)
	if err != nil {
		panic(err) // it has numbers and texts
	}
	return string(b)
}

// entry is a head with its stored text.
type entry struct {
	head
	text string
}

func readHead(text []byte) (*entry, error) {
	e := &entry{text: string(text)}
	if err := json.Unmarshal(text, &e.head); err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	if e.Moved != "" {
		return nil, errMoved(e.Moved)
	}
	return e, nil
}

// claim is the value of the owner's key.
type claim struct {
	Owner string `json:"owner"`
	Fence uint64 `json:"fence"`
}

// castagnoli is the table of CRC-32C, which processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf is the checksum of a value and of the key without the prefix: a value under
// another key is found as a flipped bit is.
func (k keys) sumOf(key string, parts ...[]byte) uint32 {
	sum := crc32.Checksum([]byte(strings.TrimPrefix(key, k.prefix)), castagnoli)
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

const (
	sumDigits     = 8
	versionDigits = 16
)

// sealRecord returns the stored form of a record, which has its number.
func (k keys) sealRecord(r state.Record) (string, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("state: record of kind %s: %w", r.Kind, err)
	}
	return fmt.Sprintf("%08x %s", k.sumOf(k.record(r.Seq), body), body), nil
}

// openRecord reads a stored record.
func (k keys) openRecord(key string, raw []byte) (r state.Record, err error) {
	if len(raw) <= sumDigits {
		return r, fmt.Errorf("record %s is cut short", key)
	}
	body := raw[sumDigits+1:]
	if fmt.Sprintf("%08x", k.sumOf(key, body)) != string(raw[:sumDigits]) {
		return r, fmt.Errorf("record %s does not match its checksum", key)
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("record %s: %w", key, err)
	}
	if k.record(r.Seq) != key {
		return r, fmt.Errorf("record %s says it is %d", key, r.Seq)
	}
	return r, nil
}

// sealObject returns the stored form of an object.
func (k keys) sealObject(o state.Key, version uint64, value []byte) string {
	number := fmt.Appendf(nil, "%016x", version)
	return fmt.Sprintf("%s %08x %s", number, k.sumOf(k.object(o), number, value), value)
}

// openObject reads a stored object. Its value lies in raw.
func (k keys) openObject(o state.Key, raw []byte) (state.Object, error) {
	const start = versionDigits + 1 + sumDigits + 1
	if len(raw) <= start {
		return state.Object{}, fmt.Errorf("object %s is cut short", o)
	}
	number, value := raw[:versionDigits], raw[start:]
	if fmt.Sprintf("%08x", k.sumOf(k.object(o), number, value)) != string(raw[versionDigits+1:start-1]) {
		return state.Object{}, fmt.Errorf("object %s does not match its checksum", o)
	}
	version, err := strconv.ParseUint(string(number), 16, 64)
	if err != nil {
		return state.Object{}, fmt.Errorf("object %s: %w", o, err)
	}
	return state.Object{Key: o, Version: version, Value: bytes.Clone(value)}, nil
}
