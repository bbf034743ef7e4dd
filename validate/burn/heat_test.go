// SPDX-License-Identifier: Apache-2.0

package burn

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

// TestExplainHeat: GPUs that are too warm are no faults where the air is, and others stay so.
func TestExplainHeat(t *testing.T) {
	t.Parallel()
	faults := []judge.Fault{{Part: "GPU 0", Cause: "it came within 4 °C of its slowdown", Action: burnin.DoHeat}, {Part: "memory", Cause: "it corrected 90 errors", Action: "Exchange it."}}
	for cooling, want := range map[string]int{"": 2, "inlet air": 1, "fan Fan2": 1} {
		left, notes := explainHeat(faults, cooling)
		if len(left) != want || len(left)+len(notes) != 2 || left[want-1].Part != "memory" || want == 1 && !strings.HasSuffix(notes[0], "as its node's "+cooling+" lets expect") {
			t.Errorf("%q: %+v, %q", cooling, left, notes)
		}
	}
}
