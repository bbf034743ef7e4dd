// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
)

// killStore kills its own process at the at-th append.
type killStore struct {
	state.Store
	at   int64
	when statetest.Moment
	n    atomic.Int64
}

func (k *killStore) Append(ctx context.Context, f state.Fence, b state.Batch) (uint64, error) {
	now := k.n.Add(1) == k.at
	if now && k.when == statetest.BeforeCommit {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	seq, err := k.Store.Append(ctx, f, b)
	if now {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return seq, err
}

// bringUp is the child: it opens the state on disk and applies or resumes.
func bringUp(dir string, at int64, when statetest.Moment) (err error) {
	s, err := state.Open(filepath.Join(dir, "state.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx := context.Background()
	f, err := s.Claim(ctx, "test")
	if err != nil {
		return err
	}
	p, _, err := state.ReadUnfinishedPlan(ctx, s)
	if err != nil {
		return err
	}
	w := newWorld("n2/rail")
	w.dir, w.blind = filepath.Join(dir, "world"), true
	c := apply.Config{Plan: p, Stages: w.stages(), Store: &killStore{Store: s, at: at, when: when}, Fence: f, Capacity: siteCapacity, MaxErase: 4, Resume: p != nil}
	if p == nil {
		c.Plan = site(4)
		c.Plan.Lineage = s.Info().Lineage
	}
	r, err := apply.Run(ctx, c)
	if err == nil && r.Outcome != state.RunSomeFailed {
		err = fmt.Errorf("outcome %s: %+v", r.Outcome, r.Counts)
	}
	return err
}

// TestKilledProcess kills a real process, whose state is a real file, with
// SIGKILL, and goes on in the next one.
func TestKilledProcess(t *testing.T) {
	if dir := os.Getenv("IRONRAIL_TEST_KILL_DIR"); dir != "" {
		var at int64
		var when string
		if _, err := fmt.Sscan(os.Getenv("IRONRAIL_TEST_KILL_AT"), &at, &when); err != nil {
			t.Fatal(err)
		}
		if err := bringUp(dir, at, statetest.Moment(when)); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Parallel()
	for i, at := range []int{1, 2, 5, 9, 14, 23, 31, 42, 55, 68, 80, 90} {
		when := []statetest.Moment{statetest.BeforeCommit, statetest.AfterCommit}[i%2]
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "world"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := child(dir, at, when); err == nil {
			t.Fatalf("killed %s append %d: it lived", when, at)
		}
		_ = child(dir, 7, when) // the second life dies as well, if it lasts that long
		if err := child(dir, 0, when); err != nil {
			t.Fatalf("killed %s append %d, then resumed: %v", when, at, err)
		}
		checkEnd(t, dir)
	}
}

// child runs bringUp in a process of its own.
func child(dir string, at int, when statetest.Moment) error {
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledProcess$")
	cmd.Env = append(os.Environ(), "IRONRAIL_TEST_KILL_DIR="+dir, fmt.Sprintf("IRONRAIL_TEST_KILL_AT=%d %s", at, when))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// checkEnd wants three nodes accepted, one taken out, and every effect once.
func checkEnd(t *testing.T, dir string) {
	t.Helper()
	s := must[*state.Bolt](t)(state.OpenReadOnly(filepath.Join(dir, "state.db")))
	defer s.Close()
	accepted := 0
	for name, n := range must[map[string]state.Node](t)(state.ReadNodes(t.Context(), s)) {
		if n.Accepted {
			accepted++
		}
		if (n.Quarantine != nil) != (name == "n2") {
			t.Errorf("%s: quarantine %+v", name, n.Quarantine)
		}
	}
	files := must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(dir, "world")))
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".again") {
			t.Errorf("done twice: %s", f.Name())
		}
	}
	if accepted != 3 || len(files) != 4*4+1 {
		t.Errorf("%d nodes accepted, %d effects", accepted, len(files))
	}
}
