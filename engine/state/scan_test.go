// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
)

// TestScanBlocks: objects are read whole and once however many blocks they take, also
// while what was read of the file is let go of.
func TestScanBlocks(t *testing.T) {
	t.Parallel()
	const n = 2*inBlock + 3
	file, err := Open(filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, s := range map[string]Store{"file": file, "memory": NewMemory()} {
		t.Run(name, func(t *testing.T) {
			fence, err := s.Claim(t.Context(), "test")
			if err != nil {
				t.Fatal(err)
			}
			var b Batch
			for i := range n {
				id := plan.StepID(fmt.Sprintf("n%06d/x", i))
				state := StepIsDone
				if i%1000 == 7 {
					state = StepIsFailed // decoded by encoding/json
				}
				p, err := PutOf(StepKey(id), Step{ID: id, State: state, Plan: "p", Run: "r", Version: i, Inputs: []plan.Input{{Name: "i", Value: fmt.Sprint(i)}}, Started: time.Now()})
				if err != nil {
					t.Fatal(err)
				}
				b.Puts = append(b.Puts, p)
			}
			if err := AppendParts(t.Context(), s, fence, b.Split()...); err != nil {
				t.Fatal(err)
			}
			prior, err := ReadPrior(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			ends, err := ReadPlanSteps(t.Context(), s, "p")
			if err != nil || len(ends) != n {
				t.Fatalf("%d steps, want %d: %v", len(ends), n, err)
			}
			for i := range n {
				id := plan.StepID(fmt.Sprintf("n%06d/x", i))
				d, done := prior.Steps[id]
				if done != (i%1000 != 7) || done && (d.Version != i || len(d.Inputs) != 1 || d.Inputs[0].Value != fmt.Sprint(i)) {
					t.Fatalf("step %s: %v %+v", id, done, d)
				}
				if e := ends[id]; e.ID != id || e.Version != i || (e.State == StepIsDone) != done {
					t.Fatalf("end of %s: %+v", id, e)
				}
			}
		})
	}
}
