// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"slices"
	"strings"
	"testing"
)

// TestHandsOverToKubernetes: accepted nodes are in the cluster and take pods, also
// after the controller died on the way; the bootstrap tokens are gone.
func TestHandsOverToKubernetes(t *testing.T) {
	t.Parallel()
	r := ofWhole()
	if r.err != nil || len(r.sum.Accepted) != 4 {
		t.Fatalf("accepted %v: %v", r.sum.Accepted, r.err)
	}
	if !slices.Equal(r.pods, []string{"gpu-1", "gpu-2"}) || r.tokens != 0 {
		t.Errorf("pods may be put on %v; %d tokens are left", r.pods, r.tokens)
	}
	if got := strings.Join(r.cluster, ", "); strings.Count(got, " join") != 2 {
		t.Errorf("the cluster saw %s", got)
	}
}
