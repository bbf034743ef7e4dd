// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	"github.com/ironrail/ironrail/fabric/topology"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
	"github.com/ironrail/ironrail/inventory/diag"
)

// kinds are the kinds of fabrics that have a topology, with what this package gives them.
func kinds() *inventory.Kinds {
	k := inventory.DefaultKinds()
	for name, of := range map[string]string{"infiniband": "infiniband", "roce": "ethernet"} {
		spec := k.Fabric[name]
		spec.Design = func(inv *inventory.Inventory, f *inventory.Fabric) ([]*inventory.Switch, []*inventory.Cable, diag.List) {
			return topology.Build(inv, f, topology.Options{Kind: of})
		}
		spec.Check = func(inv *inventory.Inventory, b inventory.Block) diag.List {
			if f := topology.Of(inv, b); f != nil {
				return topology.Check(inv, f)
			}
			return nil
		}
		k.Fabric[name] = spec
	}
	return &k
}

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Kinds: kinds()})
}
