// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"strings"
	"testing"

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
