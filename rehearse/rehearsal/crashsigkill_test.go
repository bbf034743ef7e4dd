// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// killFolder tells a child of TestCrashSIGKILL where its site and state are.
const killFolder = "IRONRAIL_TEST_CRASH_DIR"

// Of the rehearsals with a controller process of its own.
const (
	killSeed    = 5
	killSpeed   = 120                    // how much faster than in a room hardware is
	killLimit   = 15 * time.Minute       // ends what hangs, and judges nothing
	restartReal = 200 * time.Millisecond // until the controller is started again
)

// mostAtOnce is how many sites apart has addresses for.
const mostAtOnce = 16

// apart puts the site of 16 nodes at addresses that no other rehearsal has, since
// both processes have to know them without asking.
func apart(t *testing.T, dir string, slot int) {
	t.Helper()
	b, err := os.ReadFile("../../examples/scale/site.hcl")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(`"10.10.`, fmt.Sprintf(`"10.%d.`, 90+2*slot), `"10.20.`, fmt.Sprintf(`"10.%d.`, 91+2*slot)).Replace(string(b))
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func apartSite(t *testing.T, dir string) *inventory.Inventory {
	return load(t, dir, map[string]string{"nodes": "16"})
}

// controller is the child: it applies the site of a folder, or continues with what
// an earlier one has begun, on a virtual rack that another process runs.
func controller(t *testing.T, dir string) (err error) {
	ctx := context.Background()
	inv := apartSite(t, dir)
	board := network.NewSharedLoopback(0)
	w, err := rehearsal.NewRack(inv, killSeed, clock.NewFast(killSpeed), board) // never opened: it tells the addresses
	if err != nil {
		return err
	}
	site, err := rehearsal.OpenSite(ctx, inv, w, killSeed, dir, false)
	if err != nil {
		return err
	}
	store, err := state.Open(filepath.Join(dir, "state.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	fence, err := store.Claim(ctx, "test")
	if err != nil {
		return err
	}
	p, last, err := state.ReadUnfinishedPlan(ctx, store)
	if err != nil || p == nil && last.ID != "" {
		return err // an earlier one came to the end
	}
	resume := p != nil
	if p == nil {
		if p, _, err = site.Plan(ctx, store, provision.PlanOptions{Now: time.Now()}); err != nil {
			return err
		}
		p.Lineage = store.Info().Lineage
	}
	run, err := site.Begin(ctx, provision.RunOptions{Plan: p, Store: store, Fence: fence, Bus: event.NewBus(1 << 12), Resume: resume, EraseApproved: len(inv.Nodes)})
	if err != nil {
		return err
	}
	_, err = run.Run(ctx)
	return err
}

// controllerDies brings the 16 nodes up on real sockets with a controller that is a
// process of its own, and kills that after a while, unless it is zero. It returns
// how it ended and how long the controllers ran.
func controllerDies(t *testing.T, slot int, after time.Duration) (e ending, took time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), killLimit)
	defer cancel()
	dir := t.TempDir()
	apart(t, dir, slot)
	inv := apartSite(t, dir)
	board := network.NewSharedLoopback(0)
	w := must(rehearsal.NewRack(inv, killSeed, clock.NewFast(killSpeed), board))(t)
	must(rehearsal.OpenSite(ctx, inv, w, killSeed, dir, true))(t)
	for _, f := range broken(t) {
		if err := w.Plant(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Open(ctx); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	up, down := context.WithCancel(ctx)
	defer wg.Wait()
	defer down()
	wg.Go(func() {
		if err := w.Run(up); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	if after > 0 {
		child(t, ctx, dir, after)
		time.Sleep(restartReal)
	}
	child(t, ctx, dir, 0)
	took = time.Since(began)
	s := must(state.OpenReadOnly(filepath.Join(dir, "state.db")))(t)
	defer s.Close()
	e.look(t, inv, w, s)
	return e, took
}

// child runs a controller, and kills it after a while unless that is zero.
func child(t *testing.T, ctx context.Context, dir string, after time.Duration) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestCrashSIGKILL$")
	cmd.Env = append(os.Environ(), killFolder+"="+dir)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if after > 0 {
		defer time.AfterFunc(after, func() { _ = cmd.Process.Kill() }).Stop()
	}
	if err := cmd.Wait(); err != nil && after == 0 {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
}

// must ends the test when a call failed.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// alone waits until no other process of this machine runs the test: its sites have
// the same addresses.
func alone(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "ironrail-test-sigkill.lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// TestCrashSIGKILL kills the controller's process, whose state is a real file, at
// random moments of a bring-up on real sockets; the next process goes on. The end
// is the same as without a death, and nothing was done to a node twice.
func TestCrashSIGKILL(t *testing.T) {
	if dir := os.Getenv(killFolder); dir != "" {
		if err := controller(t, dir); err != nil {
			t.Fatal(err)
		}
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	t.Parallel() // it waits most of its time
	alone(t)
	kills := 1
	if *crash == "all" {
		kills = 30
	}
	want, whole := controllerDies(t, 0, 0)
	if strings.Count(want.text, "accepted=true") != 13 || len(want.twice) > 0 {
		t.Fatalf("without a death\n%s\n%v", want.text, want.twice)
	}
	t.Logf("without a death: %v", whole.Round(time.Millisecond))
	slots := make(chan int, mostAtOnce)
	for i := range mostAtOnce {
		slots <- i
	}
	var again atomic.Int64
	t.Run("deaths", func(t *testing.T) {
		for i := range kills {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				if kills > 1 { // a single one would wait for all other tests again
					t.Parallel()
				}
				slot := <-slots
				defer func() { slots <- slot }()
				after := (whole*time.Duration(i) + time.Duration(rand.Int64N(int64(whole)))) / time.Duration(kills)
				got, took := controllerDies(t, slot, after)
				again.Add(int64(got.cycles - want.cycles))
				if got.text != want.text {
					t.Errorf("killed after %v: another end\n%s", after, difference(got.text, want.text))
				}
				for _, l := range got.twice {
					t.Errorf("killed after %v: %s", after, l)
				}
				t.Logf("killed after %v: %v", after.Round(time.Millisecond), took.Round(time.Millisecond))
			})
		}
	})
	t.Logf("%d deaths; attempts that failed cost %d power cycles", kills, again.Load())
}
