// SPDX-License-Identifier: Apache-2.0

package bandwidth

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// Fact is the fact of a node's last bandwidths of GPUs.
const Fact = fact.Name[result.Report]("validate.bandwidth")

// gpuMeasures are the limits that are held by the bandwidths of GPUs.
var gpuMeasures = []string{floor.HBMCopy, floor.HostToDevice, floor.DeviceToHost, floor.PeerRead}

// Check measures the GPUs of a node by themselves.
var Check = target.Check{Name: "bandwidth", Scope: target.EachNode, Needs: []string{"gates"}, For: target.Node(target.HasGates), Plan: planBandwidth, Run: runBandwidth,
	Asks:     target.Asks{Limits: gpuMeasures, Limit: limitProblems},
	Duration: target.Duration{Low: 30 * time.Second, Mid: 70 * time.Second, High: 5 * time.Minute, Source: "estimate: a minute for eight GPUs of NVIDIA; AMD's program is told to measure for two"},
	Report:   target.Section{Title: "Bandwidths of GPUs", Read: target.AsStored, Untested: "bandwidths of GPUs were not measured"},
	Docs:     target.Docs{Says: "the memory of GPUs, and the links to their host and to each other", Page: "bandwidth.md"}}

// planBandwidth measures a node's GPUs once its gates let it through, and before
// anything between nodes is.
func planBandwidth(r target.Request) plan.Step {
	n, g := r.Node, r.Group
	st := plan.Step{ID: r.ID, Stage: target.StageName, Action: plan.Read, Examines: true, Subject: subject.OfNode(n.Name), Title: "measure the memory and the links of the node's GPUs",
		Needs: r.After(nil, n), Yields: []fact.Key{Fact.Of(subject.OfNode(n.Name))},
		May: plan.Effects(plan.Load), Decl: stage.Source(n.Hardware.Decl), Version: 1, Deadline: plan.Budget{Expected: time.Minute}}
	vendors := listVendors(n.Hardware)
	if slices.Contains(vendors, "amd") {
		st.Deadline.Expected = 3 * time.Minute
	}
	st.Deadline.Limit = time.Duration(len(vendors))*patience + 3*time.Minute
	st.Inputs = []plan.Input{{Name: "gpus", Value: target.GPUsOf(n.Hardware), Decl: stage.Source(n.Hardware.Decl)}}
	if g != nil {
		st.Inputs = append(st.Inputs, g.LimitInputs(gpuMeasures...)...)
	}
	return st
}

// limitsOf returns what the site asks for of a measure; g may be nil.
func limitsOf(g *target.Group) func(string) Limit {
	return func(measure string) Limit {
		if g == nil {
			return Limit{}
		}
		least, text := g.Floor(measure)
		return Limit{Least: least, Text: text}
	}
}

// runBandwidth measures the GPUs of a node, and blames each that is slow.
func runBandwidth(ctx context.Context, j *target.Job) error {
	n, run := j.Node, j.Run
	b := &bandwidths{run: run, n: n, g: j.Group, rep: result.Report{At: run.Clock().Now().UTC(), Members: []string{n.Name},
		Proves: "Each GPU moves bytes at the bandwidth shown: in its memory, to and from its host, and to the others of its node. It says nothing of errors under heat, nor of other nodes."}}
	gates, _ := target.ReadFact(run, gate.Fact, subject.OfNode(n.Name))
	b.names = gates.GPUs
	for _, vendor := range listVendors(n.Hardware) {
		if err := b.measure(ctx, j, vendor); err != nil {
			return err
		}
	}
	for _, f := range b.findings {
		if err := run.Blame(ctx, f); err != nil {
			return err
		}
	}
	return target.LearnFact(ctx, run, Fact, subject.OfNode(n.Name), b.rep)
}

// bandwidths is the work on one node.
type bandwidths struct {
	run      stage.Run
	n        *inventory.Node
	g        *target.Group
	names    map[string]string // of GPUs, by address
	rep      result.Report
	findings []stage.Finding
}

// measure measures the GPUs of one vendor.
func (b *bandwidths) measure(ctx context.Context, j *target.Job, vendor string) error {
	var r Output
	var failed error
	err := b.run.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s/run-%d", j.Step.ID, b.run.Clock().Now().UnixNano()),
		Kind: plan.Load, Repeatable: true,
		Does: "load the GPUs of " + b.n.Name + " with copies",
		Do: func(ctx context.Context) error {
			r, failed = TakeFigures(ctx, j.Nodes, b.n.Name, vendor, b.n.Hardware)
			return context.Cause(ctx)
		},
	})
	if err != nil {
		return err
	}
	ref := ""
	if len(r.Printed) > 0 {
		if ref, err = b.run.Attach("bandwidth.txt", r.Printed); err != nil {
			return err
		}
	}
	switch {
	case failed != nil:
		return failed
	case r.Absent != "" && len(b.asked()) > 0:
		return errkind.New(errkind.Unsupported, "nothing measures the GPUs of %s, and the site has a limit of %s: %s", b.n.Name, strings.Join(b.asked(), ", "), r.Absent).
			Do("Do that, or take the limit out of validation \"" + b.g.Validation.Name + "\".")
	case r.Absent != "":
		b.run.Emit(event.Event{Type: event.Note, Text: "bandwidths of GPUs were not measured: " + r.Absent})
		b.rep.NotJudged = append(b.rep.NotJudged, "bandwidths of GPUs were not measured: "+r.Absent)
		return nil
	}
	for _, gap := range FindGaps(b.n.Hardware, r) {
		b.run.Emit(event.Event{Type: event.Note, Text: gap})
		b.rep.NotJudged = append(b.rep.NotJudged, gap)
	}
	b.evaluate(r, ref)
	return nil
}

// asked are the measures that the site has a limit of.
func (b *bandwidths) asked() (list []string) {
	for _, m := range gpuMeasures {
		if limitsOf(b.g)(m).Least > 0 {
			list = append(list, m)
		}
	}
	return list
}

// evaluate turns figures into results, and bad ones into findings about GPUs: one of
// each GPU, or pair of them, with all that is slow of it.
func (b *bandwidths) evaluate(r Output, ref string) {
	type suspected struct {
		gpus          []string
		says, figures []string
	}
	var all []*suspected
	for _, j := range Judge(b.n.Hardware, r, limitsOf(b.g)) {
		b.rep.Results = append(b.rep.Results, b.results(j, r, ref)...)
		for _, gpus := range j.Suspects() {
			i := slices.IndexFunc(all, func(s *suspected) bool { return slices.Equal(s.gpus, gpus) })
			if i < 0 {
				i, all = len(all), append(all, &suspected{gpus: gpus})
			}
			worst := slowestOf(j.Bad, gpus)
			all[i].says = append(all[i].says, fmt.Sprintf("%s run at %s, and %s is %s", j.Measure.What, result.FormatRate(worst.Rate), result.FormatRate(j.Least), j.Rule))
			all[i].figures = append(all[i].figures, b.figures(j))
		}
	}
	for _, s := range all {
		f := stage.Finding{Cause: b.name(s.gpus) + ": " + strings.Join(s.says, "; "), Evidence: append(s.figures, ref),
			Action: "Reset the GPU or reboot the node and apply again; if it stays slow, have the GPU replaced."}
		for _, gpu := range s.gpus {
			f.Suspects = append(f.Suspects, stage.Suspect{Subject: subject.OfNode(b.n.Name), Part: b.name([]string{gpu})})
		}
		if len(s.gpus) > 1 {
			f.Action = "Reset both GPUs or reboot the node and apply again; if it stays slow, have the board between them looked at."
		}
		b.findings = append(b.findings, f)
	}
	if len(all) > 0 {
		b.rep.Suspects = []string{b.n.Name}
	}
}

// slowestOf is the slowest figure that all of the given GPUs, one or two, are part
// of.
func slowestOf(list []Figure, gpus []string) (worst Figure) {
	for _, f := range list {
		part := !slices.ContainsFunc(gpus, func(at string) bool { return at != f.GPU && at != f.Peer })
		if part && (worst.Rate == 0 || f.Rate < worst.Rate) {
			worst = f
		}
	}
	return worst
}

// name is what GPUs are called.
func (b *bandwidths) name(gpus []string) string {
	var list []string
	for _, at := range gpus {
		name := b.names[at]
		if name == "" {
			name = "GPU at " + at
		}
		list = append(list, name)
	}
	return strings.Join(list, " and ")
}

// figures puts all figures of a measure into a line; of copies between two GPUs,
// the range.
func (b *bandwidths) figures(j Judged) string {
	if j.Measure.Between {
		return fmt.Sprintf("%s: %d copies, from %s to %s", j.Measure.Name, len(j.Figures), result.FormatRate(j.Slowest().Rate), result.FormatRate(j.Fastest().Rate))
	}
	var list []string
	for _, f := range j.Figures {
		short, _, _ := strings.Cut(b.name([]string{f.GPU}), " at 0")
		list = append(list, short+" "+result.FormatRate(f.Rate))
	}
	return j.Measure.Name + ": " + strings.Join(list, ", ")
}

// results are one of the slowest GPU, which speaks for all when it passes, and of
// each other one that does not.
func (b *bandwidths) results(j Judged, r Output, ref string) []result.Result {
	base := result.Result{Check: j.Measure.Name, Nodes: []string{b.n.Name}, Unit: "B/s", Rule: j.Rule, Verdict: result.Pass, Transport: j.Measure.Over, Evidence: []string{ref},
		Params: fmt.Sprintf("%s, %s; the slowest of %d, the fastest %s", r.Program, r.Params, len(j.Figures), result.FormatRate(j.Fastest().Rate))}
	if j.Least > 0 {
		base.Limit = ">= " + result.FormatRate(j.Least)
	} else {
		base.Verdict, base.Why = result.NotJudged, "no limit is given, none is known of the model, and its GPUs are too few to compare"
	}
	part := func(f Figure) string {
		if f.Peer != "" {
			return b.name([]string{f.GPU, f.Peer})
		}
		return b.name([]string{f.GPU})
	}
	base.Part, base.Measured = part(j.Slowest()), j.Slowest().Rate
	if len(j.Bad) == 0 {
		return []result.Result{base}
	}
	var list []result.Result
	for _, f := range j.Bad {
		one := base
		one.Part, one.Measured, one.Verdict, one.Why = part(f), f.Rate, result.Fail, "below "+j.Rule
		one.Params = fmt.Sprintf("%s, %s", r.Program, r.Params)
		list = append(list, one)
	}
	return list
}

// limitProblems finds what of a limit of GPUs cannot be held, and what may bring
// the program that measures it.
func limitProblems(g target.Group, l inventory.MeasureLimit, p *target.Problems) {
	for _, n := range g.Nodes {
		if !target.HasGates(n) {
			p.Add(hcl.DiagError, l.Decl, "Limit is not measured", "Limit %q of validation %q is of GPUs, and nothing brings a driver of GPUs to node %s.", l.Name, g.Validation.Name, n.Name)
			return
		}
		for _, vendor := range listVendors(n.Hardware) {
			if name, comes := programOf(vendor); !hasProgram(n, vendor) {
				p.Add(hcl.DiagWarning, l.Decl, "Nothing is known to bring "+name, "Limit %q of validation %q is measured with %s, and no driver of node %s brings it. %s Without it the node is not accepted.", l.Name, g.Validation.Name, name, n.Name, comes)
				return
			}
		}
	}
}

// measuring are the programs that measure GPUs, by vendor.
var measuring = map[string]kinds.Program{"nvidia": kinds.NVBandwidth, "amd": kinds.RVS}

// hasProgram reports whether something installs the program that measures the GPUs of a
// vendor: a package of that name, or the driver from its vendor's own repository,
// whose recipe has it.
func hasProgram(n *inventory.Node, vendor string) bool {
	if n.Image == nil || kinds.Brought(n, measuring[vendor]) || !stack.HasOwnArchive(n.Image) {
		return true // what other systems have is not known: their drivers come from the vendor's repositories
	}
	return slices.ContainsFunc(n.Drivers, func(d *inventory.Driver) bool {
		return target.GPUDrivers[d.Kind] && stack.HasRepository(d)
	})
}
