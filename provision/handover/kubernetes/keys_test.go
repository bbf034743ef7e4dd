// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/kubernetes/api"
)

// TestEvictedOnce: an eviction that was journaled as done is not asked for again,
// whenever that is.
func TestEvictedOnce(t *testing.T) {
	t.Parallel()
	run := onnodetest.NewRun()
	run.Effects = []string{"n1/handover.prod/evict-uid-1"}
	target := handover.Target{Handover: &inventory.Handover{Block: inventory.Block{Name: "prod"}}}
	p := &api.Pod{Meta: api.Meta{Name: "job", Namespace: "ml", UID: "uid-1"}}
	if err := evictPod(t.Context(), run, nil, target, "n1", p); err != nil { // without a client: a request would panic
		t.Error(err)
	}
	if len(run.Effects) != 1 {
		t.Errorf("effects %q", run.Effects)
	}
}
