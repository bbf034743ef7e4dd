// SPDX-License-Identifier: Apache-2.0

package target

import (
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/result"
)

// comparisonLimit is how long a comparison may take: it compares in a second, and what vendors'
// programs then collect of those that differ takes minutes.
const comparisonLimit = 6 * time.Minute

// Comparisons hold what was read of the nodes of a role against one another: none of
// them asks a node, and each blames who differs before the tests between nodes begin.

// Compared are the nodes of a group whose readings are compared: those that are left of the
// run, by their names, and those in service, by what was read of them before they were accepted.
func Compared(run stage.Run, g Group, left map[string]bool) (list []*inventory.Node) {
	for _, n := range g.Nodes {
		if _, accepted := run.Fact(result.AcceptedFact.Of(subject.OfNode(n.Name))); accepted || left[n.Name] {
			list = append(list, n)
		}
	}
	return list
}

// ComparisonStep returns the step that compares a role by what another step has read on each
// node.
func ComparisonStep(r Request, title string, yields fact.Key) plan.Step {
	g := r.Group
	gr := &plan.Group{Set: g.Set, Min: 1, OnLoss: plan.Shrink, Partners: 1}
	st := plan.Step{ID: r.ID, Stage: StageName, Action: plan.Read, Subject: result.OfGroup(g.Set), Group: gr, Barrier: true, Examines: true, Only: plan.WhenNeeded,
		Title: title, Yields: []fact.Key{yields}, Decl: stage.Source(g.Nodes[0].Role.Decl), Version: 1,
		Deadline: plan.Budget{Expected: time.Second, Limit: comparisonLimit}}
	gr.Members, st.Needs = make([]subject.ID, 0, len(g.Nodes)), make([]plan.Need, 0, len(g.Nodes))
	for _, n := range g.Nodes {
		gr.Members = append(gr.Members, subject.OfNode(n.Name))
		st.Needs = r.After(st.Needs, n)
	}
	return st
}
