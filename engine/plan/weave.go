// SPDX-License-Identifier: Apache-2.0

package plan

import "slices"

// Interpose puts steps between others: a step for which moves holds, and which needs a step that
// between names, then also needs the steps that between gives for it. Those are needed on the same
// outcome, and trigger what needs them where they say so and the step that was needed before does.
// The needs of steps that are left alone keep their arrays; steps is changed in place.
func Interpose(steps []Step, between map[StepID][]Need, moves func(*Step) bool) {
	for i := range steps {
		st := &steps[i]
		if !moves(st) {
			continue
		}
		needs := st.Needs
		for _, x := range st.Needs {
			for _, y := range between[x.Step] {
				triggers := x.Triggers && y.Triggers
				switch at := slices.IndexFunc(needs, func(z Need) bool { return z.Step == y.Step && z.On == x.On }); {
				case at < 0:
					needs = append(slices.Clip(needs), Need{Step: y.Step, On: x.On, Triggers: triggers})
				case triggers && !needs[at].Triggers:
					needs = slices.Clone(needs)
					needs[at].Triggers = true
				}
			}
		}
		st.Needs = needs
	}
}

// AddNeeds gives the steps that more names further needs; steps is changed in place.
func AddNeeds(steps []Step, more map[StepID][]Need) {
	for i := range steps {
		if add := more[steps[i].ID]; len(add) > 0 {
			steps[i].Needs = append(slices.Clip(steps[i].Needs), add...)
		}
	}
}
