// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

// TestDiagnostics runs the cases of the loader's own checks.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	checktest.Run(t, "testdata/diagnostics", inventory.Options{CheckNames: []string{"mac.duplicate", "moved.from", "unit.overlap", "vlan.duplicate"}})
}
