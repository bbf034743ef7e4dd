// SPDX-License-Identifier: Apache-2.0

package subject_test

import (
	"testing"

	"github.com/ironrail/ironrail/internal/subject"
)

func TestSome(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{"": nil, "b, a": {"b", "a"}, "b, a and 1 more": {"b", "a", "c"}} {
		if got := subject.Some(names, 2); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
}
