// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"testing"

	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestLateFaults: what breaks after all tests, as its node is about to be accepted, keeps
// the node out and is named; the others are accepted.
func TestLateFaults(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.GPUXid, fault.GPURowRemap, fault.PCIeWidth, fault.MissingGPU, fault.NVLinkDown, fault.DegradedLink, fault.PSULost} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inv := load(t, "../../examples/hgx-h100", nil)
			sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 3, Faults: []fault.Fault{{Kind: kind, Node: "r01-u09", At: "validate.accept"}}})
			if err != nil {
				t.Fatal(err)
			}
			if !sum.AsExpected() || len(sum.Accepted) != len(inv.Nodes)-1 || len(sum.Quarantined) != 1 || sum.Quarantined[0].Node != "r01-u09" {
				t.Errorf("%d accepted, quarantined %+v, unexpected %+v", len(sum.Accepted), sum.Quarantined, sum.Unexpected)
			}
		})
	}
}
