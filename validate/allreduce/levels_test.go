// SPDX-License-Identifier: Apache-2.0

package allreduce

import "testing"

// TestLevels: members double with each level of a tree.
func TestLevels(t *testing.T) {
	t.Parallel()
	for members, want := range map[int]float64{0: 1, 1: 1, 2: 2, 1024: 11} {
		if got := treeLevels(members); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%d members: %v levels, want %v", members, got, want)
		}
	}
}
