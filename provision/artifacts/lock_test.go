// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/lock"
)

// unpinned opens the artifacts of the site with these packages, from dir, with
// stand-ins for packages.
func unpinned(t *testing.T, dir, packages string) Artifacts {
	t.Helper()
	return open(t, dir, strings.Replace(site, "PACKAGES", packages, 1))
}

// open opens the artifacts of the site of a text, from dir, with stand-ins for packages.
func open(t *testing.T, dir, text string) Artifacts {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	inv, diags, _ := inventory.Load(dir, inventory.Options{Checks: []inventory.Check{CheckLock}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	state := filepath.Join(dir, "state")
	for _, d := range []string{"images", "repo", "keys"} {
		if err := os.MkdirAll(filepath.Join(state, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	a, err := New(inv, state, repo.Simulate).Open(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// bake puts an image of the given recipe into the store; what makes it another
// image.
func bake(t *testing.T, a Artifacts, recipe, what string) (digest string) {
	t.Helper()
	return bakeWith(t, a, recipe, what)
}

// bakeWith is bake with further files, whose content is their name.
func bakeWith(t *testing.T, a Artifacts, recipe, what string, more ...string) (digest string) {
	t.Helper()
	unlock, err := a.Images.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	dir := t.TempDir()
	src := store.Source{Name: "image.os", Recipe: recipe, Disk: filepath.Join(dir, "disk"), Files: map[string]string{}}
	if err := os.WriteFile(src.Disk, []byte(what), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{images.KernelFile, images.InitrdFile, images.StatusFile, images.SourcesFile, images.KeyringFile} {
		src.Files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(src.Files[name], nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range more {
		name, content, given := strings.Cut(x, "=")
		if !given {
			content = name
		}
		src.Files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(src.Files[name], []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	digest, err = a.Images.Put(t.Context(), src, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func recipeOf(t *testing.T, i *inventory.Image) images.Recipe {
	t.Helper()
	r, err := recipe(i, "")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// relock computes and writes the lock file, and returns the changes.
func relock(t *testing.T, a Artifacts, dir string, o LockOptions) (steps []LockStep) {
	t.Helper()
	u, err := a.Relock(roce.Addresses(a.inv), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Lock.Write(dir); err != nil {
		t.Fatal(err)
	}
	return u.Steps
}

func used(t *testing.T, a Artifacts) string {
	t.Helper()
	digest, err := a.Digest(a.inv.Images[0])
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// TestANewIronrailIsNoNewImage: a newer ironrail asks for another recipe of the
// same block. Nodes keep the locked image until somebody says otherwise.
func TestANewIronrailIsNoNewImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := unpinned(t, dir, "")
	if steps := relock(t, a, dir, LockOptions{}); len(steps) != 0 {
		t.Errorf("nothing is built, and %v", steps)
	}
	if _, err := os.Stat(filepath.Join(dir, lock.File)); err == nil {
		t.Error("there is a lock file of nothing")
	}
	now := recipeOf(t, a.inv.Images[0])
	old := bake(t, a, "sha256:"+one, "made by an older ironrail")
	entry := lock.Image{Name: "os", Inputs: now.Inputs(), Digest: old}
	l := &lock.Lock{}
	l.SetImage(entry)
	if _, err := l.Write(dir); err != nil {
		t.Fatal(err)
	}

	a = unpinned(t, dir, "")
	if got := used(t, a); got != old {
		t.Fatalf("the locked image is not used: %s", got)
	}
	fresh := bake(t, a, now.Digest(), "made by this version")
	if got := used(t, a); got != old {
		t.Errorf("a newer build of the same block is used: %s", got)
	}
	if steps := relock(t, a, dir, LockOptions{}); len(steps) != 0 {
		t.Errorf("locking again changes %v", steps)
	}
	if steps := relock(t, a, dir, LockOptions{Upgrade: true, Names: []string{"rail"}}); len(steps) != 0 {
		t.Errorf("upgrading something else changes %v", steps)
	}
	steps := relock(t, a, dir, LockOptions{Upgrade: true, Names: []string{"os"}})
	if len(steps) != 1 || steps[0].Action != LockChange || steps[0].Was != old || steps[0].Now != fresh {
		t.Errorf("upgrade: %v", steps)
	}
	if got := used(t, unpinned(t, dir, "")); got != fresh {
		t.Errorf("after the upgrade %s is used", got)
	}
}

// TestAChangedBlockIsANewImage: what the block declares is what counts.
func TestAChangedBlockIsANewImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := unpinned(t, dir, "")
	first := bake(t, a, recipeOf(t, a.inv.Images[0]).Digest(), "one")
	if steps := relock(t, a, dir, LockOptions{}); len(steps) != 1 || steps[0].Action != LockAdd || steps[0].Now != first {
		t.Errorf("the first lock: %v", steps)
	}
	a = unpinned(t, dir, `"nano"`)
	if got := used(t, a); got != "" {
		t.Errorf("the image without nano is used: %s", got)
	}
	if u, err := a.Relock(roce.Addresses(a.inv), LockOptions{}); err != nil || len(u.Steps) != 0 || len(u.Notes) != 1 || !strings.Contains(u.Notes[0], "declares other things") {
		t.Errorf("before the build: %+v, %v", u, err)
	}
	second := bake(t, a, recipeOf(t, a.inv.Images[0]).Digest(), "two")
	if steps := relock(t, a, dir, LockOptions{}); len(steps) != 1 || steps[0].Was != first || steps[0].Now != second {
		t.Errorf("after the build: %v", steps)
	}
}

// TestALockedImageThatIsElsewhere: without any image here, a plan is made for the
// locked one, which a run refuses before it erases; what is built here is used,
// and said.
func TestALockedImageThatIsElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := unpinned(t, dir, "")
	i := a.inv.Images[0]
	l := &lock.Lock{}
	l.SetImage(lock.Image{Name: "os", Inputs: recipeOf(t, i).Inputs(), Digest: "sha256:" + one})
	if _, err := l.Write(dir); err != nil {
		t.Fatal(err)
	}
	a = unpinned(t, dir, "")
	if got := used(t, a); got != "sha256:"+one {
		t.Errorf("got %q", got)
	}
	if err := a.Library("").Verify(context.Background(), "os"); err == nil {
		t.Error("an image that is not here is verified")
	}
	built := bake(t, a, recipeOf(t, i).Digest(), "built here")
	if got := used(t, a); got != built {
		t.Errorf("got %q, want what is built", got)
	}
	if u, err := a.Relock(roce.Addresses(a.inv), LockOptions{}); err != nil || len(u.Steps) != 0 || len(u.Notes) != 1 || !strings.Contains(u.Notes[0], "lock --upgrade os") {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestPackagesThatMoved: a repository that is built again with other packages is
// refused until it is taken, and says which package it was.
func TestPackagesThatMoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := unpinned(t, dir, "")
	bake(t, a, recipeOf(t, a.inv.Images[0]).Digest(), "one")
	d := a.inv.Drivers[0]
	ensure := func(a Artifacts) error {
		_, err := a.Repositories("").Ensure(t.Context(), d, "os", func(string) {})
		return err
	}
	if err := ensure(a); err != nil {
		t.Fatal(err)
	}
	steps := relock(t, a, dir, LockOptions{})
	if len(steps) != 2 || steps[1].Record != "closure" || steps[1].Now != "1 package" {
		t.Fatalf("%v", steps)
	}
	a = unpinned(t, dir, "")
	if err := ensure(a); err != nil {
		t.Errorf("the same packages are refused: %v", err)
	}

	c, _ := a.inv.Lock.Closure("rdma", "os") // as if the lock had an older build
	c.Packages[0].Version = "0.9"
	a.inv.Lock.SetClosure(c)
	if err := ensure(a); err == nil || !strings.Contains(err.Error(), "rdma-core 0.9 became 1.0~rehearsal1") {
		t.Errorf("another version: %v", err)
	}
	if _, found, err := a.Repositories("").Find(t.Context(), d, "os"); found || err != nil {
		t.Errorf("what is refused is found: %v", err)
	}
	if u, err := a.Relock(roce.Addresses(a.inv), LockOptions{}); err != nil || len(u.Steps) != 0 || len(u.Notes) != 1 || !strings.Contains(u.Notes[0], "lock --upgrade rdma") {
		t.Errorf("%+v, %v", u, err)
	}
	if steps := relock(t, a, dir, LockOptions{Upgrade: true, Names: []string{"rdma"}}); len(steps) != 1 || steps[0].Action != LockChange {
		t.Errorf("upgrade: %v", steps)
	}
	if err := ensure(unpinned(t, dir, "")); err != nil {
		t.Errorf("after the upgrade: %v", err)
	}
}

// TestWhatIsGoneIsPruned: entries of images and drivers without a block.
func TestWhatIsGoneIsPruned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := unpinned(t, dir, "")
	a.inv.Lock.SetImage(lock.Image{Name: "gone", Inputs: "sha256:" + one, Digest: "sha256:" + one})
	a.inv.Lock.SetClosure(lock.Closure{Driver: "gone", Image: "os", Inputs: "sha256:" + one})
	if steps := relock(t, a, dir, LockOptions{}); len(steps) != 0 {
		t.Errorf("removed without being asked: %v", steps)
	}
	if steps := relock(t, a, dir, LockOptions{Prune: true}); len(steps) != 2 || steps[0].Action != LockRemove {
		t.Errorf("prune: %v", steps)
	}
	if _, err := a.Relock(roce.Addresses(a.inv), LockOptions{Upgrade: true, Names: []string{"gone"}}); err == nil {
		t.Error("upgrading something that is no part of the site is no error")
	}
}
