// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/provision/gaps"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// readmeSize is how large README.md may be, in bytes: it is read at once.
const readmeSize = 9000

// drawing is the README's picture with the command that draws it.
var drawing = regexp.MustCompile("(?s)<img src=\"(docs/[^\"]+\\.svg)\".*?Drawn by `ironrail -C ([^ `]+) ([^`]+)`")

// TestPictureOfREADME draws the README's picture with the command that it names.
func TestPictureOfREADME(t *testing.T) {
	t.Parallel()
	m := drawing.FindStringSubmatch(read(t, "README.md"))
	if m == nil {
		t.Fatal("README.md has no picture with its command")
	}
	drawn := filepath.Join(t.TempDir(), "drawn.svg")
	if out, err := run(t, append([]string{"-C", filepath.Join(top, m[2]), "--out", drawn}, strings.Fields(m[3])...)...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := os.ReadFile(drawn)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(top, m[1])
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
		t.Errorf("%s is not what `ironrail -C %s %s` draws (%v): go test ./docs -update", m[1], m[2], m[3], err)
	}
}

// TestREADMESaysWhatDoesNotWork: it names each setting that is refused or ignored, has
// room for nothing else, and counts as the program does.
func TestREADMESaysWhatDoesNotWork(t *testing.T) {
	t.Parallel()
	page := read(t, "README.md")
	if len(page) > readmeSize {
		t.Errorf("README.md has %d bytes, and may have %d", len(page), readmeSize)
	}
	_, part, _ := strings.Cut(page, "\n## What does not work yet\n")
	part, _, _ = strings.Cut(part, "\n## ")
	for _, s := range gaps.Settings() {
		name := s.Name[strings.LastIndexByte(s.Name, '.')+1:]
		if name == "" {
			name = s.Block
		}
		if !strings.Contains(part, "`"+name+"`") {
			t.Errorf("README.md does not say that %s does not work", name)
		}
	}
	checks, err := filepath.Glob("checks/*.*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, count := range []string{fmt.Sprintf("%d kinds of faults", len(fault.Rows())), fmt.Sprintf("%d checks", len(checks))} {
		if !strings.Contains(page, count) {
			t.Errorf("README.md does not say %q", count)
		}
	}
}
