// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"testing"

	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestManyFaultsOfOneNode: a node with one bad part is tested on. Several bad parts of one
// node are as many findings of one apply, and nobody else is lost.
func TestManyFaultsOfOneNode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		site, node string
		faults     []fault.Fault
	}{
		{"hgx-h100", "r01-u17", []fault.Fault{
			{Kind: fault.LessHBM, GPU: "6"},
			{Kind: fault.OddFirmware, Port: "rail/2"},
			{Kind: fault.WeakHBM, GPU: "1"},
			{Kind: fault.SlowGPU, GPU: "5"},
			{Kind: fault.HighBER, Port: "rail/3"},
		}},
		// Without a pair test the all-reduce looks at the rails of a node that is out.
		{"mi300x-roce", "r02-u01", []fault.Fault{
			{Kind: fault.SlowGPU, GPU: "7"},
			{Kind: fault.HighBER, Port: "rail/6"},
			{Kind: fault.SlowNIC, Port: "rail/2"},
		}},
	} {
		t.Run(test.site, func(t *testing.T) {
			t.Parallel()
			inv := load(t, "../../examples/"+test.site, nil)
			for i := range test.faults {
				test.faults[i].Node = test.node
			}
			sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 7, Faults: test.faults})
			if err != nil {
				t.Fatal(err)
			}
			if !sum.AsExpected() || len(sum.Quarantined) != 1 || len(sum.Accepted) != len(inv.Nodes)-1 {
				t.Errorf("%d accepted; faults %+v; unexpected %+v; quarantined %+v", len(sum.Accepted), sum.Faults, sum.Unexpected, sum.Quarantined)
			}
			for _, q := range sum.Quarantined {
				if q.Node != test.node || len(q.Also) < len(test.faults)-1 {
					t.Errorf("%s: %s; also %+v", q.Node, q.Cause, q.Also)
				}
			}
		})
	}
}
