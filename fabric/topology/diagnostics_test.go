package topology_test

import (
	"testing"

	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/fabric/nvlink"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

// kinds are the kinds of fabrics with their designs and checks.
func kinds() *inventory.Kinds {
	k := inventory.DefaultKinds()
	for name, with := range map[string]inventory.KindSpec{
		"infiniband": {Design: infiniband.Design, Check: infiniband.Check},
		"roce":       {Design: roce.Design, Check: roce.Check},
		"nvlink":     {Check: nvlink.Check},
	} {
		spec := k.Fabric[name]
		spec.Design, spec.Check = with.Design, with.Check
		k.Fabric[name] = spec
	}
	return &k
}

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Kinds: kinds()})
}
