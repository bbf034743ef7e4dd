// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/validate"
)

const testsPage = "docs/tests.md"

// TestChecksAreThoseOfTheStage: the table is the list, and the report's page has what a
// report shows.
func TestChecksAreThoseOfTheStage(t *testing.T) {
	page := read(t, testsPage)
	want := checksTable()
	m := marked.FindStringSubmatchIndex(page)
	if m == nil {
		t.Fatalf("%s has no table", testsPage)
	}
	got := page[m[6]:m[7]]
	switch {
	case got == want:
	case *update:
		if err := os.WriteFile(filepath.Join(top, testsPage), []byte(page[:m[6]]+want+page[m[7]:]), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table of %s is out of date: go test ./docs -update\n%s", testsPage, firstDifference(got, want))
	}
	report := strings.ToLower(read(t, "docs/report.md"))
	for _, c := range validate.Checks {
		if !strings.Contains(report, "| "+strings.ToLower(c.Report.Title)+" |") && c.Report.Title != "" {
			t.Errorf("docs/report.md has no row %q", c.Report.Title)
		}
	}
}

// checksTable lists the checks in their order.
func checksTable() string {
	var b strings.Builder
	b.WriteString("| test | of each | tests | comes after |\n|---|---|---|---|\n")
	for i, c := range validate.Checks {
		var after []string
		for _, o := range validate.Checks[:i] {
			if c.Needs == nil || slices.Contains(c.Needs, o.Name) {
				after = append(after, "`"+o.Name+"`")
			}
		}
		fmt.Fprintf(&b, "| [`%s`](%s) | %s | %s | %s |\n", c.Name, c.Docs.Page, c.Scope, c.Docs.Says, strings.Join(after, ", "))
	}
	return b.String()
}

// TestNewCheckOfThePage: the example is a check that builds, and that is complete.
func TestNewCheckOfThePage(t *testing.T) {
	t.Parallel()
	page := read(t, testsPage)
	files, diffs := blocks(page, "go"), blocks(page, "diff")
	if len(files) != 1 || len(diffs) != 1 {
		t.Fatalf("%s has %d files and %d diffs: this test does not understand it", testsPage, len(files), len(diffs))
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	root, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(root, "validate/memlock/memlock.go"): write("memlock.go", files[0]),
		filepath.Join(root, "validate/checks.go"):          write("checks.go", patched(t, read(t, "validate/checks.go"), diffs[0])),
	}})
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-overlay", write("overlay.json", string(overlay)), "-run", "TestChecksAreComplete|TestNewCheck|TestPairs", "./validate")
	run.Dir = root
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("the check of %s: %v\n%s", testsPage, err, out)
	}
}

// patched applies the hunks of a diff that gives no line numbers.
func patched(t *testing.T, file, diff string) string {
	t.Helper()
	for _, hunk := range strings.Split(diff, "@@\n")[1:] {
		var old, fresh strings.Builder
		for line := range strings.Lines(hunk) {
			if line[0] != '+' {
				old.WriteString(line[1:])
			}
			if line[0] != '-' {
				fresh.WriteString(line[1:])
			}
		}
		if strings.Count(file, old.String()) != 1 {
			t.Fatalf("the file does not have once:\n%s", old.String())
		}
		file = strings.Replace(file, old.String(), fresh.String(), 1)
	}
	return file
}
