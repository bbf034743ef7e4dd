package predict

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/provision/plan"
)

// The limits that are not in Options.Capacity.
const (
	stepSlots = "steps"  // steps at once, as the engine calls it
	uplink    = "uplink" // of the controller
	streams   = "streams"
)

// graph is a plan in numbers: steps and resources are indices, so that one of
// 150,000 steps is scheduled in a fraction of a second.
type graph struct {
	steps    []plan.Step
	needs    []int32   // how many each step has
	triggers [][]int32 // steps that need this one
	uses     [][]use
	rank     []int64 // the engine's tie-break: lower starts first
	names    []string
	classOf  []string // of each resource: its entry in the capacities
	limit    []int    // of each resource; 0: none
}

// use is a claim of a step.
type use struct {
	resource, units int
	until           bool // given back before the step ends, where the step says
}

// newGraph turns a plan round. It is linear in steps, needs and uses.
func newGraph(p *plan.Plan, o Options) (*graph, error) {
	n := len(p.Steps)
	g := &graph{steps: p.Steps, needs: make([]int32, n), triggers: make([][]int32, n), uses: make([][]use, n), rank: make([]int64, n)}
	index, depth := make(map[plan.StepID]int32, n), map[string]int64{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if _, twice := index[s.ID]; twice {
			return nil, fmt.Errorf("predict: step %s is there twice", s.ID)
		}
		index[s.ID] = int32(i)
		d, seen := depth[s.DepthKey]
		if !seen || s.DepthKey == "" {
			d = int64(i)
			depth[s.DepthKey] = d
		}
		g.rank[i] = d<<32 | int64(i)
	}
	resources := map[string]int{}
	slot := g.resource(stepSlots, stepSlots, o.Parallel, resources)
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, need := range s.Needs {
			on, ok := index[need.Step]
			if !ok {
				return nil, fmt.Errorf("predict: step %s needs %s, which is not in the plan", s.ID, need.Step)
			}
			g.triggers[on] = append(g.triggers[on], int32(i))
			g.needs[i]++
		}
		if err := g.claim(i, o.Capacity, resources); err != nil {
			return nil, err
		}
		g.uses[i] = append(g.uses[i], use{resource: slot, units: 1})
	}
	return g, nil
}

// claim takes over the uses of step i, those of one resource added up.
func (g *graph) claim(i int, of map[string]int, known map[string]int) error {
	for _, u := range g.steps[i].Uses {
		class, n := capacity(of, u.Resource)
		r := g.resource(u.Resource, class, n, known)
		at := -1
		for j, have := range g.uses[i] {
			if have.resource == r {
				at = j
			}
		}
		if at < 0 {
			at = len(g.uses[i])
			g.uses[i] = append(g.uses[i], use{resource: r, until: u.Hold == plan.UntilReleased})
		}
		g.uses[i][at].units += u.Units
		if units := g.uses[i][at].units; units <= 0 || n > 0 && units > n {
			return fmt.Errorf("predict: step %s uses %d units of %s, which has %d", g.steps[i].ID, units, u.Resource, n)
		}
	}
	return nil
}

// resource returns the number of a resource.
func (g *graph) resource(name, class string, limit int, known map[string]int) int {
	r, ok := known[name]
	if !ok {
		r = len(g.names)
		known[name] = r
		g.names, g.classOf, g.limit = append(g.names, name), append(g.classOf, class), append(g.limit, limit)
	}
	return r
}

// capacity finds the units of a resource and the entry that says so, by its name
// or its longest prefix; zero units when there is none.
func capacity(of map[string]int, name string) (entry string, units int) {
	if n, ok := of[name]; ok {
		return name, n
	}
	for i := strings.LastIndexByte(name, '/'); i >= 0; i = strings.LastIndexByte(name[:i], '/') {
		if n, ok := of[name[:i+1]]; ok {
			return name[:i+1], n
		}
	}
	return name, 0
}
