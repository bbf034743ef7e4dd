// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	k := inventory.DefaultKinds()
	spec := k.Fabric[Name]
	spec.Design, spec.Check = Design, Check
	k.Fabric[Name] = spec
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Kinds: &k})
}
