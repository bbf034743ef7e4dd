// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"testing"

	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/validate/chassis"
)

// TestPartKinds: the kinds of parts that a BMC tells of are those that are judged.
func TestPartKinds(t *testing.T) {
	t.Parallel()
	for is, want := range map[string]chassis.PartKind{string(bmc.Supply): chassis.Supply, string(bmc.Fan): chassis.Fan, string(bmc.Inlet): chassis.Inlet} {
		if chassis.PartKind(is) != want {
			t.Errorf("%q is judged as %q", is, want)
		}
	}
}
