// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
	"github.com/ironrail/ironrail/internal/errkind"
)

func openBolt(t *testing.T, dir string) state.Store {
	t.Helper()
	s, err := state.Open(filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBolt(t *testing.T) { statetest.Run(t, statetest.Harness{Open: openBolt}) }

// grown makes a state file of some pages and returns its path.
func grown(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		r := state.Record{Kind: state.Note}.With(strings.Repeat("x", 2000))
		if _, err := s.Append(t.Context(), f, state.Batch{Records: []state.Record{r}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func setMeta(t *testing.T, path, key, value string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte(key), []byte(value)) }); err != nil {
		t.Fatal(err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, path string)
		kind  errkind.Kind
		say   string
	}{
		{"newer format", func(t *testing.T, p string) { setMeta(t, p, "format", "4") }, errkind.Unsupported, "written in format 4"},
		{"newer reader", func(t *testing.T, p string) { setMeta(t, p, "minimum_reader", "9") }, errkind.Unsupported, "this version knows 3"},
		{"format unreadable", func(t *testing.T, p string) { setMeta(t, p, "format", "?") }, errkind.Corrupt, "damaged"},
		{"no lineage", func(t *testing.T, p string) { setMeta(t, p, "lineage", "") }, errkind.Corrupt, "damaged"},
		{"not a state file", func(t *testing.T, p string) { write(t, p, 0, strings.Repeat("GIF89a", 4000)) }, errkind.Corrupt, "damaged"},
		{"cut short", func(t *testing.T, p string) { truncate(t, p, 3*4096) }, errkind.Corrupt, "of its"},
		{"pages overwritten", func(t *testing.T, p string) { write(t, p, 2*4096, strings.Repeat("\xff", 12*4096)) }, errkind.Corrupt, "damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := grown(t)
			c.spoil(t, path)
			s, err := state.Open(path)
			if err == nil {
				err = s.Read(t.Context(), 1, func(state.Record) error { return nil })
				_ = s.Close()
			}
			if errkind.Of(err) != c.kind || err == nil || !strings.Contains(err.Error(), c.say) || errkind.Action(err) == "" {
				t.Errorf("kind %v, error %v, action %q", errkind.Of(err), err, errkind.Action(err))
			}
		})
	}
}

func write(t *testing.T, path string, at int64, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), at); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func TestSecondOpenIsRefusedWithOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Claim(t.Context(), "apply pid 123"); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(string) (*state.Bolt, error){"write": state.Open, "read": state.OpenReadOnly} {
		_, err := open(path)
		if errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "apply pid 123") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	if _, err := state.OpenReadOnly(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	path := grown(t)
	a, errA := state.OpenReadOnly(path)
	b, errB := state.OpenReadOnly(path)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	if _, err := a.Claim(t.Context(), "x"); errkind.Of(err) != errkind.Refused {
		t.Errorf("claim: %v", err)
	}
	if _, err := a.Append(t.Context(), state.Fence{Number: 1}, state.Batch{}); errkind.Of(err) != errkind.Refused {
		t.Errorf("append: %v", err)
	}
	n := 0
	if err := b.Read(t.Context(), 1, func(state.Record) error { n++; return nil }); err != nil || n != 20 {
		t.Errorf("%d records, %v", n, err)
	}
}

func TestMemory(t *testing.T) { statetest.Run(t, statetest.OnMemory(false)) }

// TestLeased: the suite runs the cases of a lease, which no file has, on a store that acts
// as one that has it.
func TestLeased(t *testing.T) { statetest.Run(t, statetest.OnMemory(true)) }
