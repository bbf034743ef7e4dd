// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhyQuotesTheProgram: what docs/why.md shows stands so in the texts that are
// held to the program.
func TestWhyQuotesTheProgram(t *testing.T) {
	t.Parallel()
	var held strings.Builder
	for _, pattern := range []string{"rehearse/rehearsal/testdata/why/*.txt", "engine/why/answer_test.go"} {
		names, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			held.Write(raw)
		}
	}
	seen := 0
	for i, block := range strings.Split(read(t, "docs/why.md"), "```") {
		if i%2 == 0 || strings.HasPrefix(strings.TrimSpace(block), "ironrail ") {
			continue
		}
		for line := range strings.Lines(block) {
			if line = strings.TrimSpace(line); line != "" {
				seen++
				if !strings.Contains(held.String(), line) {
					t.Errorf("nothing that is tested says %q", line)
				}
			}
		}
	}
	if seen < 6 {
		t.Errorf("only %d lines are quoted", seen)
	}
}
