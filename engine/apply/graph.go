// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"container/heap"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
)

// graph is a plan ready to be executed: its steps as tasks, each with the tasks that it
// triggers, and the resources that they share. Guarded by Executor.mu, but for what is
// fixed.
type graph struct {
	tasks     []*task // in the order of the plan
	byID      map[plan.StepID]*task
	nodes     []string           // that the steps work on, in the order of the plan; fixed
	byNode    map[string][]*task // see tasksOf; nil: nobody has asked yet
	ready     taskHeap
	resources *resources
}

func newGraph(c Config) (*graph, error) {
	g := &graph{tasks: make([]*task, len(c.Plan.Steps)), byID: make(map[plan.StepID]*task, len(c.Plan.Steps))}
	depth := map[string]int{} // of each key: where it first appears
	all := make([]task, len(c.Plan.Steps))
	for i := range c.Plan.Steps {
		s := &c.Plan.Steps[i]
		if err := checkStep(s, c.Stages); err != nil {
			return nil, err
		}
		d, seen := depth[s.DepthKey]
		if !seen || s.DepthKey == "" {
			d = i
			depth[s.DepthKey] = d
		}
		t := &all[i]
		t.step, t.rank, t.uses = s, rank{d, i}, mergeUses(s.Uses)
		if g.byID[s.ID] != nil {
			return nil, fmt.Errorf("plan: duplicate step %s", s.ID)
		}
		g.tasks[i], g.byID[s.ID] = t, t
	}
	for _, t := range g.tasks {
		for _, n := range t.step.Needs {
			on := g.byID[n.Step]
			if on == nil {
				return nil, fmt.Errorf("plan: step %s needs %s, which is not in the plan", t.step.ID, n.Step)
			}
			on.triggers = append(on.triggers, trigger{t, n.On})
			t.unmet++
		}
	}
	if err := g.checkCycles(); err != nil {
		return nil, err
	}
	g.listNodes()
	var err error
	g.resources, err = newResources(c, g.tasks)
	for _, t := range g.tasks {
		if t.unmet == 0 {
			g.makeReady(t)
		}
	}
	return g, err
}

// listNodes lists all nodes that steps work on or could.
func (g *graph) listNodes() {
	places := map[string]int{}
	for _, t := range g.tasks {
		t.node = -1
		for _, n := range nodesOf(t.step) {
			at, seen := places[n]
			if !seen {
				at = len(g.nodes)
				places[n] = at
				g.nodes = append(g.nodes, n)
			}
			if n == nodeOf(t.step) {
				t.node = at
			}
		}
	}
}

// checkStep finds what would let a step run unbounded or not at all.
func checkStep(s *plan.Step, stages map[string]stage.Stage) error {
	switch {
	case stages[s.Stage] == nil && s.Gate == nil:
		return fmt.Errorf("plan: step %s is of stage %q, which does not exist", s.ID, s.Stage)
	case s.Deadline.Limit <= 0:
		return fmt.Errorf("plan: step %s has no deadline", s.ID)
	case s.Subject == subject.ID{}:
		return fmt.Errorf("plan: step %s has no subject", s.ID)
	}
	if err := checkGate(s); err != nil {
		return err
	}
	for _, n := range s.Needs {
		if n.On != plan.Success && n.On != plan.Settled {
			return fmt.Errorf("plan: step %s needs %s %q; allowed are success and settled", s.ID, n.Step, n.On)
		}
		if s.Barrier && n.On != plan.Settled {
			return fmt.Errorf("plan: step %s is a barrier and needs the success of %s", s.ID, n.Step)
		}
	}
	return nil
}

// checkCycles walks the graph once without running it.
func (g *graph) checkCycles() error {
	unmet := make([]int, len(g.tasks)) // by the place in the plan
	free := make([]*task, 0, len(g.tasks))
	for i, t := range g.tasks {
		if unmet[i] = t.unmet; t.unmet == 0 {
			free = append(free, t)
		}
	}
	for i := 0; i < len(free); i++ {
		for _, tr := range free[i].triggers {
			if at := tr.task.rank.index; unmet[at] == 1 {
				free = append(free, tr.task)
				unmet[at] = 0
			} else {
				unmet[at]--
			}
		}
	}
	if len(free) == len(g.tasks) {
		return nil
	}
	var stuck []string
	for i, t := range g.tasks {
		if unmet[i] > 0 {
			stuck = append(stuck, string(t.step.ID))
		}
	}
	return fmt.Errorf("plan: cycle of needs: %s", listSome(stuck))
}

func (g *graph) makeReady(t *task) {
	t.state = ready
	heap.Push(&g.ready, t)
}

// mergeUses adds up the uses of one resource.
func mergeUses(us []plan.Use) []use {
	out := make([]use, 0, len(us)+1) // with the step slot, that comes last
	for _, u := range us {
		if i := slices.IndexFunc(out, func(o use) bool { return o.Resource == u.Resource }); i >= 0 {
			out[i].Units += u.Units
			continue
		}
		out = append(out, use{Resource: u.Resource, Units: u.Units})
	}
	return out
}

// taskHeap gives the task of the lowest rank first.
type taskHeap []*task

func (h taskHeap) Len() int           { return len(h) }
func (h taskHeap) Less(i, j int) bool { return h[i].rank.less(h[j].rank) }
func (h taskHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is for package heap.
func (h *taskHeap) Push(x any) { *h = append(*h, x.(*task)) }

// Pop is for package heap.
func (h *taskHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}

// popReady takes the most urgent task that may try to start, among them those that are
// parked on a resource of which something was released since. It returns nil when there
// is none.
func (g *graph) popReady() *task {
	for t := g.resources.nextUnparked(); t != nil; t = g.resources.nextUnparked() {
		heap.Push(&g.ready, t)
	}
	for g.ready.Len() > 0 {
		if t := heap.Pop(&g.ready).(*task); t.state == ready {
			return t
		}
	}
	return nil
}

// listSome names subjects for a sentence, in order.
func listSome(names []string) string {
	slices.Sort(names)
	return subject.Some(names, 5)
}
