// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
)

// The limits that are not in Options.Capacity.
const (
	stepSlots = "steps"  // steps at once, as the engine calls it
	uplink    = "uplink" // of the controller
	streams   = "streams"
	circuits  = "inrush/"
)

// graph is a plan in numbers: steps and resources are indices, so that one of
// 150,000 steps is scheduled in a fraction of a second.
type graph struct {
	steps    []plan.Step
	needs    []int32   // how many each step has
	triggers [][]int32 // steps that need this one
	rank     []int64   // the engine's tie-break: lower starts first

	sign       []int32 // signature of each step
	signatures [][]use // what steps use, each once

	names   []string // of resources
	classOf []string // of each resource: its entry in the capacities
	limit   []int    // of each resource; 0: none
}

// use is a claim of a step.
type use struct {
	resource, units int
	until           bool // given back before the step ends, where the step says
}

// newGraph turns a plan round. It is linear in steps, needs and uses.
func newGraph(p *plan.Plan, o Options) (*graph, error) {
	n := len(p.Steps)
	g := &graph{steps: p.Steps, needs: make([]int32, n), triggers: make([][]int32, n), sign: make([]int32, n), rank: make([]int64, n)}
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
	c := claims{graph: g, of: o.Capacity, resources: map[string]int{}, signatures: map[string]int32{}}
	c.slot = c.resource(stepSlots, stepSlots, o.Parallel)
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
		var err error
		if g.sign[i], err = c.sign(s); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// claims numbers the resources of a graph, and the sets of uses that there are.
type claims struct {
	*graph
	of         map[string]int // the capacities
	slot       int            // the resource that every step uses
	resources  map[string]int
	signatures map[string]int32
	key        []byte // of a signature, used again
}

// sign returns the number of the signature of s: its uses, those of one resource
// added up, and its slot.
func (c *claims) sign(s *plan.Step) (int32, error) {
	uses := make([]use, 0, len(s.Uses)+1)
	for _, u := range s.Uses {
		class, n := capacityOf(c.of, u.Resource)
		r := c.resource(u.Resource, class, n)
		at := slices.IndexFunc(uses, func(x use) bool { return x.resource == r })
		if at < 0 {
			at = len(uses)
			uses = append(uses, use{resource: r, until: u.Hold == plan.UntilReleased})
		}
		uses[at].units += u.Units
		if units := uses[at].units; units <= 0 || n > 0 && units > n {
			return 0, fmt.Errorf("predict: step %s uses %d units of %s, which has %d", s.ID, units, u.Resource, n)
		}
	}
	uses = append(uses, use{resource: c.slot, units: 1})
	c.key = c.key[:0]
	for _, u := range uses {
		c.key = fmt.Appendf(c.key, "%d*%d,%t ", u.resource, u.units, u.until)
	}
	i, known := c.signatures[string(c.key)]
	if !known {
		i = int32(len(c.graph.signatures))
		c.signatures[string(c.key)] = i
		c.graph.signatures = append(c.graph.signatures, uses)
	}
	return i, nil
}

// resource returns the number of a resource.
func (c *claims) resource(name, class string, limit int) int {
	r, ok := c.resources[name]
	if !ok {
		r = len(c.names)
		c.resources[name] = r
		c.names, c.classOf, c.limit = append(c.names, name), append(c.classOf, class), append(c.limit, limit)
	}
	return r
}

// capacityOf finds the units of a resource and the entry that says so, by its name
// or its longest prefix; zero units when there is none.
func capacityOf(of map[string]int, name string) (entry string, units int) {
	if n, ok := of[name]; ok {
		return classOf(name), n
	}
	for i := strings.LastIndexByte(name, '/'); i >= 0; i = strings.LastIndexByte(name[:i], '/') {
		if n, ok := of[name[:i+1]]; ok {
			return name[:i+1], n
		}
	}
	return name, 0
}

// classOf is the limit that a resource belongs to, to ask what a plan would gain
// without it: all circuits are one, since a node hangs on several.
func classOf(name string) string {
	if strings.HasPrefix(name, circuits) {
		return circuits
	}
	return name
}
