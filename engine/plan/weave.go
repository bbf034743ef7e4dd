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
		st.Needs = interposed(st.Needs, between)
	}
}

// interposed is needs with those that between gives, each once. It leaves needs alone.
func interposed(needs []Need, between map[StepID][]Need) []Need {
	if !slices.ContainsFunc(needs, func(x Need) bool { return len(between[x.Step]) > 0 }) {
		return needs
	}
	type key struct {
		step StepID
		on   NeedKind
	}
	out, at := slices.Clone(needs), make(map[key]int, 2*len(needs))
	for i, x := range needs {
		if _, known := at[key{x.Step, x.On}]; !known {
			at[key{x.Step, x.On}] = i
		}
	}
	for _, x := range needs {
		for _, y := range between[x.Step] {
			triggers, k := x.Triggers && y.Triggers, key{y.Step, x.On}
			i, known := at[k]
			if !known {
				at[k] = len(out)
				out = append(out, Need{Step: y.Step, On: x.On, Triggers: triggers})
				continue
			}
			out[i].Triggers = out[i].Triggers || triggers
		}
	}
	return out
}

// AddNeeds gives the steps that more names further needs; steps is changed in place.
func AddNeeds(steps []Step, more map[StepID][]Need) {
	for i := range steps {
		if add := more[steps[i].ID]; len(add) > 0 {
			steps[i].Needs = append(slices.Clip(steps[i].Needs), add...)
		}
	}
}
