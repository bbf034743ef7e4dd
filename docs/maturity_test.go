// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/maturity"
)

// maturityTables are the pages that say what this program was proven on, with what of
// them is made from it.
var maturityTables = map[string]func() string{"docs/maturity.md": partsTable, "README.md": levelsTable}

// TestMaturity: the pages say what the program says.
func TestMaturity(t *testing.T) {
	t.Parallel()
	for name, render := range maturityTables {
		page := read(t, name)
		got := marked.ReplaceAllStringFunc(page, func(part string) string {
			m := marked.FindStringSubmatch(part)
			return m[1] + render() + m[4]
		})
		if !strings.Contains(got, render()) {
			t.Errorf("%s has no table", name)
		}
		switch {
		case got == page:
		case *update:
			if err := os.WriteFile(filepath.Join(top, name), []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s is out of date: go test ./docs -update\n%s", name, firstDifference(page, got))
		}
	}
}

// partsTable is all that is known of each part.
func partsTable() string {
	var b strings.Builder
	b.WriteString("| part | level | proven on | never seen | shown by |\n|---|---|---|---|---|\n")
	for _, p := range maturity.Parts() {
		var tests []string
		for _, name := range p.Tests {
			tests = append(tests, "`"+name+"`")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", p.Name, p.Level, p.On, p.Open, strings.Join(tests, ", "))
	}
	return b.String()
}

// levelsTable names the parts of each level.
func levelsTable() string {
	parts := map[maturity.Level][]string{}
	for _, p := range maturity.Parts() {
		parts[p.Level] = append(parts[p.Level], p.Name)
	}
	var b strings.Builder
	b.WriteString("| proven on | parts |\n|---|---|\n")
	for _, row := range []struct {
		level maturity.Level
		text  string
	}{{maturity.Hardware, "hardware"}, {maturity.Emulated, "emulated machines"}, {maturity.Peers, "programs of others"}, {maturity.Simulated, "our simulator alone"}} {
		fmt.Fprintf(&b, "| %s | %s |\n", row.text, strings.Join(parts[row.level], "; "))
	}
	return b.String()
}
