// SPDX-License-Identifier: Apache-2.0

package cable_test

import (
	"testing"

	"github.com/ironrail/ironrail/fabric/cable"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Checks: []inventory.Check{cable.Check}})
}
