// SPDX-License-Identifier: Apache-2.0

package power

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory/unit"
)

// TestKilo: a load over its limit is written as more than it.
func TestKilo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		watts           unit.Watts
		atLeast, atMost string
	}{
		{0, "0W", "0W"},
		{150, "150W", "150W"},
		{150.2, "151W", "150W"},
		{42_000, "42kW", "42kW"},
		{36_227.6, "36.3kW", "36.2kW"},
		{2_944, "3kW", "2.9kW"},
		{1_234_567, "1.235MW", "1.234MW"},
	} {
		if got := atLeast(c.watts); got != c.atLeast {
			t.Errorf("%v at least: got %s, want %s", float64(c.watts), got, c.atLeast)
		}
		if got := atMost(c.watts); got != c.atMost {
			t.Errorf("%v at most: got %s, want %s", float64(c.watts), got, c.atMost)
		}
	}
}

// TestEveryCheck: each check has its page, a case that shows it, and its name in
// the language's table.
func TestEveryCheck(t *testing.T) {
	t.Parallel()
	read := func(pattern string) string {
		var all strings.Builder
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("nothing at %s: %v", pattern, err)
		}
		for _, p := range paths {
			if strings.HasSuffix(p, "_test.go") {
				continue
			}
			src, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(src)
		}
		return all.String()
	}
	cases, language := read("testdata/diagnostics/*.txtar"), read("../../docs/language.md")
	checks := map[string]bool{}
	for _, m := range regexp.MustCompile(`"((?:power|cooling|weight)\.[a-z-]+)"`).FindAllStringSubmatch(read("*.go"), -1) {
		checks[m[1]] = true
	}
	if len(checks) < 15 {
		t.Errorf("only %d checks were found in the sources: this test reads them wrongly", len(checks))
	}
	for check := range checks {
		page := read("../../docs/checks/" + check + ".md")
		for _, part := range []string{"# " + check + "\n", "\n## What\n", "\n## Why\n", "\n## Source\n", "\n## How to fix\n"} {
			if !strings.Contains(page, part) {
				t.Errorf("docs/checks/%s.md has no %q", check, part)
			}
		}
		if !strings.Contains(cases, "error "+check+" ") && !strings.Contains(cases, "warning "+check+" ") {
			t.Errorf("no case shows %s", check)
		}
		if !strings.Contains(language, "`"+check+"`") {
			t.Errorf("docs/language.md does not name %s", check)
		}
	}
}
