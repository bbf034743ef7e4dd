// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"os"
	"path/filepath"
	"testing"
)

// TestKeep: a repository that has a second name is there, whole, after a later build
// took its place; one of other options is not.
func TestKeep(t *testing.T) {
	t.Parallel()
	key, err := LoadKey(filepath.Join(t.TempDir(), "repo.asc"))
	if err != nil {
		t.Fatal(err)
	}
	old := Options{Dir: t.TempDir(), Name: "rdma-os", Packages: []string{"rdma-core"}, Image: Image{Digest: "sha256:old"}, Key: key}
	next := old
	next.Image.Digest = "sha256:new"
	kept := old
	kept.Name = "rdma-os-at-old"
	if found, err := Keep(t.Context(), old, kept.Name); found || err != nil {
		t.Errorf("nothing is built: %v, %v", found, err)
	}
	if _, err := Simulate(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if found, err := Keep(t.Context(), next, "rdma-os-at-new"); found || err != nil {
		t.Errorf("of other options: %v, %v", found, err)
	}
	for range 2 { // twice is harmless
		if found, err := Keep(t.Context(), old, kept.Name); !found || err != nil {
			t.Fatalf("%v, %v", found, err)
		}
	}
	if _, err := Simulate(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(old.Dir, old.Name)); err != nil { // all that later builds sweep away
		t.Fatal(err)
	}
	r, found, err := Find(kept)
	if err != nil || !found {
		t.Fatalf("%v, %v", found, err)
	}
	if err := r.Verify(t.Context(), key); err != nil {
		t.Error(err)
	}
	if found, err := Keep(t.Context(), old, kept.Name); !found || err != nil {
		t.Errorf("kept before: %v, %v", found, err)
	}
}
