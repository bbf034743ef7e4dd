package rehearsal_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/provision/rehearsal"
	"github.com/ironrail/ironrail/provision/state"
	"github.com/ironrail/ironrail/provision/virtual"
)

// TestHandsOverToKubernetes: accepted nodes are in the cluster and take pods, also
// after the controller died on the way; the bootstrap tokens are gone.
func TestHandsOverToKubernetes(t *testing.T) {
	t.Parallel()
	var pods, said []string
	tokens := -1
	sum, err := rehearsal.Run(context.Background(), load(t, whole, nil), rehearsal.Options{Seed: 3, OnEnd: func(w *virtual.World, _ state.Reader) {
		c, ok := w.Cluster("10.21.0.3:6443")
		if !ok {
			t.Error("there is no cluster")
			return
		}
		pods, said, tokens = c.Schedulable(), c.Said(), c.Tokens()
	}})
	if err != nil || len(sum.Accepted) != 4 {
		t.Fatalf("accepted %v: %v", sum.Accepted, err)
	}
	if !slices.Equal(pods, []string{"gpu-1", "gpu-2"}) || tokens != 0 {
		t.Errorf("pods may be put on %v; %d tokens are left", pods, tokens)
	}
	if got := strings.Join(said, ", "); strings.Count(got, " join") != 2 {
		t.Errorf("the cluster saw %s", got)
	}
}
