// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory/language"
)

// TestDocs checks that docs/language.md names every block and attribute, and
// every check that the code can report.
func TestDocs(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)
	var walk func(path string, s language.Spec)
	walk = func(path string, s language.Spec) {
		for _, a := range s.Attrs {
			if !strings.Contains(doc, "`"+a.Name+"`") {
				t.Errorf("docs/language.md does not name %s.%s", path, a.Name)
			}
		}
		for _, b := range s.Blocks {
			if !strings.Contains(doc, "`"+b.Type+"`") && !strings.Contains(doc, "`"+b.Type+" \"") {
				t.Errorf("docs/language.md does not name the block %s.%s", path, b.Type)
			}
			walk(path+"."+b.Type, b.Body)
		}
	}
	for _, b := range topSpecs(DefaultKinds()) {
		if !strings.Contains(doc, "### "+b.Type) && !strings.Contains(doc, "`"+b.Type+"`") {
			t.Errorf("docs/language.md does not name the block %s", b.Type)
		}
		walk(b.Type, b.Body)
		for kind, s := range b.Kinds {
			if !strings.Contains(doc, kind) {
				t.Errorf("docs/language.md does not name the kind %s of %s", kind, b.Type)
			}
			walk(b.Type+"."+kind, s)
		}
	}
	for _, f := range language.FunctionNames() {
		if !strings.Contains(doc, "`"+f+"`") {
			t.Errorf("docs/language.md does not name the function %s", f)
		}
	}
	for check := range checksInCode(t) {
		if !strings.Contains(doc, "`"+check+"`") {
			t.Errorf("docs/language.md does not name the check %s", check)
		}
	}
}

// checksInCode finds the names of checks in the sources.
func checksInCode(t *testing.T) map[string]bool {
	t.Helper()
	named := regexp.MustCompile(`(?:Add\(|Check: |check := |check = |complain\(ref, |Import\([a-z]+, |: +)"([a-z]+\.[a-z-]+)"`)
	out := map[string]bool{}
	for _, dir := range []string{".", "language", "diag"} {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
				continue
			}
			src, err := os.ReadFile(dir + "/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range named.FindAllStringSubmatch(string(src), -1) {
				out[m[1]] = true
			}
		}
	}
	if len(out) < 40 {
		t.Errorf("only %d checks found in the sources", len(out))
	}
	return out
}
