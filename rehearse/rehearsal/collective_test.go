// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestAllReduceFindsTheRail: a site whose only test between nodes is the
// all-reduce of its GPUs finds a cable that lost lanes after the gates had seen it
// whole, and names its rail. It is an example whose image has Open MPI as well.
func TestAllReduceFindsTheRail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/mi300x-roce")); err != nil {
		t.Fatal(err)
	}
	site := filepath.Join(dir, "site.hcl")
	text, err := os.ReadFile(site)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(site, bytes.Replace(text, []byte(`"nvme-cli"]`), []byte(`"nvme-cli", "openmpi-bin"]`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := fault.Parse("kind=degraded-link,node=r02-u09,port=rail/3,at=validate.burn")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := rehearsal.Run(context.Background(), load(t, dir, nil), rehearsal.Options{Seed: 7, Faults: []fault.Fault{f}})
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
