// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory/lock"
)

// TestVerifyRepositories: a repository is missing, then not locked, then locked; one that was
// changed is damaged, and one of other packages is said to be another.
func TestVerifyRepositories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := unpinned(t, dir, "")
	look := func(want RepositoryState, bad bool, says string) RepositoryCheck {
		t.Helper()
		calls := 0
		list, err := a.VerifyRepositories(t.Context(), nil, func(RepositoryCheck) { calls++ })
		if err != nil || len(list) != 1 || calls != 1 {
			t.Fatalf("%+v, %d, %v", list, calls, err)
		}
		if c := list[0]; c.State != want || c.Bad() != bad || !strings.Contains(c.Problem, says) || (c.Problem == "") != (c.Action == "") || c.Driver != "rdma" || c.Image != "os" {
			t.Errorf("%+v, want %s that says %q", c, want, says)
		}
		return list[0]
	}
	look(RepositoryMissing, true, "image os is not built")
	bake(t, a, recipeOf(t, a.inv.Images[0]).Digest(), "an image")
	look(RepositoryMissing, true, "no repository was made on this controller")
	if _, err := a.Repositories("").Ensure(t.Context(), a.inv.Drivers[0], "os", func(string) {}); err != nil {
		t.Fatal(err)
	}
	if c := look(RepositoryUnlocked, false, "has no packages of it"); c.Packages != 1 {
		t.Errorf("%+v", c)
	}
	relock(t, a, dir, LockOptions{})
	a = unpinned(t, dir, "")
	look(RepositoryLocked, false, "")
	closure, _ := a.inv.Lock.Closure("rdma", "os")
	closure.Packages[0].Digest = "sha256:" + one
	a.inv.Lock.Closures = []lock.Closure{closure}
	look(RepositoryOther, true, "is not what ironrail.lock has")
	closure.Inputs = "sha256:" + one
	a.inv.Lock.Closures = []lock.Closure{closure}
	look(RepositoryUnlocked, false, "ask for other packages")
	pool, err := filepath.Glob(filepath.Join(dir, "state/repo/*/sha256-*/pool/*.deb"))
	if err != nil || len(pool) != 1 {
		t.Fatalf("%q, %v", pool, err)
	}
	if err := os.WriteFile(pool[0], []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	look(RepositoryDamaged, true, "rdma-core")
	if _, err := a.VerifyRepositories(t.Context(), []string{"cuda"}, func(RepositoryCheck) {}); errkind.Of(err) != errkind.Refused || !strings.Contains(errkind.Action(err), "rdma") {
		t.Errorf("a driver that is none: %v", err)
	}
}

// TestPeerAddPackage: a file that was added is kept, once, and is an input of the driver's
// repository alone; its proof is looked at first.
func TestPeerAddPackage(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "dpkg-deb")
	dir := t.TempDir()
	a := unpinned(t, dir, "")
	bake(t, a, recipeOf(t, a.inv.Images[0]).Digest(), "an image")
	d := a.inv.Drivers[0]
	before, err := a.RepositoryOptions(d, "os")
	if err != nil {
		t.Fatal(err)
	}
	root, file := filepath.Join(dir, "root"), filepath.Join(dir, "tool_1.0_all.deb")
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "DEBIAN"), 0o755), os.WriteFile(filepath.Join(root, "DEBIAN/control"), []byte("Package: tool\nVersion: 1.0\nArchitecture: all\nMaintainer: n\nDescription: d\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "-b", root, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(b))
	if _, err := a.AddPackage(t.Context(), file, "rdma", repo.Proof{Sum: one}); errkind.Of(err) != errkind.Mismatch {
		t.Errorf("another digest: %v", err)
	}
	if o, err := a.RepositoryOptions(d, "os"); err != nil || len(o.Added) != 0 || closureInputs(o) != closureInputs(before) {
		t.Errorf("%+v, %v", o.Added, err)
	}
	for range 2 {
		got, err := a.AddPackage(t.Context(), file, "rdma", repo.Proof{Sum: sum})
		if want := (AddedPackage{"rdma", "tool", "1.0", "all", "sha256:" + sum, filepath.Join(dir, "state/added/rdma", sum, "tool_1.0_all.deb")}); err != nil || got != want {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
	}
	o, err := a.RepositoryOptions(d, "os")
	if err != nil || len(o.Added) != 1 || o.Added[0].Sum != sum || closureInputs(o) == closureInputs(before) {
		t.Errorf("%+v, %v", o.Added, err)
	}
	if list, err := a.added("rdma", true); err != nil || len(list) != 0 {
		t.Errorf("a .deb for a system of RPM: %+v, %v", list, err)
	}
	if list, err := a.added("other", false); err != nil || len(list) != 0 {
		t.Errorf("of another driver: %+v, %v", list, err)
	}
}

// TestMirrorSources: the repository of a driver's block is copied, from its own URL or from
// another; what cannot be is an error with the driver, and the rest is copied all the same.
func TestMirrorSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, err := repo.LoadKey(filepath.Join(dir, "vendor"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "vendor.asc"), key.Public(), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := repo.Simulate(t.Context(), repo.Options{Dir: filepath.Join(dir, "vendors"), Name: "v", Packages: []string{"rdma-core"}, Key: key, Image: repo.Image{Digest: "sha256:0", Status: none, Sources: none, Keyring: none}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.FileServer(http.Dir(made.Dir)))
	defer s.Close()
	const was = `driver "inbox" "rdma" { packages = ["rdma-core"] }`
	block := func(url string) string {
		return "driver \"inbox\" \"rdma\" {\n  packages = [\"rdma-core\"]\n  repository {\n    url = \"" + url + "\"\n    key = file(\"vendor.asc\")\n  }\n}"
	}
	to := filepath.Join(dir, "mirror")
	a := open(t, dir, strings.Replace(strings.Replace(site, was, block("http://mirror.example/v/"), 1), "PACKAGES", "", 1))
	done, err := a.MirrorSources(t.Context(), to, s.URL, []string{"rdma"}, func(string) {})
	if err != nil || len(done) != 1 || done[0].Packages != 1 || done[0].Driver != "rdma" || done[0].Image != "os" || done[0].Folder != filepath.Join(to, "mirror.example/v") {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, err := os.Stat(filepath.Join(done[0].Folder, "InRelease")); err != nil {
		t.Error(err)
	}
	a = open(t, dir, strings.Replace(strings.Replace(site, was, block(s.URL+"/absent/"), 1), "PACKAGES", "", 1))
	if done, err := a.MirrorSources(t.Context(), to, "", nil, func(string) {}); len(done) != 0 || errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "driver rdma for image os: ") {
		t.Errorf("%+v, %v of kind %v", done, err, errkind.Of(err))
	}
	a = unpinned(t, dir, "")
	if done, err := a.MirrorSources(t.Context(), to, "", nil, func(string) {}); len(done) != 0 || err != nil {
		t.Errorf("without a repository: %+v, %v", done, err)
	}
	if _, err := a.MirrorSources(t.Context(), to, "", []string{"rdma"}, func(string) {}); errkind.Of(err) != errkind.Refused {
		t.Errorf("a driver without a repository: %v", err)
	}
}
