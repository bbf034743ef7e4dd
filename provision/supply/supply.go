// SPDX-License-Identifier: Apache-2.0

// Package supply is the stage that proves the power behind nodes and switches: once the
// nodes of a PDU have been tested under load, the PDU is read, and a breaker that
// is open, an outlet that is off, and a phase above its limit are found. So are supplies of
// power shelves that have no input, failed, or are missing. What has
// a second feed runs on without noticing; nothing else would say it.
package supply

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/pdu"
)

// The stage's name and the version of its fingerprints.
const (
	Name    = "supply"
	Version = 1
)

// limit is the hang deadline of a reading: slow cards take a second for each of
// some twenty requests.
const limit = 3 * time.Minute

// What the stage learns of a PDU. Before is read when the run begins and the
// nodes idle or are off; Reading once they were tested.
const (
	BeforeFact  = fact.Name[pdu.Reading]("pdu.before")
	readingFact = fact.Name[pdu.Reading]("pdu.reading")
)

// systemFact is what the stage install learns of a node that runs from its disk; that it
// is there is all that is read.
const systemFact = fact.Name[struct{}]("node.system")

// Dependencies is what the stage reaches.
type Dependencies interface {
	// Meter opens a PDU that has a control block.
	Meter(p *inventory.PDU) (pdu.Meter, error)
	// Shelf opens a power shelf that has a control block.
	Shelf(s *inventory.Shelf) (Shelf, error)
}

// Stage is the supply stage. It is safe for concurrent use.
type Stage struct {
	inv  *inventory.Inventory
	deps Dependencies
}

// New makes the stage; world may be nil when only Plan is called.
func New(inv *inventory.Inventory, world Dependencies) *Stage { return &Stage{inv: inv, deps: world} }

// Name implements stage.Stage.
func (s *Stage) Name() string { return Name }

// Version implements stage.Stage.
func (s *Stage) Version() int { return Version }

// stepOf returns the id of the step that judges a PDU.
func stepOf(p string) plan.StepID { return plan.StepID(p + "/" + Name + ".check") }

// beforeOf returns the id of the step that reads a PDU first.
func beforeOf(p string) plan.StepID { return plan.StepID(p + "/" + Name + ".before") }

// Of is the subject of a PDU.
func Of(p *inventory.PDU) subject.ID { return subject.ID{Kind: subject.PDU, Name: p.Name} }

// Plan implements stage.Stage: two readings of each PDU that can be read, before and
// after the work on its nodes; of one that feeds no installed node, such as one of
// switches, after the work on all nodes. Power shelves are read once, after it.
func (s *Stage) Plan(stage.View) (steps []plan.Step, diags hcl.Diagnostics) {
	fed := s.fed()
	steps = make([]plan.Step, 0, 2*len(fed))
	var ofAll []plan.Need // of the next PDU without a node
	for _, r := range s.inv.Racks {
		for _, p := range r.PDUs {
			if !IsRead(p) {
				continue
			}
			if nodes := fed[p.Name]; len(nodes) > 0 {
				steps = append(steps, s.steps(p, needsOf(nodes))...)
				continue
			}
			if ofAll == nil {
				ofAll = needsOf(s.installed())
			}
			steps = append(steps, s.steps(p, ofAll)...)
			// The others are read after this one: a need of every node for every PDU would be
			// millions in a large site.
			ofAll = []plan.Need{{Step: stepOf(p.Name), On: plan.Settled, Triggers: true}}
		}
		steps = append(steps, shelfSteps(r)...)
	}
	return steps, s.Check()
}

// Check implements stage.Checker.
func (s *Stage) Check() (diags hcl.Diagnostics) {
	for _, r := range s.inv.Racks {
		for _, p := range r.PDUs {
			if p.Control != nil && !slices.Contains(pdu.Models(), p.Control.Model) {
				diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "PDU model cannot be read", Subject: p.Control.Decl.Ptr(),
					Detail: fmt.Sprintf("PDU %q has model %q. The models that can be read are %s. Without a control block the PDU is left alone.", p.Name, p.Control.Model, strings.Join(pdu.Models(), ", "))})
			}
		}
	}
	return diags
}

// fed lists the installed nodes of each PDU.
func (s *Stage) fed() map[string][]*inventory.Node {
	fed := map[string][]*inventory.Node{}
	for _, n := range s.installed() {
		for i, f := range n.Feeds {
			if f.PDU != nil && !slices.ContainsFunc(n.Feeds[:i], func(o inventory.Feed) bool { return o.PDU == f.PDU }) {
				fed[f.PDU.Name] = append(fed[f.PDU.Name], n)
			}
		}
	}
	return fed
}

// installed lists the nodes that are installed.
func (s *Stage) installed() (nodes []*inventory.Node) {
	for _, n := range s.inv.Nodes {
		if n.Image != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// needsOf waits for the heaviest load of nodes.
func needsOf(nodes []*inventory.Node) []plan.Need {
	needs := make([]plan.Need, 0, len(nodes))
	for _, n := range nodes {
		needs = append(needs, plan.Need{Step: lastStep(n), On: plan.Settled, Triggers: true})
	}
	return needs
}

// steps are the two readings of a PDU, the second one after others.
func (s *Stage) steps(p *inventory.PDU, after []plan.Need) []plan.Step {
	first := plan.Step{ID: beforeOf(p.Name), Stage: Name, Subject: Of(p), Only: plan.WhenNeeded,
		Title: fmt.Sprintf("read PDU %s at %s before its nodes are worked on", p.Name, p.Control.Address),
		Decl:  stage.Source(p.Control.Decl), Deadline: plan.Budget{Limit: limit, Expected: 2 * time.Second}, Version: Version,
		Yields: []fact.Key{BeforeFact.Of(Of(p))}}
	st := plan.Step{ID: stepOf(p.Name), Stage: Name, Subject: Of(p),
		Title: fmt.Sprintf("read PDU %s at %s: breakers, outlets, load of each phase", p.Name, p.Control.Address),
		Decl:  stage.Source(p.Control.Decl), Deadline: plan.Budget{Limit: limit, Expected: 2 * time.Second}, Version: Version,
		Yields: []fact.Key{readingFact.Of(Of(p))}, Needs: make([]plan.Need, 1, 1+len(after))}
	st.Needs[0] = plan.Need{Step: first.ID, On: plan.Settled}
	st.Needs = append(st.Needs, after...)
	return []plan.Step{first, st}
}

// lastStep is what a node is at its heaviest load in: its tests, or the boot of a
// node that is not tested.
func lastStep(n *inventory.Node) plan.StepID {
	if n.Validation != nil {
		return plan.StepID(n.Name + "/validate.accept")
	}
	return plan.StepID(n.Name + "/install.boot")
}

// Observe implements stage.Stage: a PDU has to be asked each time.
func (s *Stage) Observe(context.Context, stage.Run, plan.Step) (stage.Observation, error) {
	return stage.Observation{State: stage.Unknown}, nil
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	if st.Subject.Kind == subject.Shelf {
		return s.applyShelf(ctx, run, st.Subject.Name)
	}
	p, ok := s.find(st.Subject.Name)
	if !ok {
		return errkind.New(errkind.NotFound, "PDU %s is planned for but not in the inventory", st.Subject.Name).Do("Make a new plan: `ironrail plan`.")
	}
	m, err := s.deps.Meter(p)
	var r pdu.Reading
	if err == nil {
		r, err = m.Read(ctx)
	}
	if err != nil {
		return s.reportPart(ctx, run, p, "", "the PDU cannot be read", []string{err.Error()}, errkind.Action(err), err)
	}
	name := readingFact
	if st.ID.Base() == beforeOf(p.Name) {
		name = BeforeFact
	}
	f, err := name.New(Of(p), r, "")
	if err != nil {
		return err
	}
	if err := run.Learn(ctx, f); err != nil || name == BeforeFact {
		return err
	}
	return s.checkReading(ctx, run, p, r)
}

// find returns a PDU by its scoped name.
func (s *Stage) find(name string) (*inventory.PDU, bool) {
	for _, r := range s.inv.Racks {
		for _, p := range r.PDUs {
			if p.Name == name {
				return p, true
			}
		}
	}
	return nil, false
}

// checkReading finds what is wrong with a reading.
func (s *Stage) checkReading(ctx context.Context, run stage.Run, p *inventory.PDU, r pdu.Reading) error {
	nodes := s.names(p)
	var before pdu.Reading
	if f, ok := run.Fact(BeforeFact.Of(Of(p))); ok {
		if got, err := BeforeFact.Get(f); err == nil {
			before = got
		}
	}
	open := s.openBreakers(p, before, r)
	if cause := s.darkCause(run, p, r, open); cause != "" {
		return s.reportPart(ctx, run, p, "", cause,
			[]string{fmt.Sprintf("PDU %s measures %.0f W in all, and nothing behind its %d breakers; it feeds %s", p.Name, r.Watts, len(r.Breakers), orNothing(nodes))},
			fmt.Sprintf("Look for the main breaker and the feed %s of PDU %s in rack %s, and for what tripped it, before closing anything; nodes and switches with a second feed run without redundancy until then.", p.Feed, p.Name, p.Rack.Name), nil)
	}
	for _, b := range open {
		return s.reportPart(ctx, run, p, fmt.Sprintf("breaker %d", b.Number), fmt.Sprintf("breaker %d is open: its outlets have no power", b.Number),
			[]string{fmt.Sprintf("PDU %s measures %.1f A behind breaker %d, %.0f W in all; it feeds %s", p.Name, b.Amps, b.Number, r.Watts, orNothing(nodes))},
			fmt.Sprintf("Find out what overloaded breaker %d of PDU %s in rack %s before closing it; nodes and switches with a second feed run without redundancy until then.", b.Number, p.Name, p.Rack.Name), nil)
	}
	most := float64(p.Current) * derateOf(p)
	for _, ph := range r.Phases {
		if ph.Volts >= 0 && ph.Volts < 1 {
			return s.reportPart(ctx, run, p, "input", fmt.Sprintf("phase %d has no voltage", ph.Number),
				[]string{fmt.Sprintf("PDU %s measures %.0f V and %.1f A on phase %d; it feeds %s", p.Name, ph.Volts, ph.Amps, ph.Number, orNothing(nodes))},
				fmt.Sprintf("Check feed %s and its breaker upstream of PDU %s.", p.Feed, p.Name), nil)
		}
		if most > 0 && ph.Amps > most {
			return s.reportPart(ctx, run, p, fmt.Sprintf("phase %d", ph.Number), fmt.Sprintf("phase %d carries more than its limit", ph.Number),
				[]string{fmt.Sprintf("%.1f A on phase %d; %g A derated to %.0f%% are %.1f A", ph.Amps, ph.Number, float64(p.Current), 100*derateOf(p), most)},
				"Move nodes to other outlets or PDUs so that the phases are even; `ironrail check` says which loads hang where.", nil)
		}
	}
	return nil
}

// openBreakers lists the breakers that are open.
func (s *Stage) openBreakers(p *inventory.PDU, before, now pdu.Reading) (open []pdu.Breaker) {
	plugs := s.plugs(p)
	for _, b := range now.Breakers {
		if b.State == pdu.BreakerOpen || stoppedReporting(b, before, now, plugs) {
			open = append(open, b)
		}
	}
	return open
}

// darkCause says why no outlet of a PDU has power; "": some have.
func (s *Stage) darkCause(run stage.Run, p *inventory.PDU, r pdu.Reading, open []pdu.Breaker) string {
	switch {
	case len(open) > 1 && len(open) == len(r.Breakers):
		return "every breaker is open: no outlet has power"
	case len(open) == 0 && carriesNothing(r) && s.feedsRunning(run, p):
		return "nothing flows through it: no outlet has power"
	}
	return ""
}

// What meters show of nothing and of something, in amperes.
const (
	noAmps  = 0.05
	anyAmps = 1.0
)

// stoppedReporting reports whether nothing flows behind a breaker any more: many models
// measure the current and do not say that a breaker is open. Something flowed
// there before, or flows behind every other one, and there are more plugs than
// breakers: of fewer, one breaker may have none.
func stoppedReporting(b pdu.Breaker, before, now pdu.Reading, plugs int) bool {
	if b.State != pdu.BreakerUnknown || b.Amps > noAmps {
		return false
	}
	for _, was := range before.Breakers {
		if was.Number == b.Number && was.Amps > noAmps {
			return true
		}
	}
	others := 0
	for _, o := range now.Breakers {
		switch {
		case o.Number == b.Number:
			continue
		case o.Amps < anyAmps:
			return false
		}
		others++
	}
	return others > 1 && plugs > len(now.Breakers)
}

// carriesNothing reports whether no breaker lets anything through, as when all of them were
// open before the first reading. What hangs on a PDU draws something even while it is off:
// its BMC runs. Belief: no supply idles below 0.05 A.
func carriesNothing(r pdu.Reading) bool {
	return len(r.Breakers) > 0 && !slices.ContainsFunc(r.Breakers, func(b pdu.Breaker) bool { return b.State == pdu.BreakerClosed || b.Amps > noAmps })
}

// feedsRunning reports whether something that runs hangs on a PDU: a switch, or a node that
// has booted from its disk.
func (s *Stage) feedsRunning(run stage.Run, p *inventory.PDU) bool {
	return len(s.switches(p)) > 0 || slices.ContainsFunc(s.fed()[p.Name], func(n *inventory.Node) bool {
		_, booted := run.Fact(systemFact.Of(subject.OfNode(n.Name)))
		return booted
	})
}

// plugs is how many supplies of nodes and switches hang on a PDU.
func (s *Stage) plugs(p *inventory.PDU) (n int) {
	count := func(feeds []inventory.Feed) {
		for _, f := range feeds {
			if f.PDU == p {
				n++
			}
		}
	}
	for _, node := range s.inv.Nodes {
		count(node.Feeds)
	}
	for _, sw := range s.inv.Switches {
		count(sw.Feeds)
	}
	return n
}

// switches lists those that a PDU feeds, by name.
func (s *Stage) switches(p *inventory.PDU) (names []string) {
	for _, sw := range s.inv.Switches {
		if slices.ContainsFunc(sw.Feeds, func(f inventory.Feed) bool { return f.PDU == p }) {
			names = append(names, sw.Name)
		}
	}
	return names
}

// derateOf returns the usable share of the current; math.Min guards a site that says more.
func derateOf(p *inventory.PDU) float64 {
	if p.Derate == 0 {
		return 0.8
	}
	return math.Min(p.Derate, 1)
}

// names lists the nodes and switches that a PDU feeds, at most a few of them.
func (s *Stage) names(p *inventory.PDU) string {
	var names []string
	for _, n := range s.fed()[p.Name] {
		names = append(names, n.Name)
	}
	names = append(names, s.switches(p)...)
	if len(names) > 6 {
		names = append(names[:6], fmt.Sprintf("and %d more", len(names)-6))
	}
	return strings.Join(names, ", ")
}

// orNothing is a list of names for a sentence.
func orNothing(names string) string {
	if names == "" {
		return "nothing that the site says"
	}
	return names
}

// reportPart records a finding about a PDU and returns the error of the step.
func (s *Stage) reportPart(ctx context.Context, run stage.Run, p *inventory.PDU, part, cause string, evidence []string, action string, err error) error {
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: Of(p), Part: part}}, Cause: cause, Evidence: evidence, Action: action}
	if berr := run.Blame(ctx, f); berr != nil {
		return berr
	}
	if err != nil {
		return err
	}
	return errkind.New(errkind.Mismatch, "PDU %s: %s", p.Name, cause).Do(action)
}
