// SPDX-License-Identifier: Apache-2.0

package target

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
	"github.com/ironrail/ironrail/validate/result"
)

// Group is the nodes that are held against one validation block.
type Group struct {
	Set        string // "all" when the site has one validation block in use
	Validation *inventory.Validation
	Nodes      []*inventory.Node
	Units      map[*inventory.Node]int // scalable units, as floor.CountUnits
	// accepts are the quorum and limits that its nodes are accepted by: one list for all.
	Accepts []plan.Input
}

// ListGroups returns the groups of a site by the name of their validation.
func ListGroups(inv *inventory.Inventory) []Group {
	var list []Group
	units := floor.CountUnits(inv)
	for _, n := range inv.Nodes {
		if n.Validation == nil {
			continue
		}
		i := slices.IndexFunc(list, func(g Group) bool { return g.Validation == n.Validation })
		if i < 0 {
			list = append(list, Group{Set: n.Validation.Name, Validation: n.Validation, Units: units})
			i = len(list) - 1
			limits := []string{result.WriteBandwidth, result.AllReduceBandwidth}
			for _, operation := range inventory.Operations {
				limits = append(limits, result.BandwidthOf(operation))
			}
			list[i].Accepts = list[i].Inputs(limits...)
		}
		list[i].Nodes = append(list[i].Nodes, n)
	}
	if len(list) == 1 {
		list[0].Set = "all"
	}
	slices.SortFunc(list, func(a, b Group) int { return strings.Compare(a.Set, b.Set) })
	return list
}

// defaultQuorum is the quorum of a validation that gives none: what is left is still
// enough to tell good from bad, and one dead BMC holds up no group.
const defaultQuorum = 75 // percent

// fewestTested is how many nodes a test between nodes needs.
const fewestTested = 2

// min is the quorum in nodes. It is never less than a pair, but for two nodes with a
// quorum of half: half of them is one, which then is let through alone, with its tests
// not judged.
func (g Group) min() int {
	q := float64(g.Validation.Quorum)
	if q == 0 {
		q = defaultQuorum
	}
	least := fewestTested
	if len(g.Nodes) == 2 {
		least = 1
	}
	return max(least, int(math.Ceil(q*float64(len(g.Nodes))/100-1e-9)))
}

// Floor returns the least bandwidth of a measure in bytes per second, and how
// the site wrote it; 0 when there is no limit.
func (g Group) Floor(name string) (float64, string) {
	l, ok := g.Validation.Limit(name)
	if !ok || l.AtLeast == nil {
		return 0, ""
	}
	v := l.AtLeast.Value
	if l.AtLeast.Dimension == unit.LineRate {
		v /= 8
	}
	return v, ">= " + l.AtLeast.String()
}

// Inputs declares the quorum and the limits of the given measures.
func (g Group) Inputs(limits ...string) []plan.Input {
	in := []plan.Input{{Name: "quorum", Value: fmt.Sprintf("%d%% (default)", defaultQuorum), Decl: stage.Source(g.Validation.Decl)}}
	if g.Validation.Quorum > 0 {
		in[0].Value = g.Validation.Quorum.String()
	}
	return append(in, g.LimitInputs(limits...)...)
}

// LimitInputs declares the limits of the given measures.
func (g Group) LimitInputs(limits ...string) (in []plan.Input) {
	for _, name := range limits {
		if l, ok := g.Validation.Limit(name); ok && l.AtLeast != nil {
			in = append(in, plan.Input{Name: "limit " + name, Value: ">= " + l.AtLeast.String(), Decl: stage.Source(l.Decl)})
		}
	}
	return in
}

// step is what the tests of a group have in common.
func (r Request) GroupStep(title string, decl hcl.Range) plan.Step {
	g := r.Group
	gr := &plan.Group{Set: g.Set, Min: g.min(), OnLoss: plan.Shrink, Partners: PartnersOfOne}
	if g.Validation.Provisional {
		gr.Provisional = fewestTested
	}
	gr.Members = make([]subject.ID, 0, len(g.Nodes))
	needs := make([]plan.Need, 0, 2*len(g.Nodes)+1)
	for _, n := range g.Nodes {
		gr.Members = append(gr.Members, subject.OfNode(n.Name))
		for _, need := range r.After(ReadyNeeds(n), n) {
			need.On = plan.Settled
			needs = append(needs, need)
		}
	}
	return plan.Step{ID: r.ID, Stage: StageName, Action: plan.Read, Subject: result.OfGroup(g.Set), Title: title + gr.Enough(), Group: gr, Needs: needs,
		May: plan.Effects(plan.Load), Decl: stage.Source(decl), Version: 1, Barrier: true}
}

// ReadyNeeds returns the steps after which a node can be tested: its fabrics, else its
// drivers, else its first boot.
func ReadyNeeds(n *inventory.Node) []plan.Need {
	needs := make([]plan.Need, 0, 4) // with room for the tests and the cabling
	for _, f := range fabric.Of(n) {
		needs = append(needs, plan.Need{Step: fabric.StepID(n.Name, f.Name), On: plan.Success, Triggers: true})
	}
	if len(needs) == 0 {
		for _, d := range n.Drivers {
			needs = append(needs, plan.Need{Step: plan.StepID(n.Name + "/drivers." + d.Name), On: plan.Success, Triggers: true})
		}
	}
	if len(needs) == 0 {
		needs = append(needs, plan.Need{Step: plan.StepID(n.Name + "/install.boot"), On: plan.Success, Triggers: true})
	}
	return needs
}

// ByRole returns the nodes of each role that a comparison is about, where there are
// enough of them. Roles are in the order of their names.
func ByRole(inv *inventory.Inventory, fewest int, about func(*inventory.Node) bool) (list []Group) {
	for _, n := range inv.Nodes {
		if n.Retired || n.Role == nil || !about(n) {
			continue
		}
		i := slices.IndexFunc(list, func(g Group) bool { return g.Set == n.Role.Name })
		if i < 0 {
			list = append(list, Group{Set: n.Role.Name})
			i = len(list) - 1
		}
		list[i].Nodes = append(list[i].Nodes, n)
	}
	list = slices.DeleteFunc(list, func(g Group) bool { return len(g.Nodes) < fewest })
	slices.SortFunc(list, func(a, b Group) int { return strings.Compare(a.Set, b.Set) })
	return list
}

// Sets are the nodes of each run of a scope. Of an odd number of nodes the last
// one is tested with the first, after the others. A unit of one node is no set.
func (g Group) Sets(scope string, list []*inventory.Node) (out [][]*inventory.Node) {
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
	case "unit", "domain":
		at := map[string]int{}
		for _, n := range list {
			key := g.UnitOf(n)
			if scope == "domain" {
				if key = n.Domain; key == "" {
					continue
				}
			}
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

// UnitOf names the scalable unit of a node: its NVLink domain, or the number of its
// unit; empty when it is in neither.
func (g Group) UnitOf(n *inventory.Node) string {
	if n.Domain != "" {
		return "domain " + n.Domain
	}
	if u := g.Units[n]; u > 0 {
		return fmt.Sprintf("unit %d", u)
	}
	return ""
}
