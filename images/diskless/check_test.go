// SPDX-License-Identifier: Apache-2.0

package diskless

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	kinds := inventory.DefaultKinds()
	spec := kinds.Image[inventory.KindDiskless]
	spec.Check = Check
	kinds.Image[inventory.KindDiskless] = spec
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Kinds: &kinds})
}

// TestRecipe: a system in memory is another image than the same on a disk, of each
// distribution.
func TestRecipe(t *testing.T) {
	t.Parallel()
	for os, release := range map[string]string{"debian": "12", "ubuntu": "24.04", "rhel": "9"} {
		memory := &inventory.Image{Block: inventory.Block{Kind: inventory.KindDiskless, Name: "w"}, OS: os, Release: release, Arch: inventory.AMD64}
		disk := *memory
		disk.Kind, disk.OS = os, ""
		if err := (Kind{}).Supports(memory); err != nil {
			t.Errorf("%s: %v", os, err)
		}
		a, b := Kind{}.Recipe(memory, ""), of(memory).Recipe(&disk, "")
		if a.Digest() == b.Digest() || a.Inputs() == b.Inputs() {
			t.Errorf("%s: in memory and on a disk it is one image", os)
		}
	}
}
