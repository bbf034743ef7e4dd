package rehearsal_test

import (
	"context"
	"testing"

	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// TestAllReduceOf512Nodes: 512 nodes with the driver of their GPUs, and one all-reduce
// over all 4,096 of these, whose table and log are longer than what is kept of an
// output. Every node is accepted.
func TestAllReduceOf512Nodes(t *testing.T) {
	t.Parallel()
	sum, err := rehearsal.Run(context.Background(), load(t, "../../examples/scale", map[string]string{"nodes": "512", "stack": "gpu"}), rehearsal.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range sum.Quarantined[:min(3, len(sum.Quarantined))] {
		t.Errorf("%s: %s", q.Node, q.Cause)
	}
	if len(sum.Accepted) != 512 {
		t.Errorf("%d of 512 nodes are accepted", len(sum.Accepted))
	}
}
