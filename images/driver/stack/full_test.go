// SPDX-License-Identifier: Apache-2.0

//go:build driversfull

package stack_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/cuda"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/images/driver/rocm"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

// `make drivers-lab` runs these tests: Debian 12's own driver packages, built by
// DKMS in root file systems of their own, with this package driving apt. They need
// root, mmdebstrap, some 4 GB of disk, a mirror of Debian, and about ten minutes.

// kernel is the one whose headers the modules are built with: that of Debian's
// security updates, which the open module 535.261.03 does not know.
const kernel = "6.1.0-56-amd64"

const mirror = "http://deb.debian.org/debian"

// chroot is a root file system as a node: commands run in it, and the kernel that
// it says to run is the one of its image, for it has none of its own.
type chroot struct{ dir string }

// Run implements onnode.Nodes.
func (c chroot) Run(ctx context.Context, _ string, cmd onnode.Command) (onnode.Output, error) {
	if slices.Equal(cmd.Argv, []string{"uname", "-r"}) {
		return onnode.Output{Stdout: []byte(kernel + "\n")}, nil
	}
	run := exec.CommandContext(ctx, "chroot", append([]string{c.dir}, cmd.Argv...)...)
	run.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/root"}
	run.WaitDelay = 10 * time.Second
	var out, errs bytes.Buffer
	run.Stdin, run.Stdout, run.Stderr = bytes.NewReader(cmd.Stdin), &out, &errs
	err := run.Run()
	if ee, ok := errors.AsType[*exec.ExitError](err); ok {
		return onnode.Output{Stdout: out.Bytes(), Stderr: errs.Bytes(), Exit: ee.ExitCode()}, nil
	}
	return onnode.Output{Stdout: out.Bytes(), Stderr: errs.Bytes()}, err
}

// text is what a command in it prints.
func (c chroot) text(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := onnode.Do(t.Context(), c, "n1", argv...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// base makes the root file system that the others are copies of.
func base(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("not root: a root file system cannot be made")
	}
	peertest.Need(t, "mmdebstrap")
	if made := os.Getenv("DRIVERS_LAB_BASE"); made != "" {
		return made // one that an earlier run made
	}
	tar := filepath.Join(t.TempDir(), "base.tar")
	components := " main contrib non-free non-free-firmware"
	out, err := exec.CommandContext(t.Context(), "mmdebstrap", "--mode=root", "--variant=apt", "--architectures=amd64", "--include=initramfs-tools,kmod,passwd",
		"bookworm", tar, "deb "+mirror+" bookworm"+components, "deb "+mirror+" bookworm-updates"+components, "deb "+mirror+"-security bookworm-security"+components).CombinedOutput()
	if err != nil {
		t.Fatalf("mmdebstrap: %v\n%s", err, out)
	}
	return tar
}

// unpack makes one node of the base.
func unpack(t *testing.T, tar string) chroot {
	t.Helper()
	c := chroot{t.TempDir()}
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", c.dir, "-xf", tar).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	proc := filepath.Join(c.dir, "proc") // dkms does not work without
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "proc", "proc", proc).CombinedOutput(); err != nil {
		t.Skipf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", proc).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return c
}

// lab is the controller's part: repositories that are really downloaded, and served.
type lab struct {
	t      *testing.T
	dir    string
	image  repo.Image
	recipe stack.Recipe
	node   *inventory.Node
	url    string
	key    *modsign.Key // that signs modules; nil: none is signed
}

func newLab(t *testing.T, c chroot, recipe stack.Recipe) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir(), recipe: recipe}
	keep := t.TempDir() // as the image store keeps them: what the image has, not what the node has by now
	for name, from := range map[string]string{"status": "var/lib/dpkg/status", "sources": "etc/apt/sources.list", "keyring": "usr/share/keyrings/debian-archive-keyring.gpg"} {
		b, err := os.ReadFile(filepath.Join(c.dir, from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(keep, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l.image = repo.Image{Digest: "sha256:" + strings.Repeat("0", 64), Status: filepath.Join(keep, "status"), Sources: filepath.Join(keep, "sources"), Keyring: filepath.Join(keep, "keyring")}
	image := &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm", Kernel: "linux-image-" + kernel}
	l.node = &inventory.Node{Name: "n1", Image: image, Hardware: &inventory.Hardware{}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(l.dir)), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(ln) }() // ends when it is closed
	t.Cleanup(func() { _ = server.Close() })
	l.url = "http://" + ln.Addr().String() + "/"
	return l
}

// Ensure implements manager.Repositories.
func (l *lab) Ensure(ctx context.Context, d *inventory.Driver, image string, say func(string)) (manager.Repository, error) {
	key, err := repo.LoadKey(filepath.Join(l.dir, "key.asc"))
	if err != nil {
		return manager.Repository{}, err
	}
	l.node.Drivers = []*inventory.Driver{d}
	sel, err := stack.Select(l.recipe, &inventory.Inventory{Nodes: []*inventory.Node{l.node}}, d, l.node.Image, kernel, func() (*modsign.Key, error) { return l.key, nil })
	if err != nil {
		return manager.Repository{}, err
	}
	r, err := repo.Build(ctx, repo.Options{Dir: l.dir, Name: d.Name, Packages: sel.Packages, Pins: sel.Pins, Sources: sel.Sources, Components: sel.Components, Made: sel.Made, Image: l.image, Key: key, Say: say})
	if err != nil {
		return manager.Repository{}, err
	}
	rel, err := filepath.Rel(l.dir, r.Dir)
	seen := manager.Repository{URL: l.url + rel + "/", ArmoredKey: r.Key, Packages: r.Packages, Kernel: kernel}
	if l.key != nil {
		seen.Signer = manager.Signer{Name: l.key.Name(), Serial: l.key.Serial()}
	}
	return seen, err
}

// Find implements manager.Repositories.
func (l *lab) Find(ctx context.Context, d *inventory.Driver, image string) (manager.Repository, bool, error) {
	r, err := l.Ensure(ctx, d, image, func(string) {})
	return r, err == nil, err
}

func block(kind, version, module string) *inventory.Driver {
	return &inventory.Driver{Block: inventory.Block{Kind: kind, Name: "gpu", Ranges: map[string]hcl.Range{}, Value: cty.ObjectVal(map[string]cty.Value{
		"version": cty.StringVal(version), "module": cty.StringVal(module)})}, Version: version}
}

// install brings a version to the node and says how long that took.
func (l *lab) install(c chroot, d *inventory.Driver) (*onnodetest.Run, error) {
	l.t.Helper()
	began := time.Now()
	run := onnodetest.NewRun()
	k := stack.New(l.recipe, c, l)
	if err := k.Prepare(l.t.Context(), d, "os", func(text string) { l.t.Log(text) }); err != nil {
		return run, err
	}
	prepared := time.Since(began)
	err := k.Install(l.t.Context(), run, driver.Target{Node: l.node, Driver: d})
	for ref, b := range run.Evidence {
		l.t.Logf("%s:\n%s\n...\n%s", ref, b[:min(len(b), 2000)], b[max(0, len(b)-2000):])
	}
	l.t.Logf("%s %s %s: repository %.1f s, installed in %.1f s", d.Kind, d.Version, d.Text("module"), prepared.Seconds(), (time.Since(began) - prepared).Seconds())
	return run, err
}

// TestPeerDebianCUDA installs, upgrades and downgrades the proprietary driver.
func TestPeerDebianCUDA(t *testing.T) {
	c := unpack(t, base(t))
	l := newLab(t, c, cuda.Recipe)
	for _, step := range []struct{ version, want string }{{"535.261.03", "535.261.03"}, {"535", "535."}, {"535.261.03", "535.261.03"}} {
		if _, err := l.install(c, block(cuda.Name, step.version, "proprietary")); err != nil {
			t.Fatal(err)
		}
		got := c.text(t, "modinfo", "-k", kernel, "-F", "version", "nvidia-current")
		if !strings.HasPrefix(got, step.want) || step.version == "535" && got == "535.261.03" {
			t.Errorf("module is %s, want %s", got, step.want)
		}
		packages := c.text(t, "dpkg-query", "--show", "--showformat=${Package} ${Version}\n", "nvidia-smi", "libcuda1", "libnvidia-ml1", "firmware-nvidia-gsp", "nvidia-alternative")
		for line := range strings.Lines(packages) {
			if !strings.Contains(line, " "+got+"-") {
				t.Errorf("beside module %s stands %s", got, line)
			}
		}
	}
	notMoved(t, c)
}

// acpiCall is a stack with a small module of Debian's, which no hardware is needed for.
func acpiCall(t driver.Target, b stack.Base) (stack.Set, error) {
	return stack.Set{Packages: []string{stack.HeadersPackage(t.Node.Image, b), "acpi-call-dkms"}, Module: stack.Module{Name: "acpi_call", Package: "acpi-call-dkms"}}, nil
}

// TestPeerDebianSigned installs stacks on a node with Secure Boot: their modules are built and
// signed on the controller, the node has neither dkms nor headers nor a compiler, and what is
// found is the module with the site's signature, also after an upgrade of the system.
func TestPeerDebianSigned(t *testing.T) {
	tar := base(t)
	for name, s := range map[string]struct {
		recipe        stack.Recipe
		file, version string
	}{"small": {acpiCall, "acpi_call", ""}, "CUDA": {cuda.Recipe, "nvidia-current", "535.261.03"}} {
		t.Run(name, func(t *testing.T) {
			c := unpack(t, tar)
			l := newLab(t, c, stack.Signed(s.recipe))
			path := filepath.Join(t.TempDir(), "modules.pem")
			if err := modsign.Create(path, "lab", time.Now()); err != nil {
				t.Fatal(err)
			}
			var err error
			if l.key, err = modsign.Load(path); err != nil {
				t.Fatal(err)
			}
			l.node.Hardware.SecureBoot = true
			d := block(cuda.Name, "535.261.03", "proprietary")
			if _, err := l.install(c, d); err != nil {
				t.Fatal(err)
			}
			for field, want := range map[string]string{"sig_key": l.key.Serial(), "signer": l.key.Name(), "version": s.version, "filename": "/lib/modules/" + kernel + "/updates/ironrail/gpu/" + s.file + ".ko"} {
				if got := c.text(t, "modinfo", "-k", kernel, "-F", field, s.file); got != want {
					t.Errorf("%s of the module is %q, want %q", field, got, want)
				}
			}
			have := "\n" + c.text(t, "dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n")
			for _, name := range []string{"dkms", "gcc", "make", "linux-headers-" + kernel} {
				if strings.Contains(have, "\n"+name+" installed") {
					t.Errorf("%s is installed", name)
				}
			}
			for _, name := range append(l.packages(t, d), "ironrail-dkms", "ironrail-modules-gpu") {
				if !strings.Contains(have, "\n"+name+" installed") {
					t.Errorf("%s is not installed", name)
				}
			}
			if o, _, err := stack.New(l.recipe, c, l).Verify(t.Context(), driver.Target{Node: l.node, Driver: d}); err != nil || !strings.HasPrefix(o.Evidence, "kernel module ") || !strings.Contains(o.Evidence, " is not loaded") {
				t.Errorf("verified: %s (%s): %v", o.State, o.Evidence, err)
			}
			if name == "CUDA" {
				notMoved(t, c)
			}
		})
	}
}

// packages are those that the recipe asks for.
func (l *lab) packages(t *testing.T, d *inventory.Driver) []string {
	t.Helper()
	set, err := l.recipe(driver.Target{Node: l.node, Driver: d}, stack.BaseOf(l.node.Image))
	if err != nil {
		t.Fatal(err)
	}
	return set.Packages
}

// TestPeerDebianVersions moves the libraries alone, up and down, with all of them held:
// no module is built, so that it is quick.
func TestPeerDebianVersions(t *testing.T) {
	c := unpack(t, base(t))
	l := newLab(t, c, func(t driver.Target, b stack.Base) (stack.Set, error) {
		s, err := cuda.Recipe(t, b)
		s.Packages = slices.DeleteFunc(s.Packages, func(p string) bool { return p == s.Module.Package || strings.HasPrefix(p, "linux-headers-") })
		s.Module.Package = ""
		return s, err
	})
	last := ""
	for _, version := range []string{"535.261.03", "535", "535.261.03"} {
		if _, err := l.install(c, block(cuda.Name, version, "proprietary")); err != nil {
			t.Fatal(err)
		}
		got := c.text(t, "dpkg-query", "--show", "--showformat=${Version}\n", "libcuda1", "nvidia-smi", "libnvidia-ml1", "nvidia-alternative")
		if all := strings.Fields(got); len(all) != 4 || strings.Count(got, all[0]) != 4 || got == last || version != "535" && !strings.HasPrefix(got, version+"-") {
			t.Errorf("%s: versions %q", version, all)
		}
		last = got
	}
	notMoved(t, c)
}

// notMoved: every package of the driver is held, and an upgrade of the system moves
// none.
func notMoved(t *testing.T, c chroot) {
	t.Helper()
	held := strings.Fields(c.text(t, "apt-mark", "showhold"))
	for line := range strings.Lines(c.text(t, "dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", "*nvidia*")) {
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), " installed"); ok && !slices.Contains(held, name) {
			t.Errorf("%s is not held", name)
		}
	}
	c.text(t, "apt-get", "-qq", "update")
	if would := c.text(t, "apt-get", "-s", "-qq", "dist-upgrade"); strings.Contains(would, "nvidia") || strings.Contains(would, "libcuda") {
		t.Errorf("an upgrade of the system would move the driver:\n%s", would)
	}
}

// TestPeerDebianOpenModule: the pair that is known not to build is refused at the plan;
// where nobody knows, the compiler's words are the cause.
func TestPeerDebianOpenModule(t *testing.T) {
	c := unpack(t, base(t))
	l := newLab(t, c, cuda.Recipe)
	d := block(cuda.Name, "535.261.03", "open")
	if found := stack.New(l.recipe, c, l).Fits(driver.Target{Node: l.node, Driver: d}); !found.HasErrors() {
		t.Error("the plan does not refuse the pair")
	}
	if _, err := l.install(c, d); errkind.Of(err) != errkind.Mismatch {
		t.Errorf("the pair is not refused: %v", err)
	}
	l.recipe = func(t driver.Target, b stack.Base) (stack.Set, error) { // as with tables that know no kernel
		b.Kernel = ""
		return cuda.Recipe(t, b)
	}
	run, err := l.install(c, d)
	if err == nil || len(run.Findings) != 1 {
		t.Fatalf("findings %+v: %v", run.Findings, err)
	}
	f := run.Findings[0]
	t.Logf("cause: %s\nevidence: %s", f.Cause, strings.Join(f.Evidence, "; "))
	if !strings.Contains(f.Cause, "nvidia-open-kernel-dkms did not build") || !strings.Contains(f.Cause, "too few arguments to function") {
		t.Errorf("cause %q", f.Cause)
	}
	log := ""
	for _, b := range run.Evidence {
		log += string(b)
	}
	if !strings.Contains(log, "pci_resize_resource") {
		t.Errorf("the compiler's words are no evidence: %d bytes", len(log))
	}
}

// TestPeerDebianROCm installs Debian's own ROCm, whose tools end with status 0 although
// there is no driver: it is not judged by that.
func TestPeerDebianROCm(t *testing.T) {
	c := unpack(t, base(t))
	l := newLab(t, c, rocm.Recipe)
	d := block(rocm.Name, "5.2", "")
	if _, err := l.install(c, d); err != nil {
		// The kernel's own amdgpu is not in a root file system without a kernel; the
		// packages are there all the same.
		t.Fatal(err)
	}
	said, err := c.Run(t.Context(), "n1", onnode.Command{Argv: []string{"rocm-smi"}})
	if err != nil || said.Exit != 0 || !strings.Contains(string(said.Stdout)+string(said.Stderr), "Driver not initialized") {
		t.Errorf("rocm-smi ends with %d and says %q %q: %v", said.Exit, said.Stdout, said.Stderr, err)
	}
	o, _, err := stack.New(l.recipe, c, l).Verify(t.Context(), driver.Target{Node: l.node, Driver: d})
	if err != nil || o.State == "conforms" {
		t.Errorf("a node without a driver %s (%s): %v", o.State, o.Evidence, err)
	}
	t.Log(o.Evidence)
	if c.text(t, "getent", "group", "render") == "" {
		t.Error("no group render")
	}
}
