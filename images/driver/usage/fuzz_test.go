// SPDX-License-Identifier: Apache-2.0

package usage

import "testing"

// FuzzParseRelease: any text is a release that orders with others and is never negative
// for a version of digits.
func FuzzParseRelease(f *testing.F) {
	for _, s := range []string{"3.2.1", "12", "", "580.126.16", "6.3.0-39", "..", "99999999999999999999.1"} {
		f.Add(s, "3.2")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := ParseRelease(a), ParseRelease(b)
		if x.Before(y) && y.Before(x) {
			t.Errorf("%q and %q are each before the other", a, b)
		}
		if ParseRelease(x.String()) != x {
			t.Errorf("%q reads as %s, and that as %s", a, x, ParseRelease(x.String()))
		}
	})
}
