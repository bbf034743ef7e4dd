// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
)

// FuzzFile: a file with bytes of it overwritten in several places is read rightly or
// refused. Each change is an offset of 4 bytes and 4 bytes to put there.
func FuzzFile(f *testing.F) {
	f.Add([]byte{0, 0, 0, 90, 1, 2, 3, 4})
	f.Add([]byte{0, 0, 0x30, 12, 0xff, 0xff, 0, 0, 0, 0, 0x10, 16, 0, 0, 0, 1})
	f.Add([]byte{0, 0, 0x40, 24, 3, 0, 0, 0})
	path := filepath.Join(f.TempDir(), "state.db")
	s, err := state.Open(path)
	if err != nil {
		f.Fatal(err)
	}
	fence, err := s.Claim(f.Context(), "fuzz")
	if err != nil {
		f.Fatal(err)
	}
	for i := range 60 {
		p, err := state.PutOf(state.Key{Kind: kindsOfAll[i%3], Name: fmt.Sprint(i)}, bytes.Repeat([]byte("v"), 90))
		if err != nil {
			f.Fatal(err)
		}
		r := state.Record{Kind: state.Note, Time: time.Unix(1e9, 0).UTC()}.With(fmt.Sprintf("%0*d", 9*i, i))
		if _, err := s.Append(f.Context(), fence, state.Batch{Puts: []state.Put{p}, Records: []state.Record{r}}); err != nil {
			f.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		f.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	want, err := readAll(f.Context(), path)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, changes []byte) {
		b := bytes.Clone(raw)
		for ; len(changes) >= 8; changes = changes[8:] {
			copy(b[int(binary.BigEndian.Uint32(changes))%len(b):], changes[4:8])
		}
		at := filepath.Join(t.TempDir(), "state.db")
		if err := os.WriteFile(at, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readAll(t.Context(), at)
		judge(t, "changed", at, got, want, err)
	})
}
