// SPDX-License-Identifier: Apache-2.0

package burn

import (
	"math"
	"testing"
)

// FuzzParseQuery: each row is of a GPU, and its values are numbers.
func FuzzParseQuery(f *testing.F) {
	f.Add([]byte("00000000:18:00.0, 65, 70, 690.12, 1980, Active, Not Active, Not Active, Not Active\n"), 0)
	f.Add([]byte("00000000:18:00.0, NaN, Inf, [N/A], -1e400\n,,,,\n"), 1)
	f.Fuzz(func(t *testing.T, text []byte, query int) {
		for _, r := range parseQuery(text, queries[abs(query)%len(queries)]) {
			if r.address == "" {
				t.Errorf("a row of no GPU: %+v", r)
			}
			for name, v := range r.value {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s is %g", name, v)
				}
			}
		}
	})
}

func abs(n int) int { return n & math.MaxInt }
