// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestAllReduceFindsTheRail: a site whose only test between nodes is the
// all-reduce of its GPUs finds a cable that lost lanes after the gates had seen it
// whole, and names its rail.
func TestAllReduceFindsTheRail(t *testing.T) {
	t.Parallel()
	f, err := fault.Parse("kind=degraded-link,node=r02-u09,port=rail/3,at=validate.burn")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := rehearsal.Run(context.Background(), load(t, "../../examples/mi300x-roce", nil), rehearsal.Options{Seed: 7, Faults: []fault.Fault{f}})
	if err != nil {
		t.Fatal(err)
	}
	if !sum.AsExpected() || len(sum.Accepted) != 15 || len(sum.Quarantined) != 1 {
		t.Errorf("accepted %d, quarantined %+v, faults %+v", len(sum.Accepted), sum.Quarantined, sum.Faults)
	}
	for _, q := range sum.Quarantined {
		if q.Node != "r02-u09" || q.Part != "rail 3" || !strings.Contains(q.Cause, "348GB/s is 87% of what its rails carry, 3.2Tbps") {
			t.Errorf("got %+v", q)
		}
	}
}

// TestOperationsBesideAllReduce: the collectives that a site asks for beside the all-reduce
// run over all nodes, each by its own program, with NCCL and with RCCL; a limit that good
// rails miss is a finding about all of them.
func TestOperationsBesideAllReduce(t *testing.T) {
	t.Parallel()
	for site, unmet := range map[string]bool{"hgx-h100": true, "mi300x-roce": false} {
		t.Run(site, func(t *testing.T) {
			t.Parallel()
			inv := load(t, "../../examples/"+site, nil)
			v := inv.Nodes[0].Validation
			v.AllReduce.Operations = inventory.Operations
			if unmet {
				v.Limits = append(v.Limits, inventory.MeasureLimit{Name: "sendrecv.busbw", AtLeast: &unit.Quantity{Value: 60e9, Dimension: unit.Throughput}, Decl: v.Decl})
			}
			sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 7})
			if err != nil {
				t.Fatal(err)
			}
			if !unmet {
				if len(sum.Accepted) == 0 || len(sum.Quarantined)+len(sum.Findings) > 0 {
					t.Errorf("accepted %d, quarantined %+v, findings %+v", len(sum.Accepted), sum.Quarantined, sum.Findings)
				}
				return
			}
			if len(sum.Accepted) > 0 || len(sum.Findings) != 1 || !strings.Contains(sum.Findings[0].Cause, "the sendrecv of GPUs over ") || !strings.Contains(sum.Findings[0].Cause, "60GB/s is the limit of the site") {
				t.Errorf("accepted %d, findings %+v", len(sum.Accepted), sum.Findings)
			}
		})
	}
}
