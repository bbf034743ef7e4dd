// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
)

// TestTimeOfARunWithoutAnEnd: what is not known is said to be so, and no time is
// negative.
func TestTimeOfARunWithoutAnEnd(t *testing.T) {
	t.Parallel()
	for _, res := range []apply.Result{{Run: "r1", Outcome: "interrupted", Started: fixtureTime}, {Run: "r1", Outcome: "interrupted", Ended: fixtureTime}} {
		var b bytes.Buffer
		writeResult(&b, res, samplePlaces, plainWidth, plainLines)
		if !strings.Contains(b.String(), "Run r1: interrupted after an unknown time.") {
			t.Errorf("%q", b.String())
		}
	}
}
