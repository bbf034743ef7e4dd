// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
)

// graph is steps with their needs resolved: index numbers instead of ids.
type graph struct {
	steps []Step
	index map[StepID]int32
	needs [][]int32 // of each step, as its Needs
	order []int32   // each step after all that it needs, in the given order otherwise
}

// newGraph resolves needs and sorts. It is linear in steps and needs. The error
// is a defect: two steps of one name, a need of what is not there, a cycle.
func newGraph(steps []Step) (*graph, error) {
	g := &graph{steps: steps, index: make(map[StepID]int32, len(steps)), needs: make([][]int32, len(steps)), order: make([]int32, 0, len(steps))}
	total := 0
	for i := range steps {
		total += len(steps[i].Needs)
		g.index[steps[i].ID] = int32(i)
	}
	if len(g.index) != len(steps) {
		return nil, fmt.Errorf("plan: two steps are called %s", findDuplicate(steps))
	}
	all := make([]int32, total)
	for i := range steps {
		s := &steps[i]
		g.needs[i], all = all[:len(s.Needs):len(s.Needs)], all[len(s.Needs):]
		for k := range s.Needs {
			j, ok := g.index[s.Needs[k].Step]
			if !ok {
				return nil, fmt.Errorf("plan: step %s needs %s, which no stage plans", s.ID, s.Needs[k].Step)
			}
			g.needs[i][k] = j
		}
	}
	return g, g.sort()
}

// findDuplicate names a step that is there twice.
func findDuplicate(steps []Step) StepID {
	seen := make(map[StepID]bool, len(steps))
	for i := range steps {
		if seen[steps[i].ID] {
			return steps[i].ID
		}
		seen[steps[i].ID] = true
	}
	return ""
}

// sort fills order by a walk in depth. The walk keeps its own stack: waves of a
// rollout make chains as long as the site is large.
func (g *graph) sort() error {
	type frame struct{ step, next int32 }
	mark := make([]uint8, len(g.steps)) // 0 not seen, 1 on the path, 2 done
	var path []frame
	for i := range g.steps {
		if mark[i] != 0 {
			continue
		}
		mark[i] = 1
		path = append(path[:0], frame{step: int32(i)})
		for len(path) > 0 {
			f := &path[len(path)-1]
			if int(f.next) == len(g.needs[f.step]) {
				mark[f.step] = 2
				g.order = append(g.order, f.step)
				path = path[:len(path)-1]
				continue
			}
			j := g.needs[f.step][f.next]
			f.next++
			switch mark[j] {
			case 0:
				mark[j] = 1
				path = append(path, frame{step: j})
			case 1:
				var hops []string
				for _, f := range path {
					hops = append(hops, string(g.steps[f.step].ID))
				}
				return fmt.Errorf("plan: steps need each other: %s", describeCycle(hops, string(g.steps[j].ID)))
			}
		}
	}
	return nil
}

// describeCycle renders the hops from id round to id.
func describeCycle(path []string, id string) string {
	for len(path) > 0 && path[0] != id {
		path = path[1:]
	}
	return strings.Join(append(path, id), " -> ")
}

// permuteSteps puts steps[order[i]] at i, in place: a step is large. order is used up.
func permuteSteps(steps []Step, order []int32) {
	for i := range order {
		if order[i] < 0 {
			continue // it is in its place
		}
		first := steps[i]
		for at := int32(i); ; {
			from := order[at]
			order[at] = -1
			if from == int32(i) {
				steps[at] = first
				break
			}
			steps[at] = steps[from]
			at = from
		}
	}
}

// sortSteps sorts steps, each after all that it needs.
func sortSteps(steps []Step) ([]Step, error) {
	g, err := newGraph(steps)
	if err != nil {
		return nil, err
	}
	permuteSteps(steps, g.order)
	return steps, nil
}
