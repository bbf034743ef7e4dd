// SPDX-License-Identifier: Apache-2.0

package resident_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/provision/resident"
)

// owner is a resident of the smallest site, and its folder.
func owner(t *testing.T) (folder string) {
	t.Helper()
	dir := t.TempDir()
	inv, diags, _ := provision.Load("../../cmd/ironrail/testdata", inventory.Options{Now: time.Now()})
	if inv == nil || !inventory.Complete(diags) {
		t.Fatal(diags)
	}
	folder = filepath.Join(dir, "state")
	load := func(bool) (*provision.Site, *inventory.Sources, error) {
		site, err := provision.Open(inv, provision.Options{State: folder})
		return site, inv.Sources, err
	}
	if _, _, err := load(true); err != nil {
		t.Fatal(err)
	}
	o, err := control.AcquireToStay(folder, "serve", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	store, err := state.Open(onrecord.Place{Folder: folder}.File())
	if err != nil {
		t.Fatal(err)
	}
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	r, err := resident.Open(t.Context(), resident.Config{Store: store, Fence: fence, Owner: o.Identity, Bus: event.NewBus(100), Boot: resident.BootAuto,
		Load: load, Version: "v2"})
	if err != nil {
		t.Fatal(err)
	}
	socket, err := o.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- control.Serve(ctx, socket, r, "v2") }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-served, r.Close(context.Background()), store.Close(), o.Release()); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// borrow borrows the state as a command of a version of the program.
func borrow(t *testing.T, folder, command, version string) (*onrecord.Borrowed, error) {
	return onrecord.Place{Folder: folder}.Borrow(t.Context(), control.Borrower{Identity: control.Identity{PID: 7, Command: command, Started: time.Now()}, Program: version})
}

// TestLoan: one command at a time changes the state, under the versions of what it has read; a
// program of another version is refused by name, and a loan ends with its connection.
func TestLoan(t *testing.T) {
	folder := owner(t)
	copies := t.TempDir()
	t.Setenv("TMPDIR", copies)
	if _, err := borrow(t, folder, "apply", "v1"); err == nil || !strings.Contains(err.Error(), "serve is ironrail v2, and apply is v1") {
		t.Errorf("an older program: %v", err)
	}
	s, err := borrow(t, folder, "apply", "v2")
	if err != nil {
		t.Fatal(err)
	}
	_, err = borrow(t, folder, "rebuild", "v2")
	if _, owned := errors.AsType[onrecord.OwnedError](err); !owned || !strings.Contains(err.Error(), "apply (pid 7) since") {
		t.Errorf("a second loan: %v", err)
	}
	k := state.Key{Kind: "test", Name: "a/b?c"}
	if _, err := s.Append(t.Context(), state.Fence{}, state.Batch{Puts: []state.Put{{Key: k, Want: state.Absent, Value: []byte(`{"n":1}`)}}}); err != nil {
		t.Fatal(err)
	}
	o, known, err := s.Object(t.Context(), k)
	if err != nil || !known || string(o.Value) != `{"n":1}` {
		t.Fatalf("read back %s, %v, %v", o.Value, known, err)
	}
	all, err := s.Objects(t.Context(), "test")
	if err != nil || len(all) != 1 || all[0].Version != o.Version {
		t.Errorf("a list after the append: %v, %v", all, err)
	}
	if left, err := os.ReadDir(copies); err != nil || len(left) > 0 {
		t.Errorf("a command that is killed now leaves %v, %v", left, err)
	}
	if _, err := s.Append(t.Context(), state.Fence{}, state.Batch{Puts: []state.Put{{Key: k, Want: o.Version + 1, Value: []byte(`2`)}}}); err == nil || !strings.Contains(err.Error(), "is at version") {
		t.Errorf("an append to what has moved: %v", err)
	}
	first, err := s.Append(t.Context(), state.Fence{}, state.Batch{ID: "MINE", Records: []state.Record{{Kind: state.Note, Data: []byte(`"a"`)}}})
	if at, done, errOutcome := s.Outcome(t.Context(), state.Fence{}, "MINE"); err != nil || errOutcome != nil || !done || at != first {
		t.Errorf("the outcome of append %d: %d %v %v, %v", first, at, done, errOutcome, err)
	}
	if _, err := s.Append(t.Context(), state.Fence{}, state.Batch{Puts: []state.Put{{Key: k, Want: o.Version}}}); err != nil {
		t.Error(err)
	}
	if _, known, err := s.Object(t.Context(), k); known || err != nil {
		t.Errorf("after it was deleted: %v, %v", known, err)
	}
	p := &plan.Plan{ID: "p1"}
	if _, err := s.Begin(t.Context(), control.RunRequest{Sum: "x"}, p, plan.Key("not the site's")); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "the plan is not taken") {
		t.Errorf("a plan with another seal: %v", err)
	}
	if st, err := s.Owner().Status(t.Context()); err != nil || !strings.Contains(strings.Join(st.Serves, "\n"), "apply (pid 7) since") {
		t.Errorf("status while the state is lent: %q, %v", st.Serves, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var again *onrecord.Borrowed
	for end := time.Now().Add(10 * time.Second); again == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		again, err = borrow(t, folder, "rebuild", "v2")
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), state.Fence{}, state.Batch{}); err == nil {
		t.Error("a loan that has ended appends")
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestOwnerStarts: a command that comes while the owner reads its site is refused as one that
// comes second, and says what to do.
func TestOwnerStarts(t *testing.T) {
	folder := t.TempDir()
	o, err := control.AcquireToStay(folder, "serve", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, err = borrow(t, folder, "apply", "v2")
	if _, owned := errors.AsType[onrecord.OwnedError](err); !owned || !strings.Contains(err.Error(), "does not answer yet") || errkind.Action(err) == "" {
		t.Errorf("while it starts: %v", err)
	}
	if err := o.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err = borrow(t, folder, "apply", "v2"); err == nil || errkind.Action(err) != "Run the command again." {
		t.Errorf("once it has ended: %v", err)
	}
}
