// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestActionsOfSites: each text that is replaced stands in the tests' sources: else it has
// changed there, and hosts without a site would be told to change one.
func TestActionsOfSites(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	err := filepath.WalkDir("../../validate", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(elsewhere); i += 2 {
		quoted := strconv.Quote(elsewhere[i])
		if text := all.String(); !strings.Contains(text, elsewhere[i]) && !strings.Contains(text, quoted[1:len(quoted)-1]) {
			t.Errorf("%q is in no source of validate", elsewhere[i])
		}
	}
	if got := testAgain("Find out what changed it on this node: `ironrail rebuild` installs what the site asks for."); got != "Find out what changed it on this node, and make it as the others." {
		t.Errorf("got %q", got)
	}
}
