// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	kinds := inventory.DefaultKinds()
	spec := kinds.Driver[Name]
	spec.Check = Check
	kinds.Driver[Name] = spec
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Kinds: &kinds})
}
