// SPDX-License-Identifier: Apache-2.0

package natural

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	want := []string{"", "Ethernet8", "Ethernet16", "a", "leaf-1", "leaf-2", "leaf-10", "leaf-10/1", "leaf-10/2", "leaf-11", "r01", "r1", "r1a", "r2", "r02-u10",
		"r18446744073709551616", "r18446744073709551617", "su02", "su2", "su2a", "su10", "u9-2", "u10-1"}
	got := slices.Clone(want)
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, Compare)
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, a := range want {
		for _, b := range want {
			if Compare(a, b) != -Compare(b, a) || (Compare(a, b) == 0) != (a == b) {
				t.Errorf("%q and %q: %d, and back %d", a, b, Compare(a, b), Compare(b, a))
			}
		}
	}
}
