// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestInterpose(t *testing.T) {
	shared := make([]Need, 2, 8) // an append would write behind it
	shared[0], shared[1] = Need{Step: "n1/boot"}, Need{Step: "n1/drivers", Triggers: true}
	steps := []Step{{ID: "a", Needs: shared}, {ID: "b", Stage: "left", Needs: shared}, {ID: "c", Needs: []Need{{Step: "n2/boot", Triggers: true}}}}
	between := map[StepID][]Need{"n1/boot": {{Step: "n1/nics", Triggers: true}}, "n1/drivers": {{Step: "n1/nics", Triggers: true}}, "n2/boot": {{Step: "n2/host"}}}
	Interpose(steps, between, func(st *Step) bool { return st.Stage != "left" })
	for i, want := range [][]Need{
		{{Step: "n1/boot"}, {Step: "n1/drivers", Triggers: true}, {Step: "n1/nics", Triggers: true}}, // once, and as the stronger of the two
		{{Step: "n1/boot"}, {Step: "n1/drivers", Triggers: true}},
		{{Step: "n2/boot", Triggers: true}, {Step: "n2/host"}}, // which triggers nothing
	} {
		if !slices.Equal(steps[i].Needs, want) {
			t.Errorf("%s needs %v, want %v", steps[i].ID, steps[i].Needs, want)
		}
	}
	if behind := shared[:3][2]; behind != (Need{}) {
		t.Errorf("behind the needs that several steps share stands %v", behind)
	}
}

func TestAddNeeds(t *testing.T) {
	shared := append(make([]Need, 0, 8), Need{Step: "x"})
	steps := []Step{{ID: "a", Needs: shared}, {ID: "b", Needs: shared}}
	AddNeeds(steps, map[StepID][]Need{"a": {{Step: "y"}}, "b": {{Step: "z"}}})
	if !slices.Equal(steps[0].Needs, []Need{{Step: "x"}, {Step: "y"}}) || !slices.Equal(steps[1].Needs, []Need{{Step: "x"}, {Step: "z"}}) {
		t.Error(steps)
	}
}

// TestInterposeInTime: a step that needs something of each node of a large site, and gets as much again.
func TestInterposeInTime(t *testing.T) {
	t.Parallel()
	const nodes = 25000
	all := Step{ID: "all/check"}
	between := map[StepID][]Need{}
	for i := range nodes {
		boot, more := StepID(fmt.Sprintf("n%d/boot", i)), StepID(fmt.Sprintf("n%d/nics", i))
		all.Needs = append(all.Needs, Need{Step: boot})
		between[boot] = []Need{{Step: more}}
	}
	begun := time.Now()
	steps := []Step{all}
	Interpose(steps, between, func(*Step) bool { return true })
	if took := time.Since(begun); took > 5*time.Second || len(steps[0].Needs) != 2*nodes {
		t.Errorf("%d needs in %s", len(steps[0].Needs), took)
	}
}
