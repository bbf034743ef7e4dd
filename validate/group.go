package validate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/floor"
)

// group is the nodes that are held against one validation block.
type group struct {
	set   string // "all" when the site has one validation block in use
	v     *inventory.Validation
	nodes []*inventory.Node
	units map[*inventory.Node]int // scalable units, as floor.Units
	// accepts are the quorum and limits that its nodes are accepted by: one list for all.
	accepts []plan.Input
}

// groups returns the groups of a site by the name of their validation.
func groups(inv *inventory.Inventory) []group {
	var list []group
	units := floor.Units(inv)
	for _, n := range inv.Nodes {
		if n.Validation == nil {
			continue
		}
		i := slices.IndexFunc(list, func(g group) bool { return g.v == n.Validation })
		if i < 0 {
			list = append(list, group{set: n.Validation.Name, v: n.Validation, units: units})
			i = len(list) - 1
			list[i].accepts = list[i].inputs(WriteBandwidth, AllReduceBandwidth)
		}
		list[i].nodes = append(list[i].nodes, n)
	}
	if len(list) == 1 {
		list[0].set = "all"
	}
	slices.SortFunc(list, func(a, b group) int { return strings.Compare(a.set, b.set) })
	return list
}

// defaultQuorum is the quorum of a validation that gives none: what is left is still
// enough to tell good from bad, and one dead BMC holds up no group.
const defaultQuorum = 75 // percent

// min is the quorum in nodes. It is never less than a pair, but for two nodes with a
// quorum of half: half of them is one, which then is let through alone, with its tests
// not judged.
func (g group) min() int {
	q := float64(g.v.Quorum)
	if q == 0 {
		q = defaultQuorum
	}
	least := 2
	if len(g.nodes) == 2 {
		least = 1
	}
	return max(least, int(math.Ceil(q*float64(len(g.nodes))/100-1e-9)))
}

// floor returns the least bandwidth of a measure in bytes per second, and how
// the site wrote it; 0 when there is no limit.
func (g group) floor(name string) (float64, string) {
	l, ok := g.v.Limit(name)
	if !ok || l.AtLeast == nil {
		return 0, ""
	}
	v := l.AtLeast.Value
	if l.AtLeast.Dimension == unit.LineRate {
		v /= 8
	}
	return v, ">= " + l.AtLeast.String()
}

// inputs declares the quorum and the limits of the given measures.
func (g group) inputs(limits ...string) []plan.Input {
	in := []plan.Input{{Name: "quorum", Value: fmt.Sprintf("%d%% (default)", defaultQuorum), Decl: stage.Source(g.v.Decl)}}
	if g.v.Quorum > 0 {
		in[0].Value = g.v.Quorum.String()
	}
	return append(in, g.limitInputs(limits...)...)
}

// limitInputs declares the limits of the given measures.
func (g group) limitInputs(limits ...string) (in []plan.Input) {
	for _, name := range limits {
		if l, ok := g.v.Limit(name); ok && l.AtLeast != nil {
			in = append(in, plan.Input{Name: "limit " + name, Value: ">= " + l.AtLeast.String(), Decl: stage.Source(l.Decl)})
		}
	}
	return in
}

// step is what the tests of a group have in common.
func (r Request) groupStep(title string, decl hcl.Range) plan.Step {
	g := r.Group
	gr := &plan.Group{Set: g.set, Min: g.min(), OnLoss: plan.Shrink, Partners: partnersOfOne}
	gr.Members = make([]subject.ID, 0, len(g.nodes))
	needs := make([]plan.Need, 0, 2*len(g.nodes)+1)
	for _, n := range g.nodes {
		gr.Members = append(gr.Members, subject.OfNode(n.Name))
		for _, need := range r.After(ready(n), n) {
			need.On = plan.Settled
			needs = append(needs, need)
		}
	}
	return plan.Step{ID: r.ID, Stage: StageName, Action: plan.Read, Subject: OfGroup(g.set), Title: title + gr.Enough(), Group: gr, Needs: needs,
		May: plan.Effects(plan.Load), Decl: stage.Source(decl), Version: 1, Barrier: true}
}

// ready are the steps after which a node can be tested: its fabrics, else its
// drivers, else its first boot.
func ready(n *inventory.Node) []plan.Need {
	needs := make([]plan.Need, 0, 4) // with room for the tests and the cabling
	for _, f := range fabric.Of(n) {
		needs = append(needs, plan.Need{Step: fabric.StepID(n.Name, f.Name), On: plan.Success, Renews: true})
	}
	if len(needs) == 0 {
		for _, d := range n.Drivers {
			needs = append(needs, plan.Need{Step: plan.StepID(n.Name + "/drivers." + d.Name), On: plan.Success, Renews: true})
		}
	}
	if len(needs) == 0 {
		needs = append(needs, plan.Need{Step: plan.StepID(n.Name + "/install.boot"), On: plan.Success, Renews: true})
	}
	return needs
}

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

// sets are the nodes of each run of a scope. Of an odd number of nodes the last
// one is tested with the first, after the others. A unit of one node is no set.
func (g group) sets(scope string, list []*inventory.Node) (out [][]*inventory.Node) {
	switch scope {
	case "node":
		for _, n := range list {
			out = append(out, []*inventory.Node{n})
		}
	case "pair":
		for i := 0; i+1 < len(list); i += 2 {
			out = append(out, list[i:i+2])
		}
		if n := len(list); n > 2 && n%2 == 1 {
			out = append(out, []*inventory.Node{list[n-1], list[0]})
		}
	case "unit":
		at := map[string]int{}
		for _, n := range list {
			key := g.unitOf(n)
			if _, ok := at[key]; !ok {
				at[key] = len(out)
				out = append(out, nil)
			}
			out[at[key]] = append(out[at[key]], n)
		}
		out = slices.DeleteFunc(out, func(set []*inventory.Node) bool { return len(set) < 2 })
	default:
		if len(list) > 1 {
			out = append(out, list)
		}
	}
	return out
}

// unitOf names the scalable unit of a node: its NVLink domain, or the number of its
// unit; empty when it is in neither.
func (g group) unitOf(n *inventory.Node) string {
	if n.Domain != "" {
		return "domain " + n.Domain
	}
	if u := g.units[n]; u > 0 {
		return fmt.Sprintf("unit %d", u)
	}
	return ""
}
