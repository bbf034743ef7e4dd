// SPDX-License-Identifier: Apache-2.0

// Package throughput is the check that measures what TCP carries between the nodes of a role
// over networks that are no fabrics, each way, and how large a packet passes unfragmented.
package throughput

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/bimodal"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/rounds"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/throughput/cohort"
	"github.com/ironrail/ironrail/validate/throughput/exchange"
)

// Fact is the last measurement of a role.
const Fact = fact.Name[Report]("validate.throughput")

// Report is the measurement of a role's networks.
type Report struct {
	At       time.Time    `json:"at"`
	Role     string       `json:"role"`
	Members  []string     `json:"members,omitempty"` // that were measured
	Rows     []cohort.Row `json:"rows,omitempty"`
	Notes    []string     `json:"notes,omitempty"` // what was not measured or compared, and why
	Evidence []string     `json:"evidence,omitempty"`
}

// Figure is what a node reached on a network, bytes a second.
type Figure struct {
	Network  string  `json:"network"`
	Hardware string  `json:"hardware"`
	Sends    float64 `json:"sends"`
	Receives float64 `json:"receives"`
}

// Record is the last measurement of a node: others that come later are held against it.
type Record struct {
	Figures []Figure `json:"figures,omitempty"`
	// Cause is why it is not accepted although no finding is about it: the whole network is below the
	// limit of the site. Empty: nothing speaks against it.
	Cause string `json:"cause,omitempty"`
	// Undecided is why it is not accepted but provisionally: its role is in two groups.
	Undecided string `json:"undecided,omitempty"`
}

// NodeFact is the last measurement of a node.
const NodeFact = fact.Name[Record]("validate.throughput_of_node")

// Check measures the networks of a role's nodes.
var Check = target.Check{Name: "throughput", Scope: target.EachRole, Needs: []string{"gates", "speed", "speeds", "burn", "heat", "checksum", "checksums"}, For: target.Node(cohort.IsOnNetwork), Fewest: 2, Plan: planCheck, Run: runCheck,
	Asks:     target.Asks{Limits: []string{floor.NetworkTCP}},
	Duration: target.Duration{AsPlanned: true, Source: "two directions of 2 s for each of up to four rounds, and one more of nodes that were slow"},
	Report:   target.Section{Title: "Networks of nodes", Read: readReport, Untested: "what TCP carries over boot and storage networks was not measured"},
	Docs:     target.Docs{Says: "TCP between a role's nodes over boot and storage networks, and the path MTU", Page: "throughput.md"}}

func readReport(f fact.Fact, _ string) (result.Report, error) {
	r, err := Fact.Get(f)
	return r.Report(), err
}

// exchangeTime is what a measurement between two nodes takes: both directions, and what comes
// before and after.
const exchangeTime = 2*(exchange.Seconds*time.Second) + time.Second

// usualRounds is how many rounds nodes have that stand two or more on a leaf.
const usualRounds = 2

// planCheck measures the nodes of a role once nothing else loads them.
func planCheck(r target.Request) plan.Step {
	g := r.Group
	st := target.ComparisonStep(r, fmt.Sprintf("measure TCP between %d nodes over their networks", len(g.Nodes)), Fact.Of(result.OfGroup(r.Name)))
	st.May = plan.Effects(plan.Load)
	st.Group.Partners = target.PartnersOfOne
	networks := 0
	seen := map[*inventory.Hardware]bool{}
	for _, n := range g.Nodes {
		if seen[n.Hardware] {
			continue
		}
		seen[n.Hardware] = true
		list := cohort.NetworksOf(n.Hardware)
		networks = max(networks, len(list))
		for _, x := range list {
			st.Inputs = append(st.Inputs, plan.Input{Name: "network", Value: fmt.Sprintf("%s of hardware %s", x.Network.Name, n.Hardware.Name), Decl: stage.Source(x.Network.Decl)})
		}
	}
	st.Inputs = append(st.Inputs, limitInputs(g.Nodes)...)
	st.Deadline.Expected = time.Duration(networks*usualRounds) * exchangeTime
	st.Deadline.Limit = time.Duration(networks*5)*exchange.Limit + 5*time.Minute
	return st
}

// limitInputs are the limits of the validation blocks of nodes, each once.
func limitInputs(nodes []*inventory.Node) (in []plan.Input) {
	seen := map[*inventory.Validation]bool{}
	for _, n := range nodes {
		if v := n.Validation; v != nil && !seen[v] {
			seen[v] = true
			in = append(in, target.Group{Validation: v}.LimitInputs(floor.NetworkTCP)...)
		}
	}
	return in
}

// job is one run of the check.
type job struct {
	*target.Job
	mine map[string]bool // nodes that may be blamed
	r    Report
	of   map[string]Record // of what is measured now, by node
}

// runCheck measures the networks of a role one after the other.
func runCheck(ctx context.Context, t *target.Job) error {
	j := &job{Job: t, of: map[string]Record{}, r: Report{At: t.Run.Clock().Now().UTC(), Role: t.Group.Set}}
	list := cohort.Split(t.Inv, j.choose())
	var found []cohort.Finding
	err := j.Run.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s/run-%d", j.Step.ID, j.Run.Clock().Now().UnixNano()),
		Kind: plan.Load, Repeatable: true,
		Does: fmt.Sprintf("send TCP between %d nodes over their networks", len(j.r.Members)),
		Do: func(ctx context.Context) error {
			found = nil
			for _, c := range list {
				more, err := j.measure(ctx, c)
				if err != nil {
					return err
				}
				found = append(found, more...)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	for _, b := range found {
		if len(b.Nodes) > 0 && !slices.ContainsFunc(b.Nodes, func(n string) bool { return j.mine[n] }) {
			continue
		}
		b.Evidence = append(b.Evidence, j.r.Evidence[:min(len(j.r.Evidence), 1)]...)
		if err := j.Run.Blame(ctx, b.Finding); err != nil {
			return err
		}
	}
	for _, text := range j.r.Notes {
		j.Run.Emit(event.Event{Type: event.Note, Text: text})
	}
	if err := j.learnNodes(ctx); err != nil {
		return err
	}
	return target.LearnFact(ctx, j.Run, Fact, target.ReportOf(j.Step, fact.Name[result.Report](Fact), t.Group.Set), j.r)
}

// choose says which nodes are measured: those that the step is about, and their partners. A role in
// service that was never measured, by an ironrail that did not do so, is not loaded for one new
// node: two of its nodes are partners then.
func (j *job) choose() []*inventory.Node {
	left := target.FrozenMembers(j.Inv, j.Run)
	about, with := target.InFocus(j.Step, left)
	if !j.wasMeasured() && len(with) == 0 {
		var fresh, old []*inventory.Node
		for _, n := range left {
			if _, accepted := j.Run.Fact(result.AcceptedFact.Of(subject.OfNode(n.Name))); accepted {
				old = append(old, n)
			} else {
				fresh = append(fresh, n)
			}
		}
		if len(fresh) > 0 {
			about, with = fresh, old[:min(len(old), target.PartnersOfOne)]
		}
	}
	all := slices.Concat(about, with)
	j.mine, j.r.Members = result.SetOf(target.NodeNames(about)), target.NodeNames(all)
	return all
}

// wasMeasured reports whether a node of the role was.
func (j *job) wasMeasured() bool {
	return slices.ContainsFunc(j.Group.Nodes, func(n *inventory.Node) bool {
		_, known := j.Run.Fact(NodeFact.Of(subject.OfNode(n.Name)))
		return known
	})
}

// measure measures the members of a cohort in rounds, and those that are bad once more.
func (j *job) measure(ctx context.Context, c *cohort.Cohort) ([]cohort.Finding, error) {
	if len(c.Members) < 2 {
		j.note("%s: %s is alone: not compared", c, c.Members[0].Name())
		return nil, nil
	}
	leaf := make([]string, len(c.Members))
	for i, m := range c.Members {
		leaf[i] = m.Leaf
	}
	r := exchange.Runner{Nodes: j.Nodes, Network: c.Network.Name, Prefix: c.Network.CIDR}
	var done []*exchange.Exchange
	all := rounds.WithinLeaves(leaf)
	for i, pairs := range all {
		j.Run.Emit(event.Event{Type: event.StepProgress, Text: fmt.Sprintf("network %s, round %d of %d: %d pairs", c.Network.Name, i+1, len(all), len(pairs)), Done: int64(i), Total: int64(len(all))})
		list, err := j.round(ctx, r, c, pairs, fmt.Sprintf("throughput.%s.round-%d.json", c.Network.Name, i+1))
		if err != nil {
			return nil, err
		}
		done = append(done, list...)
	}
	usual := j.usual(c)
	v := c.Judge(done, usual)
	if pairs := v.Again(); len(pairs) > 0 {
		j.Run.Emit(event.Event{Type: event.StepProgress, Text: fmt.Sprintf("network %s, once more with others: %d pairs", c.Network.Name, len(pairs))})
		list, err := j.round(ctx, r, c, pairs, fmt.Sprintf("throughput.%s.again.json", c.Network.Name))
		if err != nil {
			return nil, err
		}
		done = append(done, list...)
		v = c.Judge(done, usual)
	}
	j.keep(c, v, done)
	return append(v.Findings(), j.keepUndecided(v)...), nil
}

// keepUndecided notes for nodes of a cohort that is in two groups what keeps them out, and returns the
// findings about it. A limit of the site decides instead of it.
func (j *job) keepUndecided(v *cohort.Verdict) (found []cohort.Finding) {
	if !v.IsSplit() {
		return nil // and what is known of all nodes need not be read
	}
	var mine []*inventory.Node
	for _, n := range j.Group.Nodes {
		if j.mine[n.Name] {
			mine = append(mine, n)
		}
	}
	for _, u := range v.Undecided(j.Group.Set, bimodal.ReadTraits(j.Run, j.Group.Nodes), mine) {
		if u.Decided {
			j.note("%s: the limit of the site decides", u.Text)
			continue
		}
		found = append(found, cohort.Finding{Finding: u.Finding})
		for _, name := range j.r.Members {
			if rec := j.of[name]; u.Has(name) && rec.Undecided == "" {
				rec.Undecided = u.Why
				j.of[name] = rec
			}
		}
	}
	return found
}

// round runs its pairs side by side, and keeps what they have seen.
func (j *job) round(ctx context.Context, r exchange.Runner, c *cohort.Cohort, pairs [][2]int, name string) ([]*exchange.Exchange, error) {
	at := map[[2]int]int{}
	for i, p := range pairs {
		at[p] = i
	}
	list := make([]*exchange.Exchange, len(pairs))
	rounds.SideBySide(pairs, rounds.PairsAtOnce(1), func(p [2]int) { list[at[p]] = r.Run(ctx, endOf(c, p[0]), endOf(c, p[1])) })
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	ref, err := j.Run.Attach(name, text)
	j.r.Evidence = append(j.r.Evidence, ref)
	return list, err
}

// endOf is a member as it takes part; on a network on which the files give it no address it finds
// its own.
func endOf(c *cohort.Cohort, i int) exchange.End {
	m := c.Members[i]
	e := exchange.End{Node: m.Name(), Place: i}
	if m.Node.BootNetwork == c.Network {
		e.Address = m.Node.Address
	}
	for _, t := range m.Node.Tagged {
		if t.Network == c.Network {
			e.Address = t.Address
		}
	}
	return e
}

// usual are the figures of nodes in service of a cohort that are not measured now.
func (j *job) usual(c *cohort.Cohort) (all [2][]bimodal.Figure) {
	now := result.SetOf(j.r.Members)
	for _, n := range j.Group.Nodes {
		id := subject.OfNode(n.Name)
		if _, accepted := j.Run.Fact(result.AcceptedFact.Of(id)); !accepted || now[n.Name] {
			continue
		}
		was, _ := target.ReadFact(j.Run, NodeFact, id)
		for _, f := range was.Figures {
			if f.Network == c.Network.Name && f.Hardware == c.Hardware && f.Sends > 0 && f.Receives > 0 {
				all[0], all[1] = append(all[0], bimodal.Figure{Node: n.Name, Value: f.Sends}), append(all[1], bimodal.Figure{Node: n.Name, Value: f.Receives})
			}
		}
	}
	return all
}

// keep takes a cohort's figures into the report.
func (j *job) keep(c *cohort.Cohort, v *cohort.Verdict, done []*exchange.Exchange) {
	for i, m := range c.Members {
		rec := j.of[m.Name()]
		sent, received, measured := v.Reached(i)
		least := min(sent, received)
		switch {
		case !measured:
			why := whyNot(done, i)
			j.note("%s: %s was not measured: %s", c, m.Name(), why)
			if m.Limit > 0 {
				rec.Cause = fmt.Sprintf("the site has a limit of %s, and it was not measured on network %s: %s", floor.NetworkTCP, c.Network.Name, why)
			}
		default:
			rec.Figures = append(rec.Figures, Figure{c.Network.Name, c.Hardware, sent, received})
			if least < m.Limit && !v.IsBad(i) {
				rec.Cause = fmt.Sprintf("network %s carries %s, and the limit of the site is %s", c.Network.Name, result.FormatRate(least), m.Text)
			}
		}
		if rec.Cause != "" || len(rec.Figures) > 0 {
			j.of[m.Name()] = rec
		}
	}
	for _, row := range v.Rows {
		if row.Count > 0 {
			j.r.Rows = append(j.r.Rows, row)
		}
	}
	j.r.Notes = append(j.r.Notes, v.Notes...)
}

func (j *job) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(j.r.Notes, text) {
		j.r.Notes = append(j.r.Notes, text)
	}
}

// whyNot is why a member was not measured.
func whyNot(done []*exchange.Exchange, i int) string {
	for _, x := range done {
		if (x.PlaceA == i || x.PlaceB == i) && x.Why != "" {
			return strings.TrimSpace(x.Why)
		}
	}
	return "it has no partner"
}

// learnNodes notes what was measured of each node that the step is about, and takes back what spoke
// against one that is not measured any more.
func (j *job) learnNodes(ctx context.Context) error {
	for _, name := range j.r.Members {
		rec, measured := j.of[name]
		if was, _ := target.ReadFact(j.Run, NodeFact, subject.OfNode(name)); j.mine[name] && (measured || was.Cause+was.Undecided != "") {
			if err := target.LearnFact(ctx, j.Run, NodeFact, subject.OfNode(name), rec); err != nil {
				return err
			}
		}
	}
	return nil
}
