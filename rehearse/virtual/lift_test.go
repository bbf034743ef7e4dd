// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"testing"

	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestLifts: each kind that comes and goes can be planted and taken away, and no other is taken away.
func TestLifts(t *testing.T) {
	t.Parallel()
	for _, r := range fault.Rows() {
		if r.Passing != (lifts[r.Kind] != nil) || r.Passing && plants[r.Kind] == nil {
			t.Errorf("%s: passing %t, planted %t, lifted %t", r.Kind, r.Passing, plants[r.Kind] != nil, lifts[r.Kind] != nil)
		}
		if r.Passing && !r.Serving {
			t.Errorf("%s comes and goes, and cannot begin late", r.Kind)
		}
	}
	for k := range lifts {
		if _, ok := fault.FindRow(k); !ok {
			t.Errorf("%s is no kind", k)
		}
	}
}
