// SPDX-License-Identifier: Apache-2.0

package narrow

import "testing"

// TestSide: only a loopback that is as slow as what went to others, while another port's is
// not, speaks against the NIC; only one that is as fast as another port's acquits it.
func TestSide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                    string
		own, reference, carried float64
		want                    Where
	}{
		{"slow with itself as with others", 29e9, 48.7e9, 29.2e9, InNIC},
		{"fast with itself", 48.5e9, 48.7e9, 12e9, BeyondNIC},
		{"slower than its reference, and faster than to others", 40e9, 48.7e9, 12e9, NotKnown},
		{"no loopback is fast on this host", 29e9, 29.5e9, 29.2e9, NotKnown},
		{"a few percent slow with others", 48.5e9, 48.7e9, 46e9, NotKnown},
	} {
		if got := side(c.own, c.reference, c.carried); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
