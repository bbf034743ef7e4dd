// SPDX-License-Identifier: Apache-2.0

//go:build driversfull

package stack_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/cuda"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/internal/gpgtest"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/rhel"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

// rpmKernel is the kernel of the image as rpm has it: that of the stand-in of Rocky 9.6.
const rpmKernel = "9.6-1.el9.x86_64"

// rpmNode is the root of an image of kind rhel as a node. Its kernel is the one whose modules
// it has.
type rpmNode struct {
	chroot
	modules string
}

// Run implements onnode.Nodes.
func (n rpmNode) Run(ctx context.Context, name string, cmd onnode.Command) (onnode.Output, error) {
	if slices.Equal(cmd.Argv, []string{"uname", "-r"}) {
		return onnode.Output{Stdout: []byte(n.modules + "\n")}, nil
	}
	return n.chroot.Run(ctx, name, cmd)
}

// rpmLab is a controller with a node.
type rpmLab struct {
	*testing.T
	node   rpmNode
	target *inventory.Node
	dir    string // of the controller's repositories
	image  repo.Image
	vendor string // folder of the vendor's repository
	own    string // URL of the controller's repositories
	url    string // of the vendor's repository
	key    string // of the vendor
}

// newRPMLab builds an image, whose root is the node, and serves the repositories.
func newRPMLab(t *testing.T) *rpmLab {
	t.Helper()
	peertest.Need(t, "createrepo_c", "dnf", "gpg", "gpgconf", "mmdebstrap", "rpm", "rpmbuild", "unshare", "mke2fs", "mtype", "grub-mkimage")
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	system := os.Getenv("DRIVERS_LAB_RHEL") // made by an earlier run
	if system == "" {
		system = filepath.Join(t.TempDir(), "made")
		script(t, "../../rhel/testdata/repository.sh", t.TempDir(), "bookworm", system, "9.6 linux-image-cloud-amd64 dnf-plugins-core")
	}
	mirror := httptest.NewServer(http.FileServer(http.Dir(system)))
	t.Cleanup(mirror.Close)
	key := readFile(t, filepath.Join(system, "key.asc"))
	block := &inventory.Image{Block: inventory.Block{Kind: "rhel", Name: "os"}, Release: "9", Arch: inventory.AMD64, Repositories: []inventory.PackageRepository{
		{Name: "appstream", URL: mirror.URL + "/AppStream", Key: key}, {Name: "baseos", URL: mirror.URL + "/BaseOS", Key: key}}}
	folder := t.TempDir()
	src, err := rhel.Kind{}.Recipe(block, "").Build(t.Context(), folder, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	l := &rpmLab{T: t, dir: t.TempDir(), vendor: filepath.Join(t.TempDir(), "vendor"), target: &inventory.Node{Name: "n1", Image: block, Hardware: &inventory.Hardware{}}}
	l.image = repo.Image{Digest: "sha256:" + strings.Repeat("0", 64), Database: src.Files[images.DatabaseFile], Repositories: src.Files[images.RepositoriesFile]}
	l.node = rpmNode{chroot{filepath.Join(folder, "root")}, src.System.Kernel}
	l.mount()
	kernel, _ := strings.CutSuffix(rpmKernel, ".x86_64")
	script(t, "testdata/vendor.sh", t.TempDir(), l.vendor, kernel, src.System.Kernel)
	l.key = readFile(t, filepath.Join(l.vendor, "key.asc"))
	l.url = l.serve(http.FileServer(http.Dir(l.vendor)))
	l.own = l.serve(repo.Handler(l.dir, "/repo/")) + "repo/"
	return l
}

// mount gives the root what programs of it need of a running system.
func (l *rpmLab) mount() {
	l.Helper()
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "random": 8, "urandom": 9} {
		if err := unix.Mknod(filepath.Join(l.node.dir, "dev", name), unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))); err != nil {
			l.Fatal(err)
		}
	}
	proc := filepath.Join(l.node.dir, "proc")
	if out, err := exec.CommandContext(l.Context(), "mount", "-t", "proc", "proc", proc).CombinedOutput(); err != nil {
		l.Skipf("mount: %v: %s", err, out)
	}
	l.Cleanup(func() {
		if out, err := exec.Command("umount", proc).CombinedOutput(); err != nil {
			l.Errorf("umount: %v: %s", err, out)
		}
	})
}

func (l *rpmLab) serve(h http.Handler) string {
	s := httptest.NewServer(h)
	l.Cleanup(s.Close)
	return s.URL + "/"
}

func script(t *testing.T, argv ...string) {
	t.Helper()
	at, err := filepath.Abs(argv[0])
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "sh", append([]string{at}, argv[1:]...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", argv[0], err, out[max(0, len(out)-4000):])
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// block is a driver of a version from a repository.
func (l *rpmLab) block(version, url, key string) *inventory.Driver {
	return &inventory.Driver{Block: inventory.Block{Kind: cuda.Name, Name: "gpu", Ranges: map[string]hcl.Range{}, Value: cty.ObjectVal(map[string]cty.Value{
		"version": cty.StringVal(version), "module": cty.StringVal("open"),
		"repository": cty.ObjectVal(map[string]cty.Value{"url": cty.StringVal(url), "key": cty.StringVal(key)})})}, Version: version}
}

// options are those of the controller's repository of a driver.
func (l *rpmLab) options(d *inventory.Driver, say func(string)) (repo.Options, error) {
	key, err := repo.LoadKey(filepath.Join(l.dir, "key.asc"))
	if err != nil {
		return repo.Options{}, err
	}
	l.target.Drivers = []*inventory.Driver{d}
	sel, err := stack.Select(cuda.Recipe, &inventory.Inventory{Nodes: []*inventory.Node{l.target}}, d, l.target.Image, rpmKernel, nil)
	return repo.Options{Dir: l.dir, Name: d.Name, Packages: sel.Packages, Pins: sel.Pins, Sources: sel.Sources, Components: sel.Components, Image: l.image, Key: key, Say: say}, err
}

// Ensure implements manager.Repositories.
func (l *rpmLab) Ensure(ctx context.Context, d *inventory.Driver, _ string, say func(string)) (manager.Repository, error) {
	o, err := l.options(d, say)
	if err != nil {
		return manager.Repository{}, err
	}
	r, err := repo.Build(ctx, o)
	return manager.Repository{URL: l.own + d.Name + "/", ArmoredKey: r.Key, Packages: r.Packages, Kernel: rpmKernel}, err
}

// Find implements manager.Repositories.
func (l *rpmLab) Find(ctx context.Context, d *inventory.Driver, image string) (manager.Repository, bool, error) {
	r, err := l.Ensure(ctx, d, image, func(string) {})
	return r, err == nil, err
}

// install brings a driver to the node.
func (l *rpmLab) install(d *inventory.Driver) (*onnodetest.Run, error) {
	run := onnodetest.NewRun()
	err := stack.New(cuda.Recipe, l.node, l).Install(l.Context(), run, driver.Target{Node: l.target, Driver: d})
	for ref, b := range run.Evidence {
		l.Logf("%s:\n%s", ref, b[:min(len(b), 3000)])
	}
	return run, err
}

// versions are the installed packages of the driver, as rpm has them.
func (l *rpmLab) versions() []string {
	l.Helper()
	all := strings.Fields(l.node.text(l.T, "rpm", "--query", "--all", "--queryformat", "%{NAME}-%{EPOCHNUM}:%{VERSION}-%{RELEASE}.%{ARCH}\n", "*nvidia*", "dkms", "kernel-devel", "datacenter*", "*versionlock"))
	slices.Sort(all)
	return all
}

// TestPeerLikeRHELDriver resolves a driver from a repository like NVIDIA's for RHEL 9 with dnf,
// signs and serves its packages, and moves it up and down on a node with dnf, where an upgrade of
// the system leaves it alone. What has not the right signature or digest is refused.
func TestPeerLikeRHELDriver(t *testing.T) {
	l := newRPMLab(t)
	l.tryRefused()
	for _, step := range []struct{ version, want string }{{"580.126.16", "580.126.16"}, {"580", "580.173.02"}, {"590.44.01", "590.44.01"}, {"580.126.16", "580.126.16"}} {
		d := l.block(step.version, l.url, l.key)
		if _, err := l.install(d); err != nil {
			t.Fatalf("%s: %v", step.version, err)
		}
		v := "-3:" + step.want + "-1.el9."
		want := []string{"datacenter-gpu-manager-4-cuda13-1:4.4.1-1.x86_64", "dkms-0:3.1.8-1.el9.noarch", "kernel-devel-0:9.6-1.el9.x86_64", "kmod-nvidia-open-dkms" + v + "noarch", "libnvidia-ml" + v + "x86_64",
			"nvidia-driver-cuda" + v + "x86_64", "nvidia-driver-cuda-libs" + v + "x86_64", "nvidia-persistenced" + v + "x86_64", "python3-dnf-plugin-versionlock-0:9.6-1.el9.x86_64"}
		slices.Sort(want)
		if got := l.versions(); !slices.Equal(got, want) {
			t.Fatalf("%s: installed are\n%s\nwant\n%s", step.version, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		l.notMoved(step.version, step.want)
	}
	l.compareFiles()
	l.tryDamaged()
	l.tryAdded()
	l.tryPrecompiled()
}

// notMoved: all packages of the driver are held, verification finds nothing wrong with them, and
// an upgrade of the system from the vendor's own repository would move none.
func (l *rpmLab) notMoved(version, now string) {
	l.Helper()
	locked := l.node.text(l.T, "cat", "/etc/dnf/plugins/versionlock.list")
	for _, name := range []string{"nvidia-driver-cuda", "nvidia-driver-cuda-libs", "libnvidia-ml", "nvidia-persistenced", "kmod-nvidia-open-dkms"} {
		if !strings.Contains(locked, "\n"+name+"-3:"+now+"-1.el9.*\n") {
			l.Errorf("%s: %s is not locked:\n%s", version, name, locked)
		}
	}
	o, in, err := stack.New(cuda.Recipe, l.node, l).Verify(l.Context(), driver.Target{Node: l.target, Driver: l.block(version, l.url, l.key)})
	if err != nil || strings.Contains(o.Evidence, "is not held") || strings.Contains(o.Evidence, "is not installed;") || in.Packages["nvidia-driver-cuda"] != "3:"+now+"-1.el9" || !strings.Contains(o.Evidence, "kernel module") {
		l.Errorf("%s: %s, %+v, %v", version, o.Evidence, in.Packages, err)
	}
	repository := "[vendor]\nname=vendor\nbaseurl=" + l.url + "\nenabled=1\ngpgcheck=0\n"
	if err := os.WriteFile(filepath.Join(l.node.dir, "etc/yum.repos.d/vendor.repo"), []byte(repository), 0o644); err != nil {
		l.Fatal(err)
	}
	defer os.Remove(filepath.Join(l.node.dir, "etc/yum.repos.d/vendor.repo"))
	out, err := l.node.Run(l.Context(), "n1", onnode.Command{Argv: []string{"dnf", "--assumeno", "upgrade"}})
	if err != nil || strings.Contains(string(out.Stdout), "nvidia") || !strings.Contains(string(out.Stdout), "kernel-devel") {
		l.Errorf("%s: an upgrade of the system would move the driver, or not the headers for a new kernel: %v\n%s%s", version, err, out.Stdout, out.Stderr)
	}
}

// compareFiles looks at what is written beside packages.
func (l *rpmLab) compareFiles() {
	l.Helper()
	for name, want := range map[string]string{
		"etc/modprobe.d/ironrail-gpu.conf":     "blacklist nouveau\noptions nouveau modeset=0\noptions nvidia NVreg_RestrictProfilingToAdminUsers=0\n",
		"etc/dracut.conf.d/ironrail-gpu.conf":  "omit_drivers+=\" nouveau \"\n",
		"etc/modules-load.d/ironrail-gpu.conf": "nvidia\nnvidia_uvm\n",
	} {
		if got := readFile(l.T, filepath.Join(l.node.dir, name)); got != want {
			l.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	list := readFile(l.T, filepath.Join(l.node.dir, "etc/dnf/plugins/versionlock.list"))
	if err := os.WriteFile(filepath.Join(l.node.dir, "etc/dnf/plugins/versionlock.list"), []byte(strings.Replace(list, "libnvidia-ml-3:", "other-3:", 1)), 0o644); err != nil {
		l.Fatal(err)
	}
	o, _, err := stack.New(cuda.Recipe, l.node, l).Verify(l.Context(), driver.Target{Node: l.target, Driver: l.block("580.126.16", l.url, l.key)})
	if err != nil || o.State != "differs" || !strings.Contains(o.Evidence, "libnvidia-ml is not held") {
		l.Errorf("a lock that is gone: %s (%s), %v", o.State, o.Evidence, err)
	}
}

// tryRefused tries what the controller must not take.
func (l *rpmLab) tryRefused() {
	l.Helper()
	h := gpgtest.New(l.T)
	other := h.Public(h.NewKey("other", "rsa3072", "0"))
	changed := l.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := os.ReadFile(filepath.Join(l.vendor, filepath.Clean("/"+r.URL.Path)))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/libnvidia-ml-580.126.16") {
			b[len(b)-1] ^= 1
		}
		_, _ = w.Write(b)
	}))
	unindexed := func(drop string) string { // a copy whose index nobody signed
		dir := filepath.Join(l.TempDir(), "vendor")
		if err := os.CopyFS(dir, os.DirFS(l.vendor)); err != nil {
			l.Fatal(err)
		}
		for _, argv := range [][]string{{"sh", "-c", drop, "sh", dir}, {"createrepo_c", "--quiet", dir}} {
			if out, err := exec.CommandContext(l.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
				l.Fatalf("%v\n%s", err, out)
			}
		}
		return l.serve(http.FileServer(http.Dir(dir)))
	}
	for what, c := range map[string]struct {
		version, url, key string
		kind              errkind.Kind
		says              string
	}{
		"an index of another key":                {"580.126.16", l.url, other, errkind.Corrupt, "did not sign its index"},
		"packages of another key":                {"580.126.16", unindexed(`rm "$1"/repodata/*`), other, errkind.Mismatch, "GPG check FAILED"},
		"packages without a signature":           {"580.126.16", unindexed(`rm "$1"/repodata/*; rpm --delsign "$1"/*.rpm`), l.key, errkind.Mismatch, "is not signed"},
		"a package that was changed":             {"580.126.16", changed, l.key, errkind.Mismatch, "checksum"},
		"a version that is not there":            {"580.1.1", l.url, l.key, errkind.NotFound, "they have 580.126.16-1.el9, 580.173.02-1.el9, 590.44.01-1.el9"},
		"a repository that lacks what is needed": {"580.126.16", unindexed(`rm "$1"/repodata/* "$1"/dkms-*`), l.key, errkind.NotFound, "nothing provides dkms"},
	} {
		_, err := l.Ensure(l.Context(), l.block(c.version, c.url, c.key), "os", func(string) {})
		if errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) || errkind.Action(err) == "" {
			l.Errorf("%s: %v of kind %v, do %q; want one of kind %v that says %q", what, err, errkind.Of(err), errkind.Action(err), c.kind, c.says)
		}
	}
	// Packages that are signed take the place of an index that is not.
	if r, err := l.Ensure(l.Context(), l.block("580.126.16", unindexed(`rm "$1"/repodata/*`), l.key), "os", func(text string) { l.Log(text) }); err != nil || r.Packages["nvidia-driver-cuda"] != "3:580.126.16-1.el9" {
		l.Errorf("signed packages: %v, %v", r.Packages, err)
	}
}

// tryAdded: a package that no repository has, and that was added, is installed with the others.
func (l *rpmLab) tryAdded() {
	l.Helper()
	file := filepath.Join(l.vendor, "nvidia-container-toolkit-1.17.8-1.x86_64.rpm")
	c, err := repo.Inspect(l.Context(), file, repo.Proof{Key: []byte(l.key)})
	if err != nil {
		l.Fatal(err)
	}
	o, err := l.options(l.block("580.126.16", l.url, l.key), nil)
	if err != nil {
		l.Fatal(err)
	}
	o.Packages, o.Pins, o.Sources = []string{c.Name}, nil, nil // the vendor's repository is not asked
	o.Added = []repo.Added{{File: file, Sum: strings.TrimPrefix(c.Digest, "sha256:")}}
	r, err := repo.Build(l.Context(), o)
	if err != nil || len(r.Packages) != 1 || r.Packages[c.Name] != "1.17.8-1" {
		l.Fatalf("%v, %v", r.Packages, err)
	}
	m := manager.Dnf{On: manager.On{Nodes: l.node, Run: onnodetest.NewRun(), Node: "n1", Source: "gpu"}}
	seen := manager.Repository{URL: l.own + "gpu/", ArmoredKey: r.Key, Packages: r.Packages}
	if err := errors.Join(m.Configure(l.Context(), seen), m.Refresh(l.Context()), m.Install(l.Context(), seen, []string{c.Name})); err != nil {
		l.Error(err)
	}
	if got := l.node.text(l.T, "rpm", "--query", c.Name); got != "nvidia-container-toolkit-1.17.8-1.x86_64" {
		l.Errorf("installed is %q", got)
	}
}

// tryDamaged: a node installs no package that is another one than the signed index of the
// controller describes, and reads no index that its key did not sign. Verification of the
// controller finds both.
func (l *rpmLab) tryDamaged() {
	l.Helper()
	d := l.block("580.173.02", l.url, l.key)
	o, err := l.options(d, nil)
	if err != nil {
		l.Fatal(err)
	}
	r, err := repo.Build(l.Context(), o)
	if err != nil {
		l.Fatal(err)
	}
	if err := r.Verify(l.Context(), o.Key); err != nil {
		l.Error(err)
	}
	content, err := r.Content()
	if err != nil || len(content) != len(r.Packages) {
		l.Errorf("content: %v, %v", content, err)
	}
	for _, name := range []string{"pool/libnvidia-ml-580.173.02-1.el9.x86_64.rpm", "repodata/repomd.xml"} {
		at := filepath.Join(r.Dir, name)
		good := readFile(l.T, at)
		bad := []byte(good)
		bad[len(bad)-2] ^= 1
		if err := os.WriteFile(at, bad, 0o644); err != nil {
			l.Fatal(err)
		}
		if err := r.Verify(l.Context(), o.Key); errkind.Of(err) != errkind.Corrupt {
			l.Errorf("%s was changed: %v", name, err)
		}
		before := l.versions()
		m := manager.Dnf{On: manager.On{Nodes: l.node, Run: onnodetest.NewRun(), Node: "n1", Source: "gpu"}}
		seen := manager.Repository{URL: l.own + "gpu/", ArmoredKey: r.Key, Packages: r.Packages}
		err := errors.Join(m.Configure(l.Context(), seen), m.Hold(l.Context(), nil), m.Refresh(l.Context()))
		if err == nil {
			err = m.Install(l.Context(), seen, []string{"nvidia-driver-cuda"})
		}
		if err == nil || !slices.Equal(l.versions(), before) {
			l.Errorf("%s was changed, and installed: %v", name, err)
		}
		l.Logf("%s was changed: %.300s", name, err)
		if err := os.WriteFile(at, []byte(good), 0o644); err != nil {
			l.Fatal(err)
		}
	}
}

// tryPrecompiled: a module that the vendor built for the kernel of the image is resolved, served,
// installed and held by its own name; for another kernel there is none, which the controller says.
func (l *rpmLab) tryPrecompiled() {
	l.Helper()
	const built = "kmod-nvidia-open-580.126.16-9.6-1"
	d := l.block("580.126.16", l.url, l.key)
	values := d.Value.AsValueMap()
	values["precompiled"] = cty.True
	d.Value = cty.ObjectVal(values)
	if err := os.Remove(filepath.Join(l.node.dir, "lib/modules", l.node.modules, "extra/nvidia.ko")); err != nil {
		l.Fatal(err)
	}
	if _, err := l.install(d); err != nil {
		l.Fatalf("precompiled: %v", err)
	}
	if got := l.node.text(l.T, "rpm", "--query", built); got != built+"-580.126.16-1.el9.x86_64" {
		l.Errorf("installed is %q", got)
	}
	if locked := l.node.text(l.T, "cat", "/etc/dnf/plugins/versionlock.list"); !strings.Contains(locked, "\n"+built+"-3:580.126.16-1.el9.*\n") {
		l.Errorf("it is not locked:\n%s", locked)
	}
	other := l.block("580.173.02", l.url, l.key)
	values["version"] = cty.StringVal(other.Version)
	other.Value = cty.ObjectVal(values)
	if _, err := l.Ensure(l.Context(), other, "os", func(string) {}); errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "kmod-nvidia-open-580.173.02-9.6-1") || errkind.Action(err) == "" {
		l.Errorf("a pair that is not there: %v", err)
	}
}
