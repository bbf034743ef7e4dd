// SPDX-License-Identifier: Apache-2.0

package vendorlist

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocs checks that the headers which docs/import.md promises are recognised.
func TestDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/import.md")
	if err != nil {
		t.Fatal(err)
	}
	_, columns, _ := strings.Cut(string(page), "| field | headers |")
	columns, _, _ = strings.Cut(columns, "\n\n")
	seen := map[Field]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (.*) \\|$").FindAllStringSubmatch(columns, -1) {
		seen[Field(m[1])] = true
		for _, h := range strings.Split(m[2], "; ") {
			if got, _ := matchHeader(h); got != Field(m[1]) {
				t.Errorf("docs/import.md: header %q is %q, not %q", h, got, m[1])
			}
		}
	}
	for _, f := range Fields() {
		if !seen[f] {
			t.Errorf("docs/import.md does not list the field %s", f)
		}
	}
}
