// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"flag"
	"strconv"
	"testing"

	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// largest is how many nodes a large all-reduce has.
var largest = flag.Int("large", 48, "nodes of a large all-reduce; 512 have more output than is kept of one")

// TestLargeAllReduce: many nodes with the driver of their GPUs, and one all-reduce over
// all of these, of which each node is accepted. `make nightly` has 512 nodes with 4,096
// GPUs, whose table and log are longer than what is kept of an output.
func TestLargeAllReduce(t *testing.T) {
	t.Parallel()
	sum, err := rehearsal.Run(context.Background(), load(t, "../../examples/scale", map[string]string{"nodes": strconv.Itoa(*largest), "stack": "gpu"}), rehearsal.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range sum.Quarantined[:min(3, len(sum.Quarantined))] {
		t.Errorf("%s: %s", q.Node, q.Cause)
	}
	if len(sum.Accepted) != *largest {
		t.Errorf("%d of %d nodes are accepted", len(sum.Accepted), *largest)
	}
}
