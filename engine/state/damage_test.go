// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
	"github.com/ironrail/ironrail/internal/errkind"
)

// everyByte makes the tests of damaged files try each byte, which takes minutes.
const everyByte = "IRONRAIL_EVERY_BYTE"

// kindsOfAll are the kinds that statetest.Fill and HoldNode write.
var kindsOfAll = []string{"step", "fact", "effect", "node", "run"}

// content is all that can be read from a store, as one text.
func content(ctx context.Context, r state.Reader) (string, error) {
	h := fnv.New128a()
	i := r.Info()
	i.Format = 0 // what is stored is the same in each
	fmt.Fprintln(h, i)
	n := 0
	err := r.Read(ctx, 1, func(rec state.Record) error {
		n++
		raw, err := json.Marshal(rec)
		_, _ = h.Write(raw)
		return err
	})
	if err != nil {
		return "", err
	}
	for _, k := range kindsOfAll {
		os, err := r.Objects(ctx, k)
		if err != nil {
			return "", err
		}
		for _, o := range os {
			fmt.Fprintln(h, o.Key, o.Version, string(o.Value))
			one, ok, err := r.Object(ctx, o.Key)
			if err != nil || !ok || one.Version != o.Version || !bytes.Equal(one.Value, o.Value) {
				return "", errors.Join(err, fmt.Errorf("object %s alone: %t %d", o.Key, ok, one.Version))
			}
		}
		fmt.Fprintln(h, k, len(os))
	}
	return fmt.Sprintf("%d records, %x", n, h.Sum(nil)), nil
}

// smallFile makes a state file with pages of each sort, also free ones, and returns its
// path and content.
func smallFile(t *testing.T, nodes int) (path, want string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "state.db")
	s, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	var b state.Batch
	for i := range 30 {
		p, err := state.PutOf(state.Key{Kind: kindsOfAll[i%3], Name: fmt.Sprintf("n%d/x", i)}, strings.Repeat("value ", 20))
		if err != nil {
			t.Fatal(err)
		}
		b.Puts = append(b.Puts, p)
		b.Records = append(b.Records, state.Record{Kind: state.Note, Time: time.Unix(1e9, 0).UTC()}.With(i))
	}
	if _, err := s.Append(t.Context(), f, b); err != nil {
		t.Fatal(err)
	}
	if err := statetest.Fill(t.Context(), s, f, nodes); err != nil {
		t.Fatal(err)
	}
	if want, err = content(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, want
}

// readAll opens a file for reading and reads all of it in every way there is.
func readAll(ctx context.Context, path string) (string, error) {
	s, err := state.OpenReadOnly(path)
	if err != nil {
		return "", err
	}
	defer s.Close()
	got, err := content(ctx, s)
	if checked := s.Check(); err == nil {
		err = checked
	}
	return got, err
}

// judge requires the right content, or an error that names the file and what to
// do.
func judge(t *testing.T, what, path, got, want string, err error) {
	t.Helper()
	switch {
	case err == nil && got != want:
		t.Errorf("%s: read something else, and no error", what)
	case err != nil && (!strings.Contains(err.Error(), path) || errkind.Action(err) == "" || errkind.Of(err) == errkind.Internal):
		t.Errorf("%s: kind %v, error %v, action %q", what, errkind.Of(err), err, errkind.Action(err))
	}
}

// offsets are the bytes of a file that are tried: those of all that holds pages
// together, and some of the rest.
func offsets(raw []byte) (all []int) {
	rng, every := rand.New(rand.NewPCG(7, uint64(len(raw)))), os.Getenv(everyByte) != ""
	rest := min(1, 600/float64(len(raw)))
	for at := range raw {
		head := at%4096 < 20 || at < 2*4096 && at%4096 < 96
		if every || head && rng.IntN(3) == 0 || at < 80 || rng.Float64() < rest {
			all = append(all, at)
		}
	}
	return all
}

// TestFlippedBytes: whatever byte of a file changes, it is read rightly or refused.
func TestFlippedBytes(t *testing.T) {
	t.Parallel()
	path, want := smallFile(t, 0)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(t.Context(), path); err != nil || got != want {
		t.Fatalf("whole: %q %v", got, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := 0
	for n, at := range offsets(raw) {
		bit := []byte{0xff, 1, 0x80, 0x20}[n%4]
		if _, err := f.WriteAt([]byte{raw[at] ^ bit}, int64(at)); err != nil {
			t.Fatal(err)
		}
		got, err := readAll(t.Context(), path)
		judge(t, fmt.Sprintf("byte %d ^ %#x", at, bit), path, got, want, err)
		if err != nil {
			found++
		}
		if _, err := f.WriteAt(raw[at:at+1], int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if found < 100 {
		t.Errorf("only %d were found", found)
	}
}

// TestFlippedBytesOfAWriter: who opens a damaged file to write it refuses, or writes
// rightly: what was there and what it wrote are read back.
func TestFlippedBytesOfAWriter(t *testing.T) {
	t.Parallel()
	path, _ := smallFile(t, 2)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	add := func(spoil int) (string, error) {
		at := filepath.Join(filepath.Dir(path), "copy.db")
		b := bytes.Clone(raw)
		if spoil >= 0 {
			b[spoil] ^= 1 << rng.IntN(8)
		}
		if err := os.WriteFile(at, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := state.Open(at)
		if err != nil {
			return "", err
		}
		defer s.Close()
		f, err := s.Claim(t.Context(), "test")
		if err == nil {
			_, err = s.Append(t.Context(), f, state.Batch{ID: "THE SAME", Records: []state.Record{{Kind: state.Note, Time: time.Unix(1e9, 0).UTC()}},
				Puts: []state.Put{{Key: state.Key{Kind: "node", Name: "new"}, Want: state.Any, Value: json.RawMessage(`1`)}}})
		}
		if err != nil {
			return "", err
		}
		got, err := content(t.Context(), s)
		if checked := s.Check(); err == nil {
			err = checked
		}
		return got, err
	}
	want, err := add(-1)
	if err != nil {
		t.Fatal(err)
	}
	tries := 100
	if os.Getenv(everyByte) != "" {
		tries = 20000
	}
	for range tries {
		at := rng.IntN(len(raw))
		if rng.IntN(2) == 0 {
			at = at&^4095 + rng.IntN(64) // what holds a page together
		}
		got, err := add(at)
		judge(t, fmt.Sprintf("byte %d", at), filepath.Dir(path), got, want, err)
	}
}

// TestTruncated: a file that was cut short at any page is refused, or whole.
func TestTruncated(t *testing.T) {
	t.Parallel()
	path, want := smallFile(t, 1)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := len(raw) - 4096; n > 0; n -= 2048 {
		if err := os.Truncate(path, int64(n)); err != nil {
			t.Fatal(err)
		}
		got, err := readAll(t.Context(), path)
		judge(t, fmt.Sprintf("%d of %d bytes", n, len(raw)), path, got, want, err)
	}
}

// TestEmptyFile: a file without a byte is what a copy leaves that found no room. It is
// neither taken for a new state nor written to.
func TestEmptyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(string) (*state.Bolt, error){"for reading": state.OpenReadOnly, "for writing": state.Open} {
		_, err := open(path)
		if errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), "it is empty") || !strings.Contains(errkind.Action(err), "state restore") {
			t.Errorf("%s: %v (%s)", name, err, errkind.Action(err))
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("the file was written to: %v %v", info, err)
	}
}
