// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"strings"
	"testing"
)

// TestRolloutSamples: the lines of a plan that the page shows are what the program
// prints.
func TestRolloutSamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("rollouts.md")
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("../cmd/ironrail/testdata/plan-rollout-large.golden")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "## Read the plan")
	part, _, _ = strings.Cut(part, "\n## ")
	seen := 0
	for line := range strings.Lines(part) {
		if text, code := strings.CutPrefix(line, "    "); code {
			seen++
			if !strings.Contains(string(golden), "\n"+text) {
				t.Errorf("no plan has the line %q", text)
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d lines of a plan", seen)
	}
}
