package plan

import (
	"fmt"
	"strings"
)

// topological sorts steps so that each comes after all that it needs, and keeps
// the given order otherwise. Linear in steps and needs.
func topological(steps []Step) ([]Step, error) {
	index := make(map[StepID]int, len(steps))
	for i, s := range steps {
		if _, dup := index[s.ID]; dup {
			return nil, fmt.Errorf("plan: two steps are called %s", s.ID)
		}
		index[s.ID] = i
	}
	v := visit{steps: steps, index: index, mark: make([]uint8, len(steps)), out: make([]Step, 0, len(steps))}
	for i := range steps {
		if err := v.step(i); err != nil {
			return nil, err
		}
	}
	return v.out, nil
}

// visit is a depth-first walk. Chains are as deep as one node's steps, so that
// recursion is bounded by the stage table, not by the number of nodes.
type visit struct {
	steps []Step
	index map[StepID]int
	mark  []uint8 // 0 not seen, 1 on the path, 2 done
	path  []StepID
	out   []Step
}

func (v *visit) step(i int) error {
	s := v.steps[i]
	switch v.mark[i] {
	case 2:
		return nil
	case 1:
		return fmt.Errorf("plan: steps need each other: %s", cycle(v.path, s.ID))
	}
	v.mark[i] = 1
	v.path = append(v.path, s.ID)
	for _, n := range s.Needs {
		j, ok := v.index[n.Step]
		if !ok {
			return fmt.Errorf("plan: step %s needs %s, which no stage plans", s.ID, n.Step)
		}
		if err := v.step(j); err != nil {
			return err
		}
	}
	v.path = v.path[:len(v.path)-1]
	v.mark[i] = 2
	v.out = append(v.out, s)
	return nil
}

// cycle renders the hops from id round to id.
func cycle(path []StepID, id StepID) string {
	var hops []string
	on := false
	for _, p := range path {
		if on = on || p == id; on {
			hops = append(hops, string(p))
		}
	}
	return strings.Join(append(hops, string(id)), " -> ")
}
