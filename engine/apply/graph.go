package apply

import (
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// taskState is where a step stands in this run.
type taskState uint8

const (
	pending taskState = iota // waits for its needs
	ready                    // waits for a resource, or for its turn
	running
	done
	failed
	skipped     // will not be started: see the cause
	interrupted // was started and stopped
)

var stateNames = [...]string{"pending", "waiting", "running", "done", "failed", "skipped", "interrupted"}

func (s taskState) String() string { return stateNames[s] }

func (s taskState) settled() bool { return s >= done }

// task is a step in the graph. Its fields are guarded by Executor.mu, but for
// those that are fixed once the graph is made.
type task struct {
	step     *plan.Step // of the plan; fixed
	rank     rank       // fixed
	uses     []use
	triggers []trigger // steps that need this one; fixed
	node     int       // place of its node in graph.nodes; -1: its subject is none; fixed

	state      taskState
	unmet      int         // needs that are not met yet
	lacks      string      // resource that a ready task is parked on
	moves      int         // how often it was parked elsewhere than before
	cause      state.Cause // why it was skipped or interrupted
	root       *failure    // the failure that a failed or skipped task goes back to
	members    []subject.ID
	lost       []state.Loss
	stragglers map[subject.ID]string // members that it goes on without, since they are late, and why
	cancel     func(error)           // stops the running step
	run        *stepRun              // of the running step

	started, ended time.Time
	observed       bool
	err            error
	kind           errkind.Kind    // of err
	blamed         []stage.Finding // made by the step
}

// failure is the root cause of failed and skipped steps.
type failure struct {
	task    *task
	finding stage.Finding
	kind    errkind.Kind
}

// trigger is a need, seen from the step that is needed.
type trigger struct {
	task *task
	on   plan.NeedKind
}

// rank orders tasks that could start now: lower first.
type rank struct{ depth, index int }

func (r rank) less(o rank) bool {
	if r.depth != o.depth {
		return r.depth < o.depth
	}
	return r.index < o.index
}

// graph is the plan with its edges turned round.
type graph struct {
	tasks     []*task // in the order of the plan
	byID      map[plan.StepID]*task
	nodes     []string // that the steps work on, in the order of the plan; fixed
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
			return nil, fmt.Errorf("plan: step %s is there twice", s.ID)
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
		return fmt.Errorf("plan: step %s asks for stage %q, which does not exist", s.ID, s.Stage)
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
			return fmt.Errorf("plan: step %s needs %s %q; a step is needed for its success or settled", s.ID, n.Step, n.On)
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
	return fmt.Errorf("plan: steps wait for each other: %s", listSome(stuck))
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

// nodeOf returns the node of a step, "" when its subject is none.
func nodeOf(s *plan.Step) string {
	if s.Subject.Kind == subject.Node {
		return s.Subject.Name
	}
	return ""
}

// nodesOf returns all nodes that a step works on or could.
func nodesOf(s *plan.Step) []string {
	var ns []string
	if n := nodeOf(s); n != "" {
		ns = append(ns, n)
	}
	if s.Group != nil {
		for _, m := range s.Group.Members {
			if m.Kind == subject.Node {
				ns = append(ns, m.Name)
			}
		}
	}
	return ns
}

// listSome names subjects for a sentence, in order.
func listSome(names []string) string {
	slices.Sort(names)
	return subject.Some(names, 5)
}
