package validate

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
	"github.com/ironrail/ironrail/validate/nccl"
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

// judge says which runs of one scope are bad: no result, wrong sums, a bandwidth
// below what is asked for, published or usual among the others, and one above
// what the wire can carry.
func (c *collective) judge(bouts []*bout) {
	var good []float64
	for _, b := range bouts {
		c.judgeAlone(b)
		if b.why == "" {
			good = append(good, b.m.BusBW)
		}
	}
	if len(good) >= cohortLeast {
		slices.Sort(good)
		c.usual[bouts[0].scope] = good[len(good)/2]
	}
	for _, b := range bouts {
		if usual := c.usual[b.scope]; b.why == "" && b.m.BusBW < cohortShare*usual {
			b.limit = fmt.Sprintf(">= %s", rate(cohortShare*usual))
			b.why = fmt.Sprintf("bus bandwidth %s, and the median of such runs is %s: less than %.0f%% of it", rate(b.m.BusBW), rate(usual), 100*cohortShare)
		}
	}
}

// judgeAlone judges one run by itself.
func (c *collective) judgeAlone(b *bout) {
	if b.err != nil {
		b.why = b.err.Error()
		return
	}
	h := b.nodes[0].Hardware
	want := floor.Expect(h, len(b.nodes) > 1, c.g.v.AllReduce.Floor)
	least, source := want.Least, want.Source
	if given, limit := c.g.floor(AllReduceBandwidth); given > least {
		least, source = given, "the limit of the site, "+limit
	}
	if all := len(c.ports(b.nodes[0])); len(b.skip) > 0 && all > 0 { // its part of what all rails carry
		part := float64(all-len(b.skip)) / float64(all)
		least, want.Wire = least*part, want.Wire*part
	}
	if least > 0 {
		b.limit = ">= " + rate(least)
	}
	most := nccl.Ceiling(len(b.nodes), h.GPUCount(), want.Wire, b.ring())
	direct := c.notDirect(b)
	switch {
	case b.m.Wrong > 0:
		b.why = fmt.Sprintf("%d elements were not the sum", b.m.Wrong)
	case direct != "": // before the bandwidth, whose cause it is
		b.why = direct
	case b.m.BusBW < least:
		b.why = fmt.Sprintf("bus bandwidth %s at %s, and %s is %s", rate(b.m.BusBW), unit.Bytes(b.size), rate(least), source)
	case most > 0 && b.m.BusBW > beyond*most:
		b.why = fmt.Sprintf("bus bandwidth %s is more than the rails can carry, %s: the data did not go over them", rate(b.m.BusBW), rate(most))
	}
}

// narrow tries both sides of each bad pair with nodes of good pairs. A node that
// is bad with every other one is the suspect; when neither or both are, or nobody
// is left to try them with, the pair stays bad and no node is named.
func (c *collective) narrow(ctx context.Context, bouts []*bout) {
	var healthy []*inventory.Node
	for _, b := range bouts {
		if b.why == "" {
			healthy = append(healthy, b.nodes...)
		}
	}
	for _, b := range bouts {
		if b.why != "" && c.suspectIndirect(b) {
			c.restOf(ctx, b, healthy)
			continue
		}
		if b.why == "" || c.suspectNamed(b) || len(healthy) == 0 {
			continue
		}
		var bad []string
		for _, n := range b.nodes {
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
	for _, b := range bouts {
		if b.why != "" && len(healthy) == 0 && len(c.among(b)) == 0 {
			c.blameSet(b, "no pair is good, so nobody is left to try its nodes with")
		}
	}
}

// among are the nodes of a run that are suspected.
func (c *collective) among(b *bout) []string {
	return slices.DeleteFunc(names(b.nodes), func(n string) bool { return !slices.Contains(c.suspects, n) })
}

// badWith reports whether a node is bad with every partner that it is tried with.
func (c *collective) badWith(ctx context.Context, n *inventory.Node, healthy []*inventory.Node) bool {
	tried := 0
	for _, h := range healthy {
		if h == n || tried == partners || ctx.Err() != nil {
			continue
		}
		tried++
		again := c.fight(ctx, "pair", [][]*inventory.Node{{n, h}})
		again[0].again = n.Name
		c.judge(again)
		if again[0].why == "" {
			return false
		}
	}
	return tried > 0
}

// suspectNamed blames the node that the run itself names: the one that Open MPI or
// SSH could not reach.
func (c *collective) suspectNamed(b *bout) bool {
	if c.suspectIndirect(b) {
		return true
	}
	if b.err == nil {
		if b.scope != "pair" {
			c.blameSet(b, "with these members the run cannot be narrowed down; smaller scopes find a bad node")
		}
		return false
	}
	if b.named != "" && len(b.nodes) > 1 {
		c.suspect(b, b.named, "the run itself names "+b.named)
		return true
	}
	if b.scope != "pair" {
		c.blameSet(b, "the output names no node")
	}
	return false
}

func (c *collective) suspect(b *bout, node, how string) { c.suspectParts(b, node, nil, how) }

// suspectParts blames parts of a node, or the whole of it when none is named.
func (c *collective) suspectParts(b *bout, node string, parts []string, how ...string) {
	if slices.Contains(c.suspects, node) {
		return
	}
	c.suspects = append(c.suspects, node)
	action := "Look at " + node + ": its GPUs, the links between them, and the driver's log."
	switch {
	case len(parts) > 0:
		action = "Look at " + strings.Join(parts, " and ") + " of " + node + ": NIC, cable and switch port."
	case b.scope != "node":
		action = "Look at " + node + ": its GPUs, its links between them, and its rails, as the attached output says."
	}
	f := stage.Finding{Cause: "the all-reduce of GPUs over " + some(names(b.nodes)) + " is bad: " + b.why, Evidence: append(how, b.reference(c.rec)), Action: action}
	if len(parts) == 0 {
		parts = []string{"all-reduce of GPUs"}
	}
	for _, part := range parts {
		f.Suspects = append(f.Suspects, stage.Suspect{Subject: subject.OfNode(node), Part: part})
	}
	c.findings = append(c.findings, f)
}

// blameSet records that a run is bad and no node stands out.
func (c *collective) blameSet(b *bout, how string) {
	c.findings = append(c.findings, stage.Finding{
		Suspects: []stage.Suspect{{Subject: OfGroup(c.g.set), Part: "all-reduce of GPUs"}},
		Cause:    "the all-reduce of GPUs over " + some(names(b.nodes)) + " is bad: " + b.why, Evidence: []string{how, b.reference(c.rec)},
		Action: "Read the attached output. None of these nodes is accepted until their all-reduce is good.",
	})
}

// record makes the report, and the findings.
func (c *collective) record(ctx context.Context) error {
	rep := Report{At: c.rec.Clock().Now().UTC(), Members: names(c.list), Suspects: c.suspects, Proves: c.proves()}
	for _, b := range c.done {
		rep.Results = append(rep.Results, c.results(b)...)
	}
	for _, f := range c.findings {
		if err := c.rec.Blame(ctx, f); err != nil {
			return err
		}
	}
	return learn(ctx, c.rec, AllReduceReport, reportOf(c.st, AllReduceReport, c.g.set), rep)
}

// proves says what a good report means.
func (c *collective) proves() string {
	over := map[string]string{"node": "the GPUs of each node", "pair": "each node with a partner over a ring on their rails", "unit": "each scalable unit", "all": "all nodes"}
	if c.merged {
		over["all"] = "all nodes, which are one scalable unit"
	}
	var parts []string
	for _, scope := range scopes {
		if slices.ContainsFunc(c.done, func(b *bout) bool { return b.scope == scope }) {
			parts = append(parts, over[scope])
		}
	}
	return "GPUs compute one sum together, right in every element, at the bandwidth shown: " + strings.Join(parts, ", ") + ". It does not prove every path through the spines."
}

// results are the bandwidth and the count of wrong elements of one run. A second
// run of a bad pair speaks for the partner that it was run with only when good.
func (c *collective) results(b *bout) []Result {
	base := Result{Nodes: names(b.nodes), Part: b.scope, Transport: engineOf(c.g.v.AllReduce, b.nodes[0]).Transport(len(b.nodes)), Evidence: []string{b.reference(c.rec)}}
	if b.again != "" {
		base.Part += ", again for " + b.again
	}
	if len(b.skip) > 0 {
		base.Part += ", without rail " + strings.Trim(fmt.Sprint(b.skip), "[]")
	}
	bw, wrong := base, base
	bw.Check, bw.Unit, bw.Limit, bw.Verdict, bw.Measured = AllReduceBandwidth, "B/s", b.limit, Pass, b.m.BusBW
	wrong.Check, wrong.Unit, wrong.Limit, wrong.Verdict, wrong.Measured = WrongElements, "elements", "= 0", Pass, float64(b.m.Wrong)
	bw.Params = fmt.Sprintf("%s, %s, %d ranks, %d iterations, slower placement", b.m.Library, unit.Bytes(b.size), len(b.nodes)*b.nodes[0].Hardware.GPUCount(), nccl.Iterations)
	if b.m.Algorithm != "" {
		bw.Params += ", " + b.m.Algorithm
	}
	switch {
	case b.err != nil:
		bw.Verdict, bw.Why, wrong.Verdict, wrong.Why, bw.Params = Fail, b.why, NotJudged, "there is no result", ""
	case b.m.Wrong > 0:
		wrong.Verdict, wrong.Why = Fail, b.why
	case b.why != "":
		bw.Verdict, bw.Why = Fail, b.why
		bw.explain(b.explained)
	}
	return []Result{bw, wrong}
}
