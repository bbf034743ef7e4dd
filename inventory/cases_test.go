// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// casesFound is a finding in the wanted part of a case.
var casesFound = regexp.MustCompile(`(?m)^(?:error|warning) ([a-z]+\.[a-z-]+) `)

// TestEveryCheckHasACase fails for a check of the loader that no case of
// diagnostics shows, with its exact place and words.
func TestEveryCheckHasACase(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/diagnostics/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	shown := map[string]bool{}
	for _, p := range paths {
		src, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range casesFound.FindAllSubmatch(src, -1) {
			shown[string(m[1])] = true
		}
	}
	for check := range checksInCode(t) {
		if !shown[check] {
			t.Errorf("no case of testdata/diagnostics shows the check %s", check)
		}
	}
}
