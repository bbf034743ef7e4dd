// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/subject"
)

// FuzzDecodeRecord: whatever lies in a journal is read or refused, and what is
// read is written back the same.
func FuzzDecodeRecord(f *testing.F) {
	whole, err := json.Marshal(Record{Seq: 7, Time: time.Unix(1e9, 0).UTC(), Run: "r", Kind: StepDone, Step: "n1/a", Subject: subject.OfNode("n1"),
		Data: json.RawMessage(`{"a":1}`)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seqKey(7), sealRecord(seqKey(7), whole))
	f.Add(seqKey(7), whole)
	f.Add(seqKey(8), sealRecord(seqKey(8), whole))
	f.Add([]byte{1}, sealRecord([]byte{1}, []byte(`{"seq":1,"subject":"node"}`)))
	f.Add([]byte(nil), []byte(`{`))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		_, _ = decodeRecord(key, value) // as it is, it has no checksum
		r, err := decodeRecord(key, sealRecord(key, value))
		if old, errOld := recordFrom1(key, value); errOld == nil {
			if _, errOld = decodeRecord(key, old); errOld != nil && err == nil {
				t.Fatalf("read in format 2 and not in format 1: %v", errOld)
			}
		}
		if _, _, errObject := openObject(key, sealObject(key, 7, value)); errObject != nil {
			t.Fatal(errObject)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(key, seqKey(r.Seq)) {
			t.Fatalf("record %d under key %x", r.Seq, key)
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Skip() // a year past 9999 is read and not written
		}
		if _, err := decodeRecord(key, sealRecord(key, again)); err != nil {
			t.Errorf("%s: %v", again, err)
		}
	})
}
