// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/gaps"
)

// gapsPage lists what this version does not act on.
const gapsPage = "docs/gaps.md"

// gapTables are the parts of the page that are made from the program.
var gapTables = map[string]func() string{"settings": settingsTable, "kinds": kindsTable}

// TestGapsPage: the page lists each setting and each kind that the program does nothing
// with, and no other.
func TestGapsPage(t *testing.T) {
	t.Parallel()
	page, seen := read(t, gapsPage), 0
	got := marked.ReplaceAllStringFunc(page, func(part string) string {
		m := marked.FindStringSubmatch(part)
		render := gapTables[m[2]]
		if render == nil {
			t.Errorf("nobody makes the table %q", m[2])
			return part
		}
		seen++
		return m[1] + render() + m[4]
	})
	if seen != len(gapTables) {
		t.Errorf("%s has %d tables, want %d", gapsPage, seen, len(gapTables))
	}
	if got == page {
		return
	}
	if *update {
		if err := os.WriteFile(filepath.Join(top, gapsPage), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is out of date: go test ./docs -update\n%s", gapsPage, firstDifference(page, got))
}

func settingsTable() string {
	var b strings.Builder
	b.WriteString("| block | setting | is | because |\n|---|---|---|---|\n")
	for _, s := range gaps.Settings() {
		name := "all of it"
		if s.Name != "" {
			name = "`" + s.Name + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Block, name, s.Kind, s.Text)
	}
	return b.String()
}

func kindsTable() string {
	var b strings.Builder
	b.WriteString("| block | kind |\n|---|---|\n")
	for _, k := range provision.MissingKinds() {
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", k.Block, k.Kind)
	}
	return b.String()
}
