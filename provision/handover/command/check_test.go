// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	kinds := inventory.DefaultKinds()
	spec := kinds.Handover[Name]
	spec.Check = Check
	kinds.Handover[Name] = spec
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Kinds: &kinds})
}
