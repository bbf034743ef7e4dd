// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/images/repo"
)

// TestWholeRepos: a repository that was read once is not read again, until a file
// of it changes.
func TestWholeRepos(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, err := repo.LoadKey(filepath.Join(dir, "repo.asc"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := repo.Simulate(t.Context(), repo.Options{Dir: filepath.Join(dir, "repo"), Name: "rdma", Packages: []string{"rdma-core"}, Key: key,
		Image: repo.Image{Digest: "sha256:0", Status: write("status"), Sources: write("sources"), Keyring: write("keyring")}})
	if err != nil {
		t.Fatal(err)
	}
	var w wholeRepos
	if err := w.verify(t.Context(), got, key); err != nil {
		t.Fatal(err)
	}
	debs, err := filepath.Glob(filepath.Join(got.Dir, "*", "*.deb"))
	if err != nil || len(debs) == 0 {
		t.Fatalf("no package: %v", err)
	}
	info, err := os.Stat(debs[0])
	if err != nil {
		t.Fatal(err)
	}
	other := make([]byte, info.Size())
	if err := os.WriteFile(debs[0], other, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(debs[0], time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := w.verify(t.Context(), got, key); err != nil {
		t.Errorf("read again though nothing seems changed: %v", err)
	}
	if err := os.Chtimes(debs[0], time.Time{}, info.ModTime().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := w.verify(t.Context(), got, key); err == nil {
		t.Error("a changed package counts as whole")
	}
}
