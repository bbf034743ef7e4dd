// SPDX-License-Identifier: Apache-2.0

// Package driver_test tries the kinds of drivers on virtual nodes, which they reach by the
// real SSH client, with repositories of stand-ins.
package driver_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/inbox"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
)

// served is a stand-in repository on the controller. It implements
// manager.Repositories.
type served struct {
	manager.Repository
	dir string
}

func (s served) Ensure(context.Context, *inventory.Driver, string, func(string)) (manager.Repository, error) {
	return s.Repository, nil
}

func (s served) Find(context.Context, *inventory.Driver, string) (manager.Repository, bool, error) {
	return s.Repository, true, nil
}

// serveRepo serves a repository of packages until the bubble's test ends.
func serveRepo(t *testing.T, r *systemtest.Rig, names []string) served {
	t.Helper()
	dir := t.TempDir()
	key, err := repo.LoadKey(filepath.Join(dir, "key.asc"))
	if err != nil {
		t.Fatal(err)
	}
	status := filepath.Join(dir, "status")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := repo.Simulate(t.Context(), repo.Options{Dir: filepath.Join(dir, "repo"), Name: "rdma", Packages: names, Key: key,
		Image: repo.Image{Digest: "sha256:" + strings.Repeat("0", 64), Status: status, Sources: status, Keyring: status}})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := r.Board.At(systemtest.Controller).Listen(t.Context(), "tcp", systemtest.Controller.String()+":80")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.StripPrefix("/repo/", http.FileServer(http.Dir(got.Dir)))}
	go func() { _ = srv.Serve(ln) }() // ends with Close
	t.Cleanup(func() { _ = srv.Close() })
	return served{manager.Repository{URL: "http://" + systemtest.Controller.String() + "/repo/", ArmoredKey: got.Key, Packages: got.Packages}, got.Dir}
}

// run is a stage.Run on the bubble's clock.
type run struct{ *onnodetest.Run }

func (run) Clock() clock.Clock { return clock.Wall{} }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDriverStage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(1, 1, 0)
		inv.Nodes[0].Image = &inventory.Image{Block: inventory.Block{Name: "debian"}} // it has nothing yet
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		srv := serveRepo(t, r, append([]string{"rdma-core"}, systemtest.Packages...))
		d := &inventory.Driver{Block: inventory.Block{Kind: "inbox", Name: "rdma"}, Packages: append([]string{"rdma-core"}, systemtest.Packages...)}
		target := driver.Target{Node: inv.Nodes[0], Driver: d}
		kind, rec := inbox.New(r, srv), run{onnodetest.NewRun()}
		if o, _, err := kind.Verify(t.Context(), target); err != nil || o.State != stage.Differs || !strings.Contains(o.Evidence, "perftest is not installed") {
			t.Errorf("before: %+v, %v", o, err)
		}
		if out, exit := r.Sh("n1", "ibv_devices"); exit != 127 {
			t.Errorf("a program without its package: %d, %q", exit, out)
		}
		began := time.Now()
		if err := kind.Install(t.Context(), rec, target); err != nil {
			t.Fatal(err, rec.Evidence)
		}
		if took := time.Since(began); took < 2*time.Second || took > time.Minute {
			t.Errorf("the installation took %v", took)
		}
		o, in, err := kind.Verify(t.Context(), target)
		if err != nil || o.State != stage.Conforms || in.Packages["perftest"] == "" {
			t.Errorf("after: %+v, %+v, %v", o, in, err)
		}
		// A reboot keeps packages and loads the modules again.
		if _, exit := r.Sh("n1", "reboot"); exit != 0 {
			t.Fatal("reboot")
		}
		time.Sleep(time.Minute)
		if o, _, err := kind.Verify(t.Context(), target); err != nil || o.State != stage.Conforms {
			t.Errorf("after a reboot: %+v, %v", o, err)
		}
	})
}

// What apt says when the repository is not as it was.
func TestRepositoryFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
		want  string
	}{
		{"gone", func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) }, "The repository 'http://10.77.0.2/repo/ ./ Release' does not have a Release file."},
		{"index gone", func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "Packages.gz"))) }, "Failed to fetch http://10.77.0.2/repo/./Packages.gz  404  Not Found [IP: 10.77.0.2 80]"},
		{"index cut", func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, "Packages.gz"), 40)) }, "Hash Sum mismatch"},
		{"unsigned", func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "InRelease"), []byte("Origin: x\n"), 0o644))
		}, "Clearsigned file isn't valid"},
		{"packages gone", func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, "pool"))) }, "Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				inv := systemtest.NewSite(1, 1, 0)
				inv.Nodes[0].Image = nil
				r := systemtest.New(t, inv)
				defer r.Stop()
				r.Wait()
				srv := serveRepo(t, r, systemtest.Packages)
				c.spoil(t, srv.dir)
				d := &inventory.Driver{Block: inventory.Block{Kind: "inbox", Name: "rdma"}, Packages: systemtest.Packages}
				inv.Nodes[0].Image = &inventory.Image{}
				rec := run{onnodetest.NewRun()}
				err := inbox.New(r, srv).Install(t.Context(), rec, driver.Target{Node: inv.Nodes[0], Driver: d})
				said := ""
				for _, b := range rec.Evidence {
					said += string(b)
				}
				if err == nil || !strings.Contains(said, c.want) {
					t.Errorf("%v\n%s\nwant %q in it", err, said, c.want)
				}
			})
		})
	}
}
