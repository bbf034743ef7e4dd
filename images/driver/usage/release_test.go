// SPDX-License-Identifier: Apache-2.0

package usage

import "testing"

func TestRelease(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Release{"3.2": {3, 2}, "3.2.1": {3, 2}, "13.0": {13, 0}, "2.10.0-0.5.3": {2, 10}, "30.30.3": {30, 30}, "7": {7, 0}} {
		if got := ParseRelease(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	if a, b := (Release{2, 9}), (Release{2, 10}); !a.Before(b) || b.Before(a) || a.Before(a) || !b.Before(Release{3, 0}) || (Release{3, 0}).Before(b) {
		t.Errorf("%s and %s are not in order", a, b)
	}
}
