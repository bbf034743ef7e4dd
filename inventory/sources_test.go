// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSources: every file that a site is made of is watched, those that functions read and those
// that are not there too, also where the files cannot be used; what else lies in the folder is not.
func TestSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("site.hcl", `locals {
  motto = trimspace(file("notes/motto.txt"))
  late  = fileexists("notes/late.txt")
}
use "extra" { source = "./extra" }
`)
	put("extra/extra.hcl", "locals { one = 1 }\n")
	for _, c := range []struct {
		name, text string
		changed    bool
	}{
		{"notes/motto.txt", "first", true}, // without it the files cannot be used
		{"notes/motto.txt", "second one", true},
		{"notes/late.txt", "here", true},
		{"extra/extra.hcl", "locals { one = 11 }\n", true},
		{"extra/new.hcl", "locals { two = 2 }\n", true},
		{"more.hcl.json", "{}", true},
		{"ironrail.lock", "# none\n", true},
		{"notes/other.txt", "nobody reads it", false},
		{"nodes.csv", "nobody reads it", false},
		{".state/owned.hcl", "hidden", false},
		{"broken.hcl", "node {", true},
		{"broken.hcl", "node {{", true},
	} {
		inv, _, _ := Load(dir, Options{})
		if inv.Sources.HaveChanged() {
			t.Fatalf("changed before %s has", c.name)
		}
		if put(c.name, c.text); inv.Sources.HaveChanged() != c.changed {
			t.Errorf("after %s was written: changed is %v", c.name, !c.changed)
		}
	}
	missing := filepath.Join(dir, "missing")
	inv, _, _ := Load(missing, Options{})
	if inv.Sources.HaveChanged() {
		t.Error("a folder that is not there has changed")
	}
	if put("missing/site.hcl", ""); !inv.Sources.HaveChanged() {
		t.Error("a folder that is there now has not changed")
	}
	if none := (*Sources)(nil); !none.HaveChanged() {
		t.Error("files that nobody has loaded are as they were")
	}
}
