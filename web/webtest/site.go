// SPDX-License-Identifier: Apache-2.0

package webtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// kept is a rehearsal that is made once for the tests of a package.
var kept struct {
	sync.Once
	dir string
	err error
}

// Site is the example that is rehearsed, with the nodes that faults are planted in.
const (
	Site    = "hgx-h100"
	BadGPU  = "r01-u09" // one GPU is missing
	Healthy = "r01-u01"
)

// Kept copies what a rehearsal of the example hgx-h100 left: four nodes, one with a GPU too few. root is the
// repository's.
func Kept(t testing.TB, root string) string {
	t.Helper()
	kept.Do(func() { kept.dir, kept.err = keep(root) })
	if kept.err != nil {
		t.Fatal(kept.err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(kept.dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Remove removes what Kept has made: the last thing that TestMain does.
func Remove() { _ = os.RemoveAll(kept.dir) }

func keep(root string) (string, error) {
	dir, err := os.MkdirTemp("", "ironrail-web")
	if err != nil {
		return "", err
	}
	if err := Copy(dir, filepath.Join(root, "examples", Site)); err != nil {
		return dir, err
	}
	inv, err := Load(dir)
	if err != nil {
		return dir, err
	}
	f, err := fault.Parse("kind=missing-gpu,node=" + BadGPU)
	if err != nil {
		return dir, err
	}
	state := filepath.Join(dir, provision.StateFolder)
	bus, log := event.NewBus(100_000), &event.Log{Dir: filepath.Join(state, "events")}
	var wg sync.WaitGroup
	wg.Go(func() { _ = log.Follow(context.Background(), bus.Subscribe(0)) })
	_, err = rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 1, Faults: []fault.Fault{f}, Version: "test", Keep: state, OnEvent: bus.Emit})
	bus.Close()
	wg.Wait()
	return dir, err
}

// Copy copies the files of a site.
func Copy(to, from string) error {
	for _, pattern := range []string{"*.hcl", "*.csv"} {
		names, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(filepath.Join(to, filepath.Base(name)), b, 0o644)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// OpenSite opens a site for its report.
func OpenSite(inv *inventory.Inventory) (*provision.Site, error) {
	return provision.Open(inv, provision.Options{Look: true})
}

// Load loads a site as commands that show what is on record do. Beside an error it returns what was understood.
func Load(dir string) (*inventory.Inventory, error) {
	inv, diags, _ := provision.Load(dir, inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		return inv, fmt.Errorf("%s: %s", diags[0].Summary, diags[0].Detail)
	}
	return inv, nil
}
