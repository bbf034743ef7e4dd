// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
)

// TestKinds: a step's kind is the same whatever it is done to, and leads to the row
// that is meant for it.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id        plan.StepID
		on        subject.Kind
		kind, row string
	}{
		{"n1/install.write", subject.Node, "install.write", "install.write"},
		{"r01/a1/supply.before", subject.PDU, "supply.before", "supply"},
		{"net/leaf-1/fabric.compute.switch", subject.Switch, "fabric.compute.switch", "fabric.*.switch"},
		{"site/fabric.compute.switches", subject.Fabric, "fabric.compute.switches", "fabric.*.switches"},
		{"site/fabric.compute.subnet", subject.Fabric, "fabric.compute.subnet", "fabric.*.subnet"},
		{"n1/fabric.compute", subject.Node, "fabric.compute", "fabric"},
		{"n1/fabric.compute.ports", subject.Node, "fabric.compute.ports", "fabric"},
		{"site/cabling.check", subject.Site, "site.cabling.check", "site.cabling.check"},
		{"site/image.os", subject.Site, "site.image.os", "site.image"},
		{"worker/validate.heat", subject.Group, "validate.heat", "validate.heat"},
	} {
		kind := kindOf(c.id, c.on)
		row, ok := lookupRow(withChecks, kind, Profile{})
		if kind != c.kind || !ok || row.Kind != c.row {
			t.Errorf("%s is %q, and its row %q (%t); want %q, %q", c.id, kind, row.Kind, ok, c.kind, c.row)
		}
	}
	for _, kind := range []string{"fabricated", "fabric", "switch"} {
		if row, ok := lookupRow([]Row{{Kind: "fabric.*.switch"}}, kind, Profile{}); ok {
			t.Errorf("%s: %+v", kind, row)
		}
	}
}
