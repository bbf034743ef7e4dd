package validate

import (
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// Comparisons hold what was read of the nodes of a role against one another: none of
// them asks a node, and each blames who differs before the tests between nodes begin.

// byRole returns the nodes of each role that a comparison is about, where there are
// enough of them. Roles are in the order of their names.
func byRole(inv *inventory.Inventory, fewest int, about func(*inventory.Node) bool) (list []group) {
	for _, n := range inv.Nodes {
		if n.Retired || n.Role == nil || !about(n) {
			continue
		}
		i := slices.IndexFunc(list, func(g group) bool { return g.set == n.Role.Name })
		if i < 0 {
			list = append(list, group{set: n.Role.Name})
			i = len(list) - 1
		}
		list[i].nodes = append(list[i].nodes, n)
	}
	list = slices.DeleteFunc(list, func(g group) bool { return len(g.nodes) < fewest })
	slices.SortFunc(list, func(a, b group) int { return strings.Compare(a.set, b.set) })
	return list
}

// comparison is the step that compares a role by what another step has read on each
// node.
func comparison(g group, id plan.StepID, title string, yields fact.Key, reads func(node string) plan.StepID) plan.Step {
	gr := &plan.Group{Set: g.set, Min: 1, OnLoss: plan.Shrink, Partners: 1}
	st := plan.Step{ID: id, Stage: StageName, Action: plan.Read, Subject: OfGroup(g.set), Group: gr, Barrier: true, Only: plan.WhenNeeded,
		Title: title, Yields: []fact.Key{yields}, Decl: stage.Source(g.nodes[0].Role.Decl), Version: 1,
		Deadline: plan.Budget{Expected: time.Second, Limit: 2 * time.Minute}}
	gr.Members, st.Needs = make([]subject.ID, 0, len(g.nodes)), make([]plan.Need, 0, len(g.nodes))
	for _, n := range g.nodes {
		gr.Members = append(gr.Members, subject.OfNode(n.Name))
		st.Needs = append(st.Needs, plan.Need{Step: reads(n.Name), On: plan.Settled, Renews: true})
	}
	return st
}

// afterComparison lets the acceptance of nodes that are compared, and the tests of
// groups with such nodes, wait for the comparison: an odd node is taken out before it
// is tested.
func afterComparison(steps []plan.Step, roles []group, id func(role string) plan.StepID) {
	role := map[string]plan.StepID{}
	for _, g := range roles {
		for _, n := range g.nodes {
			role[n.Name] = id(g.set)
		}
	}
	for i := range steps {
		st := &steps[i]
		var ids []plan.StepID
		if id := role[st.Subject.Name]; st.Accepts && id != "" {
			ids = append(ids, id)
		}
		if st.Group != nil && st.May != 0 { // a test; comparisons ask no node
			for _, m := range st.Group.Members {
				if id := role[m.Name]; id != "" && !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
		for _, id := range ids {
			st.Needs = append(st.Needs[:len(st.Needs):len(st.Needs)], plan.Need{Step: id, On: plan.Settled})
		}
	}
}
