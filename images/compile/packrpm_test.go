// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
)

// TestListFiles: names come from what was compiled, and none of them gets into a spec that rpmbuild
// would run, or take for several files.
func TestListFiles(t *testing.T) {
	t.Parallel()
	for name, fine := range map[string]bool{
		"all_reduce_perf_mpi": true, "a.b+c-1": true,
		"x%(id)_perf": false, "x%{nil}_perf": false, "*_perf": false, "x_perf\n%post": false, "x perf": false, `x"_perf`: false,
	} {
		tree := t.TempDir()
		if err := os.Mkdir(filepath.Join(tree, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, "bin", name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
		list, err := listFiles(tree)
		if fine && (err != nil || len(list) != 1 || list[0] != "bin/"+name) || !fine && errkind.Of(err) != errkind.Refused {
			t.Errorf("%q: %q, %v", name, list, err)
		}
	}
}
