// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/cuda"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/system"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
)

// mirror makes and serves stand-ins of driver stacks. It implements
// manager.Repositories.
type mirror struct {
	dir    string
	recipe stack.Recipe
	inv    *inventory.Inventory
}

func newMirror(t *testing.T, r *systemtest.Rig, recipe stack.Recipe) *mirror {
	t.Helper()
	m := &mirror{dir: t.TempDir(), recipe: recipe, inv: r.Inv}
	must(t, os.WriteFile(filepath.Join(m.dir, "status"), nil, 0o644))
	ln, err := r.Board.At(systemtest.Controller).Listen(t.Context(), "tcp", systemtest.Controller.String()+":80")
	must(t, err)
	srv := &http.Server{Handler: http.FileServer(http.Dir(m.dir))}
	go func() { _ = srv.Serve(ln) }() // ends with Close
	t.Cleanup(func() { _ = srv.Close() })
	return m
}

func (m *mirror) Ensure(ctx context.Context, d *inventory.Driver, _ string, _ func(string)) (manager.Repository, error) {
	sel, err := stack.Select(m.recipe, m.inv, d, m.inv.Nodes[0].Image, system.DefaultKernel, nil)
	if err != nil {
		return manager.Repository{}, err
	}
	key, err := repo.LoadKey(filepath.Join(m.dir, "key.asc"))
	if err != nil {
		return manager.Repository{}, err
	}
	status := filepath.Join(m.dir, "status")
	image := repo.Image{Digest: "sha256:" + strings.Repeat("0", 64), Status: status, Sources: status, Keyring: status}
	if m.inv.Nodes[0].Image.Kind == "rhel" {
		image = repo.Image{Digest: image.Digest, Database: status, Repositories: status}
	}
	got, err := repo.Simulate(ctx, repo.Options{Dir: m.dir, Name: d.Name, Packages: sel.Packages, Pins: sel.Pins, Components: sel.Components, Key: key, Image: image})
	if err != nil {
		return manager.Repository{}, err
	}
	rel, err := filepath.Rel(m.dir, got.Dir)
	return manager.Repository{URL: "http://" + systemtest.Controller.String() + "/" + rel + "/", ArmoredKey: got.Key, Packages: got.Packages, Kernel: system.DefaultKernel}, err
}

func (m *mirror) Find(ctx context.Context, d *inventory.Driver, image string) (manager.Repository, bool, error) {
	got, err := m.Ensure(ctx, d, image, nil)
	return got, err == nil, err
}

// nvidia is a block of kind cuda on a node's own Debian.
func nvidia(n *inventory.Node, version, module string) driver.Target {
	d := &inventory.Driver{Block: inventory.Block{Kind: cuda.Name, Name: "gpu", Value: cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(module)})}, Version: version}
	n.Drivers = []*inventory.Driver{d}
	return driver.Target{Node: n, Driver: d}
}

// TestGPUDriver: the stage's own code brings a driver to a virtual node, moves it up
// and down, and finds it after a reboot.
func TestGPUDriver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(1, 1, 0)
		inv.Nodes[0].Image = &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm"}
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		m := newMirror(t, r, cuda.Recipe)
		kind := stack.New(cuda.Recipe, r, m)
		if out, _ := r.Sh("n1", "lsmod"); !strings.Contains(out, "nouveau") {
			t.Errorf("a GPU without a driver: %s", out)
		}
		for _, version := range []string{"535.261.03", "535.309.01", "535.261.03"} {
			rec, target := run{onnodetest.NewRun()}, nvidia(inv.Nodes[0], version, "proprietary")
			must(t, kind.Install(t.Context(), rec, target))
			must(t, kind.Start(t.Context(), rec, target))
			if o, _, err := kind.Verify(t.Context(), target); err != nil || o.State != "conforms" {
				t.Errorf("%s: %+v, %v", version, o, err)
			}
			if out, _ := r.Sh("n1", "cat /sys/module/nvidia/version; modinfo -F filename nvidia-current; apt-mark showhold; test -d /sys/module/nouveau"); !strings.HasPrefix(out, version+"\n/lib/modules/"+system.DefaultKernel+"/updates/dkms/nvidia-current.ko\n") || !strings.Contains(out, "\nnvidia-smi\n") {
				t.Errorf("%s: %q", version, out)
			}
		}
		if _, exit := r.Sh("n1", "apt-get install -y nvidia-smi=1"); exit != 100 {
			t.Errorf("an unknown version: %d", exit)
		}
		if out, exit := r.Sh("n1", "modprobe -r nvidia"); exit != 1 {
			t.Errorf("a module with services: %d %q", exit, out)
		}
	})
}

// TestGPUDriverRHEL is TestGPUDriver with dnf: versions move both ways, all is held, and what is let
// go of by hand is seen.
func TestGPUDriverRHEL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(1, 1, 0)
		inv.Nodes[0].Image = &inventory.Image{Block: inventory.Block{Kind: "rhel", Name: "os"}, Release: "9"}
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		m := newMirror(t, r, cuda.Recipe)
		kind := stack.New(cuda.Recipe, r, m)
		var target driver.Target
		for _, version := range []string{"580.126.16", "590.44.01", "580.126.16"} {
			rec := run{onnodetest.NewRun()}
			target = nvidia(inv.Nodes[0], version, "open")
			target.Driver.Value = cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal("open"), "repository": cty.ObjectVal(map[string]cty.Value{"url": cty.StringVal("http://mirror.example/cuda/rhel9/x86_64/")})})
			if found := kind.Fits(target); found.HasErrors() {
				t.Fatal(found)
			}
			must(t, kind.Install(t.Context(), rec, target))
			must(t, kind.Start(t.Context(), rec, target))
			if o, in, err := kind.Verify(t.Context(), target); err != nil || o.State != "conforms" || in.Packages["kmod-nvidia-open-dkms"] != version+"-1" {
				t.Errorf("%s: %+v, %+v, %v", version, o, in, err)
			}
			out, _ := r.Sh("n1", "cat /sys/module/nvidia/version /etc/dnf/plugins/versionlock.list /etc/dracut.conf.d/ironrail-gpu.conf; test -d /sys/module/nouveau")
			for _, want := range []string{version + "\n", "\nkmod-nvidia-open-dkms-0:" + version + "-1.*\n", "\nnvidia-driver-cuda-0:" + version + "-1.*\n", "omit_drivers+=\" nouveau \"\n"} {
				if !strings.Contains(out, want) {
					t.Errorf("%s: no %q in %q", version, want, out)
				}
			}
		}
		if out, exit := r.Sh("n1", `rpm --query --all --queryformat '%{NAME}\t%|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\t%|ARCH?{%{ARCH}}:{noarch}|\n'`); exit != 0 || !strings.Contains("\n"+out, "\nkmod-nvidia-open-dkms\t580.126.16-1\tx86_64\n") {
			t.Errorf("rpm lists %q, %d", out, exit)
		}
		if out, exit := r.Sh("n1", "dnf --assumeyes --enablerepo=ironrail-gpu install nvidia-driver-cuda-0:1-1"); exit != 1 {
			t.Errorf("an unknown version: %d %s", exit, out)
		}
		if _, exit := r.Sh("n1", "rm /etc/dnf/plugins/versionlock.list"); exit != 0 {
			t.Error("the list of locks stays")
		}
		if o, _, err := kind.Verify(t.Context(), target); err != nil || o.State != "differs" || !strings.Contains(o.Evidence, "kmod-nvidia-open-dkms is not held") || strings.Contains(o.Evidence, "kernel-devel") {
			t.Errorf("without locks: %+v, %v", o, err)
		}
	})
}

// TestUnbuiltModule: where no table knows it, the compiler says why a module is not
// there, and packages stay unconfigured.
func TestUnbuiltModule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(1, 1, 0)
		inv.Nodes[0].Image = &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm", Kernel: "linux-image-amd64"}
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		blind := func(t driver.Target, b stack.Base) (stack.Set, error) {
			b.Kernel = ""
			return cuda.Recipe(t, b)
		}
		rec, target := run{onnodetest.NewRun()}, nvidia(inv.Nodes[0], "535.261.03", "open")
		err := stack.New(blind, r, newMirror(t, r, blind)).Install(t.Context(), rec, target)
		if err == nil || len(rec.Findings) != 1 {
			t.Fatalf("%+v: %v", rec.Findings, err)
		}
		f := rec.Findings[0]
		if !strings.Contains(f.Cause, "nvidia-open-kernel-dkms did not build the kernel module nvidia-current-open for kernel "+system.DefaultKernel+": too few arguments to function 'pci_resize_resource'") {
			t.Errorf("cause %q", f.Cause)
		}
		if out, _ := r.Sh("n1", "dpkg-query -W --showformat='${Package} ${db:Status-Status}\n' nvidia-open-kernel-dkms"); strings.TrimSpace(out) != "nvidia-open-kernel-dkms half-configured" {
			t.Errorf("%q", out)
		}
	})
}
