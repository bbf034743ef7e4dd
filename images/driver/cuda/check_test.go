// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	kinds := inventory.DefaultKinds()
	spec := kinds.Driver[Name]
	spec.Check = Check(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	kinds.Driver[Name] = spec
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Kinds: &kinds})
}
