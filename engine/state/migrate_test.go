// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// formatOne unpacks the file of format 1.
func formatOne(t *testing.T) string {
	t.Helper()
	f, err := os.Open("testdata/format-1.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "state.db")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMigration: a file of format 1 is read as it is, migrated when it is opened for
// writing, and kept.
func TestMigration(t *testing.T) {
	t.Parallel()
	path := formatOne(t)
	before, err := readAll(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if i := s.Info(); i.Format != state.Format || i.Lineage == "" || s.Migrated() != 1 {
		t.Errorf("%+v, migrated from %d", i, s.Migrated())
	}
	f, err := s.Claim(t.Context(), "test")
	if err != nil || f.Number != 2 {
		t.Errorf("fence %d after the migration of fence 1: %v", f.Number, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if after, err := readAll(t.Context(), path); err != nil || after != before || !strings.HasPrefix(after, "75 records") {
		t.Errorf("after: %s %v, before: %s", after, err, before)
	}
	kept := state.OldFormatPath(path, 1)
	if raw, err := os.ReadFile(kept); err != nil || !bytes.Equal(raw, old) {
		t.Errorf("the old file is not kept: %v", err)
	}
	if got, err := readAll(t.Context(), kept); err != nil || got != before {
		t.Errorf("the kept file: %s %v", got, err)
	}
}

// TestMigrationOfADamagedFile leaves it where and as it is.
func TestMigrationOfADamagedFile(t *testing.T) {
	t.Parallel()
	path := formatOne(t)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(raw, []byte(`"state":"done"`))
	write(t, path, int64(at), `{`)
	spoiled, _ := os.ReadFile(path)
	s, err := state.Open(path)
	if err == nil {
		_ = s.Close()
	}
	if errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, spoiled) {
		t.Errorf("it was changed: %v", err)
	}
	if names, _ := filepath.Glob(path + ".*"); len(names) != 0 {
		t.Errorf("left behind: %q", names)
	}
}
