// SPDX-License-Identifier: Apache-2.0

package nvlink

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	k := inventory.DefaultKinds()
	spec := k.Fabric[Name]
	spec.Check = Check
	k.Fabric[Name] = spec
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Kinds: &k})
}
