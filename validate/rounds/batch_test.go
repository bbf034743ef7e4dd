// SPDX-License-Identifier: Apache-2.0

package rounds

import "testing"

// TestPasses: of more pairs than have commands at once a round takes several turns.
func TestPasses(t *testing.T) {
	t.Parallel()
	for nodes, want := range map[int]float64{0: 0, 1: 0, 2: 1, 3: 3, 4: 3, 8: 7, 9: 4, 128: 4, 2048: 4, 2050: 8, 4096: 8, 12500: 28} {
		if got := CountPasses(nodes); got != want {
			t.Errorf("%d nodes: %v, want %v", nodes, got, want)
		}
	}
}
