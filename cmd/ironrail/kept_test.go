// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestKeepSite: the files of a site are copied with all folders, by whatever way it is named, but neither
// what is hidden nor the folder that they are copied to.
func TestKeepSite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	site, link := filepath.Join(dir, "site"), filepath.Join(dir, "link")
	for name, content := range map[string]string{"site.hcl": "a", "racks/r1.hcl": "b", ".git/config": "c", ".hidden": "d"} {
		path := filepath.Join(site, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(site, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to string }{{site, filepath.Join(dir, "beside")}, {link, filepath.Join(dir, "of-link")}, {site, filepath.Join(site, "within")}, {site, filepath.Join(link, "behind")}} {
		if err := os.MkdirAll(c.to, 0o755); err != nil {
			t.Fatal(err)
		}
		a := newApp(nil, nil)
		if a.dir = c.from; a.keepSite(c.to) != nil {
			t.Fatal(a.keepSite(c.to))
		}
		var got []string
		if err := fs.WalkDir(os.DirFS(c.to), ".", func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				got = append(got, path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, []string{"racks/r1.hcl", "site.hcl"}) {
			t.Errorf("from %s to %s: %s", c.from, c.to, strings.Join(got, ", "))
		}
		if info, err := os.Stat(filepath.Join(c.to, "site.hcl")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("site.hcl, which may have secrets: %v, %v", info.Mode(), err)
		}
		if err := os.RemoveAll(c.to); err != nil {
			t.Fatal(err)
		}
	}
}
