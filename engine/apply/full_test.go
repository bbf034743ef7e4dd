// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
	"github.com/ironrail/ironrail/internal/errkind"
)

// TestDiskFullRun: a run whose disk is full ends as one that was interrupted, and
// with room the next goes on to the same end.
func TestDiskFullRun(t *testing.T) {
	t.Parallel()
	small := statetest.SmallDisk(t, 90)
	dir := t.TempDir() // the world is elsewhere
	if err := os.Mkdir(filepath.Join(dir, "world"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(small, "state.db"), filepath.Join(dir, "state.db")); err != nil {
		t.Fatal(err)
	}
	err := bringUp(dir, 0, statetest.BeforeCommit)
	if errkind.Of(err) != errkind.Interrupted || err == nil || !strings.Contains(err.Error(), "disk full") || errkind.Action(err) == "" {
		t.Fatalf("kind %v, error %v", errkind.Of(err), err)
	}
	if p, err := state.VerifyFile(t.Context(), filepath.Join(small, "state.db")); err != nil || p.Last == 0 {
		t.Fatalf("%d records: %v", p.Last, err)
	}
	statetest.Room(t, small)
	if err := bringUp(dir, 0, statetest.BeforeCommit); err != nil {
		t.Fatalf("resumed: %v", err)
	}
	checkEnd(t, dir)
}

// TestDiskFullOfEvidence: when evidence finds no room the run ends, and no node is
// blamed for it.
func TestDiskFullOfEvidence(t *testing.T) {
	t.Parallel()
	small := statetest.SmallDisk(t, 40)
	s := state.NewMemory()
	c := config(t, s, steps("n1/a", "n2/a"), only(func(_ context.Context, r stage.Run, _ plan.Step) error {
		_, err := r.Attach("console", []byte(strings.Repeat("x", 80<<10)))
		return err
	}))
	c.EvidenceDir = filepath.Join(small, "evidence")
	_, err := apply.Run(t.Context(), c)
	if errkind.Of(err) != errkind.Interrupted || err == nil || !strings.Contains(err.Error(), "evidence console: disk full") {
		t.Errorf("kind %v, error %v", errkind.Of(err), err)
	}
	for name, n := range must[map[string]state.Node](t)(state.ReadNodes(t.Context(), s)) {
		if n.Quarantine != nil {
			t.Errorf("%s is blamed: %+v", name, n.Quarantine)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(c.EvidenceDir, "*", "*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}
