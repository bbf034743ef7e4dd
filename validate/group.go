package validate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/floor"
)

// group is the nodes that are held against one validation block.
type group struct {
	set   string // "all" when the site has one validation block in use
	v     *inventory.Validation
	nodes []*inventory.Node
	units map[*inventory.Node]int // scalable units, as floor.Units
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
		}
		list[i].nodes = append(list[i].nodes, n)
	}
	if len(list) == 1 {
		list[0].set = "all"
	}
	slices.SortFunc(list, func(a, b group) int { return strings.Compare(a.set, b.set) })
	return list
}

// groupOf returns the group of a node; nil when it has no validation.
func (s *Stage) groupOf(n *inventory.Node) *group {
	for _, g := range s.groups() {
		if g.v == n.Validation {
			return &g
		}
	}
	return nil
}

// Two nodes are the least for a pair and for an all-reduce.
func (g group) pairs() bool   { return g.v.Pair != nil && len(g.nodes) >= 2 }
func (g group) reduces() bool { return g.v.AllReduce != nil && len(g.nodes) >= 2 }

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

// measured are the names of limits and what they can be given in.
var measured = map[string][]unit.Dimension{
	WriteBandwidth:     {unit.Throughput, unit.LineRate},
	AllReduceBandwidth: {unit.Throughput, unit.LineRate},
	floor.HBMCopy:      {unit.Throughput, unit.LineRate},
	floor.HostToDevice: {unit.Throughput, unit.LineRate},
	floor.DeviceToHost: {unit.Throughput, unit.LineRate},
	floor.PeerRead:     {unit.Throughput, unit.LineRate},
}

// check finds what of a validation block cannot be tested.
func check(g group) hcl.Diagnostics {
	var diags hcl.Diagnostics
	add := func(sev hcl.DiagnosticSeverity, at hcl.Range, summary, format string, args ...any) {
		diags = append(diags, &hcl.Diagnostic{Severity: sev, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at.Ptr()})
	}
	notYet := func(at hcl.Range, summary, format string, args ...any) {
		add(hcl.DiagError, at, summary, format, args...)
		diags[len(diags)-1].Extra = stage.NotYet{}
	}
	v := g.v
	if v.BurnIn > 0 {
		g.checkBurn(add, notYet)
	}
	if p := v.Pair; p != nil && p.Engine != "" && p.Engine != "perftest" {
		notYet(p.Decl, "Engine is not supported", "The pair test of validation %q asks for engine %q; \"perftest\" is supported.", v.Name, p.Engine)
	}
	if c := v.AllReduce; c != nil && g.onGPUs() {
		g.checkGPUs(notYet)
	} else if c != nil {
		g.checkTCP(add, notYet)
	}
	if (v.Pair != nil || v.AllReduce != nil) && len(g.nodes) < 2 {
		add(hcl.DiagWarning, v.Decl, "One node alone is not tested", "Validation %q tests nodes against each other, and %q is the only one that it applies to. It is accepted without a measurement.", v.Name, g.nodes[0].Name)
	}
	for _, l := range v.Limits {
		checkLimit(l, add, notYet)
		if slices.Contains(gpuMeasures, l.Name) {
			g.checkGPULimit(l, add, notYet)
		}
	}
	checkAllowed(v, add)
	return diags
}

// checkTCP looks at an all-reduce that is not on GPUs.
func (g group) checkTCP(add func(hcl.DiagnosticSeverity, hcl.Range, string, string, ...any), notYet func(hcl.Range, string, string, ...any)) {
	v, c := g.v, g.v.AllReduce
	if slices.ContainsFunc(c.Scope, func(s string) bool { return s != "all" }) {
		notYet(c.Decl, "Scope is not supported", "The all_reduce test of validation %q asks for scopes %s; \"all\" is supported.", v.Name, diag.Quoted(c.Scope))
	}
	if c.Floor > 0 {
		notYet(c.Decl, "Floor is not supported", "The all_reduce test of validation %q asks for a floor of what the links carry, and engine \"mpi\" runs over TCP. Give limit %q instead.", v.Name, AllReduceBandwidth)
	}
	if list := carriers(g.nodes); len(list) > 1 {
		var others []string
		for _, f := range list[1:] {
			others = append(others, f.Name)
		}
		add(hcl.DiagWarning, c.Decl, "All-reduce over one of several fabrics", "The all_reduce test of validation %q goes over fabric %q alone, the first by name. No figure of it is of %s.", v.Name, list[0].Name, diag.Quoted(others))
	}
}

func checkLimit(l inventory.MeasureLimit, add func(hcl.DiagnosticSeverity, hcl.Range, string, string, ...any), notYet func(hcl.Range, string, string, ...any)) {
	dims, ok := measured[l.Name]
	if !ok {
		known := slices.Sorted(maps.Keys(measured))
		notYet(l.Decl, "Limit is not measured", "Nothing measures %q, so that its limit would never be held.%s", l.Name, diag.DidYouMean(l.Name, known))
		return
	}
	for _, q := range []*unit.Quantity{l.AtLeast, l.AtMost} {
		if q != nil && !slices.Contains(dims, q.Dimension) {
			add(hcl.DiagError, l.Decl, "Limit has the wrong unit", "Limit %q is %s, which is %s; %q is measured in bytes per second, such as \"45GB/s\".", l.Name, q, q.Dimension, l.Name)
		}
	}
	if l.AtMost != nil {
		add(hcl.DiagError, l.Decl, "Limit has no floor", "Limit %q is a bandwidth: give at_least.", l.Name)
	}
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
func (g group) step(id plan.StepID, title string, decl hcl.Range) plan.Step {
	gr := &plan.Group{Set: g.set, Min: g.min(), OnLoss: plan.Shrink, Partners: partnersOfOne}
	gr.Members = make([]subject.ID, 0, len(g.nodes))
	needs := make([]plan.Need, 0, 2*len(g.nodes)+1)
	for _, n := range g.nodes {
		gr.Members = append(gr.Members, subject.OfNode(n.Name))
		for _, need := range ready(n) {
			need.On = plan.Settled
			needs = append(needs, need)
		}
	}
	return plan.Step{ID: id, Stage: StageName, Action: plan.Read, Subject: OfGroup(g.set), Title: title + gr.Enough(), Group: gr, Needs: needs,
		May: plan.Effects(plan.Load), Decl: stage.Source(decl), Version: 1, Barrier: true}
}

// ready are the steps after which a node can be tested: its fabrics, else its
// drivers, else its first boot; and its gates.
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
	if gated(n) {
		needs = append(needs, plan.Need{Step: GatesID(n.Name), On: plan.Success}, plan.Need{Step: BandwidthID(n.Name), On: plan.Success})
	}
	if burns(n) {
		needs = append(needs, plan.Need{Step: BurnID(n.Name), On: plan.Success})
	}
	return needs
}

func (g group) pairStep() plan.Step {
	p := g.v.Pair
	st := g.step(PairID(g.set), fmt.Sprintf("RDMA writes between %d nodes, pair by pair", len(g.nodes)), p.Decl)
	st.Inputs = append(g.inputs(WriteBandwidth), plan.Input{Name: "pair", Value: "perftest " + size(p).String(), Decl: stage.Source(p.Decl)})
	st.Yields = []fact.Key{PairReport.Of(OfGroup(g.set))}
	turns := time.Duration(len(tournament(len(g.nodes))) * batches(len(g.nodes)/2) * 2) // each way
	st.Deadline = plan.Budget{Expected: turns * 10 * time.Second, Limit: turns*g.longestTransfer() + 20*time.Minute}
	return st
}

func (g group) allReduceStep() plan.Step {
	c := g.v.AllReduce
	title := fmt.Sprintf("all-reduce over %d nodes, every element checked", len(g.nodes))
	if g.onGPUs() {
		title = fmt.Sprintf("all-reduce of the GPUs of %d nodes (%s), every element checked", len(g.nodes), strings.Join(c.Scope, ", "))
	}
	st := g.step(AllReduceID(g.set), title, c.Decl)
	if g.pairs() {
		st.Needs = append(st.Needs, plan.Need{Step: PairID(g.set), On: plan.Settled, Renews: true})
	}
	var sizes []string
	for _, s := range c.Sizes {
		sizes = append(sizes, s.String())
	}
	st.Inputs = append(g.inputs(AllReduceBandwidth), plan.Input{Name: "all_reduce", Value: "mpi " + strings.Join(sizes, " "), Decl: stage.Source(c.Decl)})
	st.Yields = []fact.Key{AllReduceReport.Of(OfGroup(g.set))}
	st.Deadline = plan.Budget{Expected: 20 * time.Second, Limit: 10*limitOf(len(g.nodes)) + 10*time.Minute}
	if g.onGPUs() {
		st.Inputs[len(st.Inputs)-1].Value = g.gpuInput()
		st.Deadline = g.gpuDeadline()
	}
	return st
}

func acceptStep(n *inventory.Node, g *group, inputs []plan.Input) plan.Step {
	st := plan.Step{ID: AcceptID(n.Name), Stage: StageName, Action: plan.Create, Subject: subject.OfNode(n.Name), Title: "accept",
		Needs: ready(n), Yields: []fact.Key{AcceptedFact.Of(subject.OfNode(n.Name))}, Decl: stage.Source(n.Decl), Version: 1, Accepts: true,
		Deadline: plan.Budget{Limit: time.Minute, Expected: time.Second}}
	if g == nil {
		return st
	}
	st.Inputs = inputs
	// A test that could not be judged accepts nobody: its own reason is the one
	// that the operator sees.
	if g.pairs() {
		st.Needs = append(st.Needs, plan.Need{Step: PairID(g.set), On: plan.Success})
		st.Reads = append(st.Reads, PairReport.Of(OfGroup(g.set)))
	}
	if g.reduces() {
		st.Needs = append(st.Needs, plan.Need{Step: AllReduceID(g.set), On: plan.Success})
		st.Reads = append(st.Reads, AllReduceReport.Of(OfGroup(g.set)))
	}
	return st
}
