// SPDX-License-Identifier: Apache-2.0

package ibdiags

import "testing"

// FuzzParseGUID: a GUID that was read is read again as itself.
func FuzzParseGUID(f *testing.F) {
	for _, s := range []string{"0x506b4b03005c2740", "1", " 0x1 ", "", "0x", "-1", "0x1_0", "ffffffffffffffffff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := ParseGUID(s)
		if err != nil {
			return
		}
		if again, err := ParseGUID(g.String()); err != nil || again != g {
			t.Errorf("%q: %s, then %s, %v", s, g, again, err)
		}
	})
}
