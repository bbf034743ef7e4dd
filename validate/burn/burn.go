// SPDX-License-Identifier: Apache-2.0

// Package burn is the check that loads a node's GPUs for as long as the site wants, and
// the comparison of how warm those of a role got. What is seen is judged by
// validate/burnin.
package burn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// Report is what was seen of a node while its GPUs were loaded.
type Report struct {
	At      time.Time         `json:"at"`
	Asked   time.Duration     `json:"asked"`   // how long the site wants it
	Seconds float64           `json:"seconds"` // how long it was
	Looks   int               `json:"looks"`   // at the GPUs
	GPUs    []wire.BurnGPU    `json:"gpus"`
	Names   map[string]string `json:"names"`             // what the GPUs are called, by address
	Program string            `json:"program,omitempty"` // that loaded them, as a person writes it
	Vendor  string            `json:"vendor,omitempty"`  // of the GPUs
	// Left is how many degrees were left to each GPU's slowdown at its hottest moment,
	// by address, where the driver states it.
	Left map[string]float64 `json:"left_c,omitempty"`
	// Rates are what each GPU computed, by address, where the program says it; Least is the
	// maker's target in GFLOPS, 0 where none is known, and Source where that is from.
	Rates    map[string]burnin.Rate `json:"gflops,omitempty"`
	Least    float64                `json:"least_gflops,omitempty"`
	Source   string                 `json:"target_source,omitempty"`
	Model    string                 `json:"model,omitempty"`    // of the GPUs, as declared
	Rails    int                    `json:"rails,omitempty"`    // whose error counters were read before and behind
	Worn     []string               `json:"worn,omitempty"`     // those that counted more than a good link does
	Memories int                    `json:"memories,omitempty"` // memory controllers whose errors were
	// Links are the errors that PCIe links corrected, by address, and LinksTold how many links
	// told theirs.
	Links     map[string]burnin.LinkErrors `json:"links,omitempty"`
	LinksTold int                          `json:"links_told,omitempty"`
	// Throttles is of how many GPUs of AMD it is known what held their clocks down.
	Throttles int           `json:"throttles_told,omitempty"`
	Faults    []judge.Fault `json:"faults,omitempty"`
	Notes     []string      `json:"notes,omitempty"`
	Evidence  []string      `json:"evidence,omitempty"`
}

// Fact is the fact of a node's last burn-in.
const Fact = fact.Name[Report]("validate.burn")

// isAsked reports whether a node is burnt in: its site asks for it, and something
// here loads its GPUs.
func isAsked(n *inventory.Node) bool {
	return n.Validation != nil && n.Validation.BurnIn > 0 && target.HasGates(n) && burnin.VendorOf(n.Hardware) != ""
}

// bringsLoad reports whether something installs the program that loads the GPUs of
// a node: repositories of NVIDIA and of AMD have one, the archives of distributions
// have none.
func bringsLoad(n *inventory.Node) bool {
	want := map[string]kinds.Program{"nvidia": kinds.DCGM, "amd": kinds.RVS}[burnin.VendorOf(n.Hardware)]
	return n.Image != nil && (kinds.Brought(n, want) || slices.ContainsFunc(n.Drivers, func(d *inventory.Driver) bool {
		return target.GPUDrivers[d.Kind] && !stack.FromOwnArchive(n.Image, d)
	}))
}

// mostBurn is the longest burn-in: DCGM takes no longer one.
const mostBurn = 24 * time.Hour

// findProblems finds what of a burn-in cannot be done, and says which nodes it leaves
// out.
func findProblems(g target.Group, p *target.Problems) {
	v := g.Validation
	if v.BurnIn <= 0 {
		return
	}
	var cold []string
	for _, n := range g.Nodes {
		switch {
		case n.Hardware == nil || n.Hardware.GPUCount() == 0 || !target.HasGates(n) || burnin.VendorOf(n.Hardware) == "":
			cold = append(cold, n.Name)
		case !bringsLoad(n):
			p.Add(hcl.DiagError, v.Decl, "Nothing loads the GPUs", "Validation %q asks for a burn-in of %s, and nothing brings a program that loads the GPUs of node %s. %s", v.Name, v.BurnIn, n.Name, burnin.Of(n.Hardware, 0).Comes)
			return
		}
	}
	if long := time.Duration(v.BurnIn); long < time.Minute || long > mostBurn {
		p.Add(hcl.DiagError, v.Decl, "Burn-in is too short or too long", "Validation %q asks for a burn-in of %s: give one between 1min and 24h.", v.Name, v.BurnIn)
	}
	switch {
	case len(cold) == len(g.Nodes):
		p.Add(hcl.DiagError, v.Decl, "Nothing loads the nodes", "Validation %q asks for a burn-in, and what is burnt in are GPUs whose driver the site installs: none of its nodes has any.", v.Name)
	case len(cold) > 0:
		p.Add(hcl.DiagWarning, v.Decl, "Nodes stay unburnt", "Validation %q asks for a burn-in, and what is burnt in are GPUs whose driver the site installs: %s %s none.", v.Name, result.NameSome(cold), map[bool]string{true: "has", false: "have"}[len(cold) == 1])
	}
}

// burnStart is what a burn-in takes beside its time: the program begins and ends,
// and the node is looked at again.
const burnStart = time.Minute

// Check loads the GPUs of a node for as long as the site wants.
var Check = target.Check{Name: "burn", Scope: target.EachNode, Needs: []string{"gates", "bandwidth", "speed"}, For: target.Node(isAsked), Plan: planBurn, Run: runBurn, Asks: target.Asks{Block: findProblems},
	Duration: target.Duration{AsPlanned: true, Source: "burn_in of the site, and what its program takes to begin and to end"},
	Report:   target.Section{Title: "Burn-in", Read: readReport, Untested: "GPUs were not burnt in"},
	Docs:     target.Docs{Says: "GPUs, memory and links under full load", Page: "burn-in.md"}}

func readReport(f fact.Fact, of string) (result.Report, error) {
	r, err := Fact.Get(f)
	return r.Report(of), err
}

// planBurn loads a node's GPUs once its parts are as they must be and as fast. All nodes of a
// rack burn at once: that is what its circuits were bought for.
func planBurn(r target.Request) plan.Step {
	n := r.Node
	long := time.Duration(n.Validation.BurnIn)
	st := plan.Step{ID: r.ID, Stage: target.StageName, Action: plan.Read, Examines: true, Subject: subject.OfNode(n.Name), Title: fmt.Sprintf("load all GPUs for %s and watch them", n.Validation.BurnIn),
		Needs: r.After(nil, n),
		May:   plan.Effects(plan.Load), Yields: []fact.Key{Fact.Of(subject.OfNode(n.Name))}, Decl: stage.Source(n.Validation.Decl), Version: 1,
		Inputs:   []plan.Input{{Name: "burn_in", Value: n.Validation.BurnIn.String(), Decl: stage.Source(n.Validation.Decl)}},
		Deadline: plan.Budget{Expected: long + burnStart, Limit: long + burnin.Grace + 15*time.Minute}}
	for _, d := range n.Drivers {
		st.Needs = append(st.Needs, plan.Need{Step: plan.StepID(n.Name + "/drivers." + d.Name), On: plan.Success, Triggers: true})
	}
	return st
}

// burning is the work on one node.
type burning struct {
	*target.Job
	load burnin.Load
	long time.Duration
	rep  Report
}

// runBurn loads a node's GPUs, and blames each part that did not stand it.
func runBurn(ctx context.Context, j *target.Job) error {
	n, run := j.Node, j.Run
	long := time.Duration(n.Validation.BurnIn)
	b := &burning{Job: j, long: long, load: burnin.Of(n.Hardware, long)}
	b.rep = Report{At: run.Clock().Now().UTC(), Asked: long, Names: map[string]string{}, Program: b.load.Shown, Vendor: b.load.Vendor, Model: b.load.Model, Least: b.load.Least, Source: b.load.Source}
	if g, ok := target.ReadFact(run, gate.Fact, subject.OfNode(n.Name)); ok && g.GPUs != nil {
		b.rep.Names = maps.Clone(g.GPUs)
	}
	before, _, err := look.ReadNode(ctx, b.Nodes, n.Name, n.Hardware)
	if err != nil {
		return err
	}
	ends := b.ends()
	counted, began := rail.ReadCounters(ctx, j.Nodes, ends), run.Clock().Now()
	seen := burnin.Seen{Names: b.rep.Names, Before: before}
	if seen.Result, err = b.sweat(ctx); err != nil {
		return err
	}
	took := run.Clock().Now().Sub(began)
	degraded := rail.DegradedPorts(ends, counted, rail.ReadCounters(ctx, j.Nodes, ends), took)
	b.rep.Rails, b.rep.Memories = len(counted), len(before.Health.Memory)
	for _, p := range degraded {
		b.rep.Worn = append(b.rep.Worn, p.Describe())
	}
	for _, f := range rail.DegradedFindings(degraded) {
		if err := run.Blame(ctx, f); err != nil {
			return err
		}
	}
	return b.evaluate(ctx, seen)
}

// ends are the ports of the node's fabrics.
func (b *burning) ends() (list []rail.End) {
	for _, f := range fabric.Of(b.Node) {
		ports, _ := target.ReadFact(b.Run, fabric.Ports(f.Name), subject.OfNode(b.Node.Name))
		for _, p := range ports {
			list = append(list, rail.End{Node: b.Node, Port: p, Fabric: rail.FabricName([]*inventory.Node{b.Node}, f)})
		}
	}
	return list
}

// sweat loads the node: one command that lasts as long as the load does. A run
// that is resumed begins it anew; the node's own lock waits for one that is about
// to end, and refuses to be loaded twice.
func (b *burning) sweat(ctx context.Context) (r wire.BurnResult, err error) {
	p := wire.BurnParams{Program: b.load.Argv, Vendor: b.load.Vendor, Every: burnin.Every.Seconds(), Limit: (b.long + burnin.Grace).Seconds()}
	var failed error
	err = b.Run.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s/run-%d", b.Step.ID, b.Run.Clock().Now().UnixNano()),
		Kind: plan.Load, Repeatable: true,
		Does: fmt.Sprintf("load all GPUs of %s for %s with %s", b.Node.Name, b.Node.Validation.BurnIn, b.load.Program),
		Do: func(ctx context.Context) error {
			if b.load.File != "" {
				if failed = onnode.Write(ctx, b.Nodes, b.Node.Name, b.load.File, 0o600, []byte(b.load.Config)); failed != nil {
					return nil
				}
			}
			failed = onnode.Agent(ctx, b.Nodes, b.Node.Name, p, &r, "burn")
			return context.Cause(ctx)
		},
	})
	if err == nil {
		err = failed
	}
	return r, err
}

// evaluate looks at the node again, and blames each part.
func (b *burning) evaluate(ctx context.Context, seen burnin.Seen) error {
	again, printed, err := look.ReadNode(ctx, b.Nodes, b.Node.Name, b.Node.Hardware)
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, "$ %s\n%s%s\n", b.load.Shown, seen.Result.Output, seen.Result.Errors)
	ref, err := b.Run.Attach("burn-in.txt", append(text, printed...))
	if err != nil {
		return err
	}
	seen.After = again
	b.rep.Links, b.rep.LinksTold = burnin.Links(seen)
	b.rep.Throttles = burnin.ThrottlesTold(seen)
	parts := judge.New(b.Node.Hardware, again)
	for at := range b.rep.Links {
		seen.Names[at] = cmp.Or(seen.Names[at], parts.Part(at))
	}
	faults, notes, err := burnin.Judge(b.load, b.long, seen)
	if err != nil {
		return err
	}
	hot, _ := gate.Judge(b.Node.Hardware, target.AllowedGates(b.Node), again)
	var expected []string
	b.rep.Faults, expected = explainHeat(mergeFaults(faults, hot), coolingOf(b.Run, b.Node))
	notes = append(append(notes, expected...), copied(seen.Result.Arrays)...)
	b.rep.Notes, b.rep.Evidence, b.rep.Left = notes, []string{ref}, burnin.LeftItems(b.load, seen)
	b.rep.Rates = burnin.Rates(b.load, seen)
	b.rep.Seconds, b.rep.Looks, b.rep.GPUs = seen.Result.Seconds, seen.Result.Looks, seen.Result.GPUs
	for _, text := range notes {
		b.Run.Emit(event.Event{Type: event.Note, Text: text})
	}
	for _, f := range b.rep.Faults {
		if err := b.Run.Blame(ctx, f.Finding(b.Node.Name, ref)); err != nil {
			return err
		}
	}
	return target.LearnFact(ctx, b.Run, Fact, subject.OfNode(b.Node.Name), b.rep)
}

// mergeFaults joins lists of faults: one of each part, with the first cause and all
// evidence.
func mergeFaults(lists ...[]judge.Fault) (all []judge.Fault) {
	for _, f := range slices.Concat(lists...) {
		i := slices.IndexFunc(all, func(o judge.Fault) bool { return o.Part == f.Part })
		if i < 0 {
			all = append(all, f)
			continue
		}
		all[i].Evidence = slices.Concat(all[i].Evidence, f.Evidence)
	}
	return all
}

// copied says which arrays were copied onto their disks while the GPUs were loaded: it is
// no fault, and its heat and its transfers are part of what was measured.
func copied(arrays []wire.Array) (notes []string) {
	for _, a := range arrays {
		if a.Doing != "" {
			notes = append(notes, fmt.Sprintf("array %s (%s) was being copied onto its disks when the load began: %s at %.0f %%", a.Name, a.Level, a.Doing, a.Percent))
		}
	}
	return notes
}
