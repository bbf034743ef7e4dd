// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"one", "two"} {
		if err := Write(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		check(t, path, text, 0o640)
	}
	broken := errors.New("out of space")
	if err := WriteFrom(path, 0o600, func(w io.Writer) error { _, _ = w.Write([]byte("th")); return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	check(t, path, "two", 0o640)
	if err := Write(filepath.Join(path, "below a file"), nil, 0o600); err == nil {
		t.Error("written below a file")
	}
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := Create(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, []byte("two"), 0o644); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	check(t, path, "one", 0o600)
}

// check compares a file, which is alone in its folder.
func check(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != text {
		t.Errorf("%q, %v, want %q", b, err, text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
		t.Errorf("mode %v, %v, want %v", info.Mode(), err, mode)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("%v, %v in the folder", all, err)
	}
}

func TestSyncFolder(t *testing.T) {
	if err := SyncFolder(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := SyncFolder(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
