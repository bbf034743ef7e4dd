// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
)

// migrateThere names the file that a child of the test migrates.
const migrateThere = "IRONRAIL_TEST_MIGRATE"

// TestMigrationChild is the child of TestMigrationIsKilled.
func TestMigrationChild(t *testing.T) {
	path := os.Getenv(migrateThere)
	if path == "" {
		t.Skip("this is the child of another test")
	}
	s, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
}

// TestMigrationIsKilled: a process that is killed at any moment of a migration leaves the
// old file or the new one, and the next process has what was there.
func TestMigrationIsKilled(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	old, killed := 0, 0
	for i := range 24 {
		path := oldFormat(t, 1+i%2)
		before, err := readAll(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), self, "-test.run=^TestMigrationChild$")
		c.Env = append(os.Environ(), migrateThere+"="+path)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(i)*2*time.Millisecond, func() { _ = c.Process.Signal(syscall.SIGKILL) })
		if c.Wait() != nil {
			killed++
		}
		if r, err := state.OpenReadOnly(path); err != nil {
			t.Fatalf("killed after %d ms: %v", 2*i, err)
		} else {
			if r.Info().Format < state.Format {
				old++
			}
			_ = r.Close()
		}
		s, err := state.Open(path)
		if err != nil {
			t.Fatalf("the next process, %d ms: %v", 2*i, err)
		}
		if s.Info().Format != state.Format {
			t.Errorf("format %d", s.Info().Format)
		}
		_ = s.Close()
		if after, err := readAll(t.Context(), path); err != nil || after != before {
			t.Errorf("killed after %d ms: %s %v, before: %s", 2*i, after, err, before)
		}
	}
	t.Logf("%d were killed, %d before the new file was in place", killed, old)
	if killed == 0 {
		t.Error("no process was killed")
	}
}

// TestMigrationGoesOn: what a process that died left of a migration is in nobody's way.
func TestMigrationGoesOn(t *testing.T) {
	t.Parallel()
	for _, format := range []int{1, 2} {
		path := oldFormat(t, format)
		before, err := readAll(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".next", []byte("half of a file"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(path, state.OldFormatPath(path, format)); err != nil { // the last moment before the rename
			t.Fatal(err)
		}
		s, err := state.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		if after, err := readAll(t.Context(), path); err != nil || after != before || s.Migrated() != format {
			t.Errorf("format %d: %s %v", format, after, err)
		}
		if _, err := os.Stat(path + ".next"); !os.IsNotExist(err) {
			t.Errorf("what was left is left: %v", err)
		}
	}
}
