// SPDX-License-Identifier: Apache-2.0

package collective

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/nccl"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

const (
	// cohortShare is the part of the median of like runs that each must reach, and
	// cohortLeast how many runs make a median.
	cohortShare = 0.95
	cohortLeast = 4
	// beyond is how far above what the wire can carry a figure may lie: rounding and
	// the rate of a link that is not exactly the nominal one.
	beyond = 1.02
	// partners is how many good nodes each side of a bad pair is tried with.
	partners = 2
)

// evaluate says which runs of one scope are bad: no result, wrong sums, a bandwidth
// below what is asked for, published or usual among the others, and one above
// what the wire can carry.
func (c *collective) evaluate(runs []*grouprun.Run) {
	var good []float64
	for _, b := range runs {
		c.judgeAlone(b)
		if b.Why == "" {
			good = append(good, b.Got.BusBW)
		}
	}
	if len(good) >= cohortLeast {
		slices.Sort(good)
		c.usual[runs[0].Scope] = good[len(good)/2]
	}
	for _, b := range runs {
		if usual := c.usual[b.Scope]; b.Why == "" && b.Got.BusBW < cohortShare*usual {
			b.Limit = fmt.Sprintf(">= %s", result.FormatRate(cohortShare*usual))
			b.Why = fmt.Sprintf("bus bandwidth %s, and the median of such runs is %s: less than %.0f%% of it", result.FormatRate(b.Got.BusBW), result.FormatRate(usual), 100*cohortShare)
		}
	}
}

// judgeAlone judges one run by itself.
func (c *collective) judgeAlone(b *grouprun.Run) {
	if b.Err != nil {
		b.Why = b.Err.Error()
		return
	}
	h := b.Nodes[0].Hardware
	want := floor.ExpectCollective(h, len(b.Nodes) > 1, c.Group.Validation.AllReduce.Floor)
	least, source := want.Least, want.Source
	if given, limit := c.Group.Floor(result.AllReduceBandwidth); given > least {
		least, source = given, "the limit of the site, "+limit
	}
	if all := len(c.Ports(b.Nodes[0])); len(b.Skip) > 0 && all > 0 { // its part of what all rails carry
		part := float64(all-len(b.Skip)) / float64(all)
		least, want.Wire = least*part, want.Wire*part
	}
	if least > 0 {
		b.Limit = ">= " + result.FormatRate(least)
	}
	most := nccl.BandwidthCeiling(len(b.Nodes), h.GPUCount(), want.Wire, b.Ring())
	direct := c.notDirect(b)
	switch {
	case b.Got.Wrong > 0:
		b.Why = fmt.Sprintf("%d elements were not the sum", b.Got.Wrong)
	case direct != "": // before the bandwidth, whose cause it is
		b.Why = direct
	case b.Got.BusBW < least:
		b.Why = fmt.Sprintf("bus bandwidth %s at %s, and %s is %s", result.FormatRate(b.Got.BusBW), unit.Bytes(b.Size), result.FormatRate(least), source)
	case most > 0 && b.Got.BusBW > beyond*most:
		b.Why = fmt.Sprintf("bus bandwidth %s is more than the rails can carry, %s: the data did not go over them", result.FormatRate(b.Got.BusBW), result.FormatRate(most))
	}
}

// narrow tries both sides of each bad pair with nodes of good pairs. A node that
// is bad with every other one is the suspect; when neither or both are, or nobody
// is left to try them with, the pair stays bad and no node is named.
func (c *collective) narrow(ctx context.Context, runs []*grouprun.Run) {
	var healthy []*inventory.Node
	for _, b := range runs {
		if b.Why == "" {
			healthy = append(healthy, b.Nodes...)
		}
	}
	for _, b := range runs {
		switch {
		case b.Why == "":
		case c.suspectIndirect(b):
			c.restOf(ctx, b, healthy)
		case !c.suspectNamed(b) && len(healthy) > 0:
			c.trySides(ctx, b, healthy)
		}
	}
	for _, b := range runs {
		if b.Why != "" && len(healthy) == 0 && len(c.among(b)) == 0 {
			c.blameSet(b, "no pair is good, so nobody is left to try its nodes with")
		}
	}
}

// trySides tries both nodes of a bad pair with good nodes, and blames what that says.
func (c *collective) trySides(ctx context.Context, b *grouprun.Run, healthy []*inventory.Node) {
	var bad []string
	for _, n := range b.Nodes {
		if c.badWith(ctx, n, healthy) {
			bad = append(bad, n.Name)
		}
	}
	switch len(bad) {
	case 1:
		c.suspectRails(ctx, b, bad[0], healthy, "it is bad with other partners as well, and the other of the pair is good with them")
	case 2:
		for _, n := range bad {
			c.suspectRails(ctx, b, n, healthy, "it is bad with other partners as well")
		}
	default:
		c.blameSet(b, "each of the two is good with other partners: what lies between them is bad, or it was so only once")
	}
}

// among are the nodes of a run that are suspected.
func (c *collective) among(b *grouprun.Run) []string {
	return slices.DeleteFunc(target.NodeNames(b.Nodes), func(n string) bool { return !slices.Contains(c.suspects, n) })
}

// badWith reports whether a node is bad with every partner that it is tried with.
func (c *collective) badWith(ctx context.Context, n *inventory.Node, healthy []*inventory.Node) bool {
	tried := 0
	for _, h := range healthy {
		if h == n || tried == partners || ctx.Err() != nil {
			continue
		}
		tried++
		again := c.runSets(ctx, "pair", [][]*inventory.Node{{n, h}})
		again[0].Again = n.Name
		c.evaluate(again)
		if again[0].Why == "" {
			return false
		}
	}
	return tried > 0
}

// suspectNamed blames the node that the run itself names: the one that Open MPI or
// SSH could not reach.
func (c *collective) suspectNamed(b *grouprun.Run) bool {
	if c.suspectIndirect(b) {
		return true
	}
	if b.Err == nil {
		if b.Scope != "pair" {
			c.blameSet(b, "with these members the run cannot be narrowed down; smaller scopes find a bad node")
		}
		return false
	}
	if b.Named != "" && len(b.Nodes) > 1 {
		c.suspect(b, b.Named, "the run itself names "+b.Named)
		return true
	}
	if b.Scope != "pair" {
		c.blameSet(b, "the output names no node")
	}
	return false
}

func (c *collective) suspect(b *grouprun.Run, node, how string) { c.suspectParts(b, node, nil, how) }

// suspectParts blames parts of a node, or the whole of it when none is named.
func (c *collective) suspectParts(b *grouprun.Run, node string, parts []string, how ...string) {
	if slices.Contains(c.suspects, node) {
		return
	}
	c.suspects = append(c.suspects, node)
	action := "Look at " + node + ": its GPUs, the links between them, and the driver's log."
	switch {
	case len(parts) > 0:
		action = "Look at " + strings.Join(parts, " and ") + " of " + node + ": NIC, cable and switch port."
	case b.Scope != "node":
		action = "Look at " + node + ": its GPUs, its links between them, and its rails, as the attached output says."
	}
	f := stage.Finding{Cause: "the all-reduce of GPUs over " + result.NameSome(target.NodeNames(b.Nodes)) + " is bad: " + b.Why, Evidence: append(how, b.Reference(c.Rec)), Action: action}
	if len(parts) == 0 {
		parts = []string{"all-reduce of GPUs"}
	}
	for _, part := range parts {
		f.Suspects = append(f.Suspects, stage.Suspect{Subject: subject.OfNode(node), Part: part})
	}
	c.findings = append(c.findings, f)
}

// blameSet records that a run is bad and no node stands out.
func (c *collective) blameSet(b *grouprun.Run, how string) {
	c.findings = append(c.findings, stage.Finding{
		Suspects: []stage.Suspect{{Subject: result.OfGroup(c.Group.Set), Part: "all-reduce of GPUs"}},
		Cause:    "the all-reduce of GPUs over " + result.NameSome(target.NodeNames(b.Nodes)) + " is bad: " + b.Why, Evidence: []string{how, b.Reference(c.Rec)},
		Action: "Read the attached output. None of these nodes is accepted until their all-reduce is good.",
	})
}

// record makes the report, and the findings.
func (c *collective) record(ctx context.Context) error {
	rep := result.Report{At: c.Rec.Clock().Now().UTC(), Members: target.NodeNames(c.list), Suspects: c.suspects, Proves: c.proves()}
	for _, b := range c.done {
		rep.Results = append(rep.Results, c.results(b)...)
	}
	for _, f := range c.findings {
		if err := c.Rec.Blame(ctx, f); err != nil {
			return err
		}
	}
	return target.LearnReport(ctx, c.Rec, c.st, result.AllReduceReport, c.Group.Set, rep)
}

// proves says what a good report means.
func (c *collective) proves() string {
	over := map[string]string{"node": "the GPUs of each node", "pair": "each node with a partner over a ring on their rails", "unit": "each scalable unit", "all": "all nodes"}
	if c.merged {
		over["all"] = "all nodes, which are one scalable unit"
	}
	var parts []string
	for _, scope := range scopes {
		if slices.ContainsFunc(c.done, func(b *grouprun.Run) bool { return b.Scope == scope }) {
			parts = append(parts, over[scope])
		}
	}
	return "GPUs compute one sum together, right in every element, at the bandwidth shown: " + strings.Join(parts, ", ") + ". It does not prove every path through the spines."
}

// results are the bandwidth and the count of wrong elements of one run. A second
// run of a bad pair speaks for the partner that it was run with only when good.
func (c *collective) results(b *grouprun.Run) []result.Result {
	base := result.Result{Nodes: target.NodeNames(b.Nodes), Part: b.Scope, Transport: grouprun.EngineOf(c.Group.Validation.AllReduce, b.Nodes[0]).Transport(len(b.Nodes)), Evidence: []string{b.Reference(c.Rec)}}
	if b.Again != "" {
		base.Part += ", again for " + b.Again
	}
	if len(b.Skip) > 0 {
		base.Part += ", without rail " + strings.Trim(fmt.Sprint(b.Skip), "[]")
	}
	bw, wrong := base, base
	bw.Check, bw.Unit, bw.Limit, bw.Verdict, bw.Measured = result.AllReduceBandwidth, "B/s", b.Limit, result.Pass, b.Got.BusBW
	wrong.Check, wrong.Unit, wrong.Limit, wrong.Verdict, wrong.Measured = result.WrongElements, "elements", "= 0", result.Pass, float64(b.Got.Wrong)
	bw.Params = fmt.Sprintf("%s, %s, %d ranks, %d iterations, slower placement", b.Got.Library, unit.Bytes(b.Size), len(b.Nodes)*b.Nodes[0].Hardware.GPUCount(), nccl.Iterations)
	if b.Got.Algorithm != "" {
		bw.Params += ", " + b.Got.Algorithm
	}
	switch {
	case b.Err != nil:
		bw.Verdict, bw.Why, wrong.Verdict, wrong.Why, bw.Params = result.Fail, b.Why, result.NotJudged, "there is no result", ""
	case b.Got.Wrong > 0:
		wrong.Verdict, wrong.Why = result.Fail, b.Why
	case b.Why != "":
		bw.Verdict, bw.Why = result.Fail, b.Why
		bw.Explain(b.Explained)
	}
	return []result.Result{bw, wrong}
}
