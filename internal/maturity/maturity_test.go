// SPDX-License-Identifier: Apache-2.0

package maturity_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/maturity"
)

// TestParts: each test that is said to prove a part is one of the source, and what is said
// to be proven on more than the simulator has one.
func TestParts(t *testing.T) {
	t.Parallel()
	tests, function := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	if err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(tests) < 1000 {
		t.Fatalf("%d tests were read", len(tests))
	}
	if got, want := maturity.Sentence(maturity.Parts()[:2]), "of 2 parts of this ironrail, 0 were proven on hardware, 2 on emulated machines"; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q...", got, want)
	}
	seen := map[string]bool{}
	for _, p := range maturity.Parts() {
		if seen[p.Name] || p.On == "" || p.Open == "" {
			t.Errorf("%+v: twice, or not whole", p)
		}
		seen[p.Name] = true
		if p.Level > maturity.Simulated && len(p.Tests) == 0 {
			t.Errorf("%s: no test shows that it is proven on %s", p.Name, p.Level)
		}
		for _, name := range p.Tests {
			if !tests[name] {
				t.Errorf("%s: there is no test %s", p.Name, name)
			}
		}
	}
}
