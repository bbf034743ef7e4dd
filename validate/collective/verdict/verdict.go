// SPDX-License-Identifier: Apache-2.0

// Package verdict judges all-reduces of GPUs, and keeps what one test of them found: the
// runs, and the nodes and rails that are blamed for bad ones.
package verdict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/nccl"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// Test is one test of a group, over all scopes.
type Test struct {
	*grouprun.Runner
	Members []*inventory.Node
	Out     []*inventory.Node // members that are out for a bad part: nothing is judged with them

	Usual    map[string]float64 // median bandwidth of all-reduces by scope; none of a scope with few runs
	common   map[likeness]string
	Suspects []string // nodes
	Findings []stage.Finding
	Done     []*grouprun.Run // all of them, in their order
	Cut      *grouprun.Run   // the first one whose output could not be read whole
}

// New returns the test of a job, which has run nothing.
func New(j *target.Job) *Test {
	t := &Test{Runner: grouprun.NewRunner(j), Usual: map[string]float64{}, common: map[likeness]string{}}
	t.Members, t.Out = target.SplitOut(j.Inv, j.Run)
	return t
}

// Forget makes a test as one that has run nothing: it is run once more.
func (c *Test) Forget() {
	c.Usual, c.common, c.Suspects, c.Findings, c.Done, c.Cut = map[string]float64{}, map[likeness]string{}, nil, nil, nil, nil
}

const (
	// CohortShare is the part of the median of like runs that each must reach, and
	// cohortLeast how many runs make a median.
	CohortShare = 0.95
	cohortLeast = 4
	// beyond is how far above what the wire can carry a figure may lie: rounding and
	// the rate of a link that is not exactly the nominal one.
	beyond = 1.02
)

// Evaluate says which runs of one scope are bad: no result, wrong sums, a bandwidth
// below what is asked for, published or usual among the others, one above what the wire
// can carry, and a library or an algorithm that most runs like it did not use.
func (c *Test) Evaluate(runs []*grouprun.Run) {
	var good []float64
	for _, b := range runs {
		c.JudgeAlone(b)
		if b.Why == "" {
			good = append(good, b.Got.BusBW)
		}
	}
	usual := 0.0
	if len(good) >= cohortLeast {
		slices.Sort(good)
		usual = good[len(good)/2]
	}
	if usual > 0 && runs[0].Does == "" {
		c.Usual[runs[0].Scope] = usual
	}
	for _, b := range runs {
		if b.Does == "" {
			usual = c.Usual[b.Scope]
		}
		judgeCohort(b, usual)
	}
	c.judgeChoices(runs)
}

// JudgeCohort judges one all-reduce by what is usual among those of its scope.
func (c *Test) JudgeCohort(b *grouprun.Run) { judgeCohort(b, c.Usual[b.Scope]) }

// judgeCohort judges a run by what is usual among those like it, in bytes per second; 0:
// nothing is known.
func judgeCohort(b *grouprun.Run, usual float64) {
	if b.Why == "" && b.Got.BusBW < CohortShare*usual {
		b.Limit = fmt.Sprintf(">= %s", result.FormatRate(CohortShare*usual))
		b.Why = fmt.Sprintf("bus bandwidth %s, and the median of such runs is %s: less than %.0f%% of it", result.FormatRate(b.Got.BusBW), result.FormatRate(usual), 100*CohortShare)
	}
}

// JudgeAlone judges one run by itself.
func (c *Test) JudgeAlone(b *grouprun.Run) {
	if b.Err != nil {
		b.Why = b.Err.Error()
		return
	}
	h := b.Nodes[0].Hardware
	want := c.expect(b, h)
	least, source := want.Least, want.Source
	if given, limit := c.Group.Floor(result.BandwidthOf(b.Operation())); given > least {
		least, source = given, "the limit of the site, "+limit
	}
	if all := len(c.Ports(b.Nodes[0])); (len(b.Skip) > 0 || b.Rail > 0) && all > 0 { // its part of what all rails carry
		part := float64(all-len(b.Skip)) / float64(all)
		if b.Rail > 0 {
			part = 1 / float64(all)
		}
		least, want.Wire = least*part, want.Wire*part
	}
	if least > 0 {
		b.Limit = ">= " + result.FormatRate(least)
	}
	most := nccl.BandwidthCeiling(len(b.Nodes), h.GPUCount(), want.Wire, b.Ring())
	direct := cmp.Or(c.notDirect(b), c.notDomain(b))
	switch {
	case b.Got.Wrong > 0:
		b.Why = fmt.Sprintf("%d elements were not as they should be", b.Got.Wrong)
	case direct != "": // before the bandwidth, whose cause it is
		b.Why = direct
	case b.Got.BusBW <= 0:
		b.Why = "it measured no bandwidth"
	case b.Got.BusBW < least:
		b.Why = fmt.Sprintf("bus bandwidth %s at %s, and %s is %s", result.FormatRate(b.Got.BusBW), unit.Bytes(b.Size), result.FormatRate(least), source)
	case most > 0 && b.Got.BusBW > beyond*most:
		b.Why = fmt.Sprintf("bus bandwidth %s is more than the rails can carry, %s: the data did not go over them", result.FormatRate(b.Got.BusBW), result.FormatRate(most))
	}
}

// expect is what a run is held against beside the site's limit.
func (c *Test) expect(b *grouprun.Run, h *inventory.Hardware) floor.Expected {
	switch {
	case b.Does == "all_gather" || b.Does == "reduce_scatter": // the wire bounds them as an all-reduce
		return floor.Expected{Wire: floor.ExpectCollective(h, len(b.Nodes) > 1, 0).Wire}
	case b.Does != "": // nobody has published what these carry on most systems
		return floor.Expected{}
	case b.Scope == grouprun.Domain:
		return floor.ExpectDomain(h, len(b.Nodes))
	}
	return floor.ExpectCollective(h, len(b.Nodes) > 1, c.Group.Validation.AllReduce.Floor)
}

// Among are the nodes of a run that are suspected.
func (c *Test) Among(b *grouprun.Run) []string {
	return slices.DeleteFunc(target.NodeNames(b.Nodes), func(n string) bool { return !slices.Contains(c.Suspects, n) })
}

// SuspectNode blames the whole of a node for a bad run.
func (c *Test) SuspectNode(b *grouprun.Run, node, how string) { c.suspectParts(b, node, nil, how) }

// suspectParts blames parts of a node, or the whole of it when none is named, unless it is
// suspected already.
func (c *Test) suspectParts(b *grouprun.Run, node string, parts []string, how ...string) {
	if !slices.Contains(c.Suspects, node) {
		c.blameParts(b, node, parts, how...)
	}
}

// blameParts blames parts of a node, or the whole of it, whatever else speaks against it.
func (c *Test) blameParts(b *grouprun.Run, node string, parts []string, how ...string) {
	if !slices.Contains(c.Suspects, node) {
		c.Suspects = append(c.Suspects, node)
	}
	action := "Look at " + node + ": its GPUs, the links between them, and the driver's log."
	switch {
	case len(parts) > 0:
		action = "Look at " + strings.Join(parts, " and ") + " of " + node + ": NIC, cable and switch port."
	case b.Scope != "node":
		action = "Look at " + node + ": its GPUs, its links between them, and its rails, as the attached output says."
	}
	f := stage.Finding{Cause: "the " + b.Title() + " over " + result.NameSome(target.NodeNames(b.Nodes)) + " is bad: " + b.Why, Evidence: append(how, b.Reference(c.Rec)), Action: action}
	if len(parts) == 0 {
		parts = []string{b.Title()}
	}
	for _, part := range parts {
		f.Suspects = append(f.Suspects, stage.Suspect{Subject: subject.OfNode(node), Part: part})
	}
	c.Findings = append(c.Findings, f)
}

// fewestAlike is of how many pairs every one has to be slow before what all share is
// blamed: of two the one bad node of each may be at fault.
const fewestAlike = 3

// BlameAll blames the fabric, or what all nodes have in common, when every one of several
// pairs is slow: that many nodes do not fail at once. It is false where one has no result,
// or does not use GPUDirect RDMA, which has a cause of its own.
func (c *Test) BlameAll(runs []*grouprun.Run) bool {
	f := floor.MainFabric(c.Members[0].Hardware)
	if f == nil || len(runs) < fewestAlike || slices.ContainsFunc(runs, func(b *grouprun.Run) bool { return b.Why == "" || b.Err != nil || len(c.indirect(b)) > 0 }) {
		return false
	}
	slow := slices.MinFunc(runs, func(a, b *grouprun.Run) int { return cmp.Compare(a.Got.BusBW, b.Got.BusBW) })
	best := slices.MaxFunc(runs, func(a, b *grouprun.Run) int { return cmp.Compare(a.Got.BusBW, b.Got.BusBW) })
	c.Findings = append(c.Findings, stage.Finding{
		Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Fabric, Name: f.Name}, Part: "all rails of all nodes"}},
		Cause:    fmt.Sprintf("every one of %d pairs is slow, such as %s: %s", len(runs), result.NameSome(target.NodeNames(slow.Nodes)), slow.Why),
		Evidence: []string{fmt.Sprintf("they carry %s to %s", result.FormatRate(slow.Got.BusBW), result.FormatRate(best.Got.BusBW)), slow.Reference(c.Rec)},
		Action:   rail.DoFabric,
	})
	return true
}

// BlameSet records that a run is bad and no node stands out.
func (c *Test) BlameSet(b *grouprun.Run, how string) {
	c.Findings = append(c.Findings, stage.Finding{
		Suspects: []stage.Suspect{{Subject: result.OfGroup(c.Group.Set), Part: b.Title()}},
		Cause:    "the " + b.Title() + " over " + result.NameSome(target.NodeNames(b.Nodes)) + " is bad: " + b.Why, Evidence: []string{how, b.Reference(c.Rec)},
		Action: "Read the attached output. None of these nodes is accepted until their " + strings.TrimSuffix(b.Title(), " of GPUs") + " is good.",
	})
}

// RunSets runs all-reduces over every set, and keeps what came of them.
func (c *Test) RunSets(ctx context.Context, scope string, all [][]*inventory.Node) []*grouprun.Run {
	return c.RunOperation(ctx, "", scope, all)
}

// RunOperation runs an operation over every set, and keeps what came of it; "" is the
// all-reduce.
func (c *Test) RunOperation(ctx context.Context, operation, scope string, all [][]*inventory.Node) []*grouprun.Run {
	var list []*grouprun.Run
	for _, set := range all {
		list = append(list, &grouprun.Run{Scope: scope, Does: operation, Nodes: set})
	}
	c.RunAll(ctx, list)
	c.Done = append(c.Done, list...)
	if i := slices.IndexFunc(list, func(b *grouprun.Run) bool { return errors.Is(b.Err, onnode.ErrCut) }); i >= 0 && c.Cut == nil {
		c.Cut = list[i]
	}
	return list
}
