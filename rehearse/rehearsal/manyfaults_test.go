// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"testing"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestManyFaultsOfOneNode: a node with one bad part is tested on. Five bad parts of one
// node are five findings of one apply, and nobody else is lost.
func TestManyFaultsOfOneNode(t *testing.T) {
	t.Parallel()
	inv, diags, _ := inventory.Load("../../examples/hgx-h100", inventory.Options{Now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	const node = "r01-u17"
	faults := []fault.Fault{
		{Kind: fault.LessHBM, Node: node, GPU: "6"},
		{Kind: fault.OddFirmware, Node: node, Port: "rail/2"},
		{Kind: fault.WeakHBM, Node: node, GPU: "1"},
		{Kind: fault.SlowGPU, Node: node, GPU: "5"},
		{Kind: fault.HighBER, Node: node, Port: "rail/3"},
	}
	sum, err := Run(context.Background(), inv, Options{Seed: 7, Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	if !sum.AsExpected() || len(sum.Quarantined) != 1 || len(sum.Accepted) != len(inv.Nodes)-1 {
		t.Errorf("%d accepted; faults %+v; unexpected %+v; quarantined %+v", len(sum.Accepted), sum.Faults, sum.Unexpected, sum.Quarantined)
	}
	for _, q := range sum.Quarantined {
		if q.Node != node || len(q.Also) < len(faults)-1 {
			t.Errorf("%s: %s; also %+v", q.Node, q.Cause, q.Also)
		}
	}
}
