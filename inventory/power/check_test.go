// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
	"github.com/ironrail/ironrail/inventory/power"
)

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Checks: []inventory.Check{power.Check}})
}
