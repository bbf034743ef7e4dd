package provision

import (
	"testing"

	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/validate/gate"
)

// TestPartKinds: the kinds of parts that a BMC tells of are those that are judged.
func TestPartKinds(t *testing.T) {
	t.Parallel()
	for is, want := range map[string]gate.PartKind{string(bmc.Supply): gate.Supply, string(bmc.Fan): gate.Fan, string(bmc.Inlet): gate.Inlet} {
		if gate.PartKind(is) != want {
			t.Errorf("%q is judged as %q", is, want)
		}
	}
}
