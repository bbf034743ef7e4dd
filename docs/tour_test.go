// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tourPage shows what make demo prints; demoSite is what it rehearses.
const (
	tourPage = "docs/tour.md"
	demoSite = "examples/h100-su"
)

var (
	demo = regexp.MustCompile("(?s)(```\n\\$ make demo\n)(.*?)(```)")
	// What differs from run to run: the time of day, and what the rehearsal itself took.
	clocks = regexp.MustCompile(`(?m)^[0-9]{2}:[0-9]{2}:[0-9]{2} |Rehearsed in [0-9.hms]+|\s+Peak\s+memory\s+[0-9]+\s+MiB`)
)

// TestLongDemoOfTheTour runs what make demo runs and compares all of its lines. Their order
// is not compared, since what ends at the same moment ends in any order.
func TestLongDemoOfTheTour(t *testing.T) {
	if testing.Short() {
		t.Skip("a rehearsal of 32 nodes")
	}
	t.Parallel()
	faults := demoSite + "/faults/first-day.hcl"
	if line := "ironrail -C " + demoSite + " rehearse --faults " + faults + "\n"; !strings.Contains(read(t, "Makefile"), line) {
		t.Fatalf("make demo does not run %q", line)
	}
	out, err := run(t, "-C", filepath.Join(top, demoSite), "rehearse", "--faults", filepath.Join(top, faults))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	page := read(t, tourPage)
	m := demo.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("%s does not show what make demo prints", tourPage)
	}
	got, want := sortedLines(m[2]), sortedLines(out)
	if slices.Equal(got, want) {
		return
	}
	if *update {
		page = demo.ReplaceAllStringFunc(page, func(string) string { return m[1] + out + m[3] })
		if err := os.WriteFile(filepath.Join(top, tourPage), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is out of date: go test ./docs -update\n%s", tourPage, firstDifference(strings.Join(got, "\n"), strings.Join(want, "\n")))
}

// sortedLines are the lines of an output without what differs from run to run.
func sortedLines(out string) []string {
	lines := strings.Split(strings.TrimSpace(clocks.ReplaceAllString(out, "")), "\n")
	slices.Sort(lines)
	return lines
}
