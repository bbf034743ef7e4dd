// SPDX-License-Identifier: Apache-2.0

package rail

import "testing"

// FuzzParseCounters: what a node prints of its counters is never negative, and the same
// text grows by nothing.
func FuzzParseCounters(f *testing.F) {
	f.Add([]byte("/sys/class/net/rail0/speed:400000\n/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error:3\n"))
	f.Add([]byte("a/b:-1\n:5\nx:99999999999999999999\nnocolon\n/:1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := parseCounters(b)
		for name, n := range c {
			if n < 0 {
				t.Errorf("%s is %d", name, n)
			}
		}
		if list := GrownCounters(c, c); len(list) > 0 {
			t.Errorf("counters grew over themselves: %v", list)
		}
	})
}
