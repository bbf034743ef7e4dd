// SPDX-License-Identifier: Apache-2.0

package ironrail

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// licence is what every Go file begins with.
const licence = "// SPDX-License-Identifier: Apache-2.0\n\n"

// TestLicence: every Go file begins with its licence (SPDX), but for those of test data,
// which may be of others.
func TestLicence(t *testing.T) {
	t.Parallel()
	checked := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || path != "." && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && !bytes.HasPrefix(text, []byte(licence)) {
			t.Errorf("%s does not begin with %q and an empty line", path, strings.TrimSpace(licence))
		}
		checked++
		return err
	})
	if err != nil || checked < 1000 {
		t.Errorf("%d files: %v", checked, err)
	}
}
