// SPDX-License-Identifier: Apache-2.0

// Package pair is the check of transfers between nodes, two at a time: it runs them over
// every rail, and finds the part that is bad.
package pair

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/isolate"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/rounds"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/transfer"
	"github.com/ironrail/ironrail/validate/trunk"
)

// Check writes from nodes into the memory of others, two at a time, over every rail.
var Check = target.Check{Name: "pair", Scope: target.EachPair, For: isAsked, Plan: planPair, Run: runPair,
	Asks: target.Asks{Limits: []string{result.WriteBandwidth}, Block: findProblems},
	Duration: target.Duration{Low: 6 * time.Second, Mid: 12 * time.Second, High: 20 * time.Second, Per: target.Unit{Name: "round", In: rounds.CountPasses}, Words: "tests between pairs",
		Source: "two transfers of 3 s at their floor a round; 6 to 15 s " + target.InLab},
	Report: target.Section{Title: "RDMA between pairs of nodes", Read: target.AsStored},
	Docs:   target.Docs{Says: "RDMA writes between nodes over every rail", Page: "guide.md"}}

// findProblems finds what of the pair test cannot be tested.
func findProblems(g target.Group, p *target.Problems) {
	if t := g.Validation.Pair; t != nil && t.Engine != "" && t.Engine != "perftest" {
		p.Add(hcl.DiagError, t.Decl, "Engine is not supported", "The pair test of validation %q asks for engine %q; \"perftest\" is supported.", g.Validation.Name, t.Engine)
	}
}

// isAsked reports whether a group is tested so: it takes two nodes at least.
func isAsked(t target.Target) bool { return t.Group.Validation.Pair != nil && len(t.Group.Nodes) >= 2 }

// planPair tests every two nodes of a group, or a sample of them.
func planPair(r target.Request) plan.Step {
	g := r.Group
	p := g.Validation.Pair
	st := r.GroupStep(fmt.Sprintf("RDMA writes between %d nodes, pair by pair", len(g.Nodes)), p.Decl)
	st.Inputs = append(g.Inputs(result.WriteBandwidth), plan.Input{Name: "pair", Value: "perftest " + transfer.MessageSize(p).String(), Decl: stage.Source(p.Decl)})
	st.Examines = true // by its counters a bad rail of a node that is out is found as well
	st.Yields = []fact.Key{result.PairReport.Of(result.OfGroup(g.Set))}
	turns := time.Duration(rounds.CountRounds(len(g.Nodes)) * rounds.CountBatches(len(g.Nodes)/2, rounds.CountPorts(g.Nodes)) * 2) // each way
	st.Deadline = plan.Budget{Expected: turns * 10 * time.Second, Limit: turns*transfer.LongestTransfer(*g) + 20*time.Minute}
	return st
}

// runPair runs the test.
func runPair(ctx context.Context, j *target.Job) error {
	return j.Together(ctx, result.PairReport, target.FrozenMembers(j.Inv, j.Run), func() error { return newPairTest(j).run(ctx) })
}

// pairTest is one run of the pair test.
type pairTest struct {
	*transfer.Runner
	g      target.Group
	st     plan.Step
	nodeOf []*inventory.Node
	rounds [][][2]int // of pairs of nodeOf
	leaves rail.Leaves
	leafOf map[rail.End]string // of the ports that are tested

	inv          *inventory.Inventory
	readSwitches target.CounterReader // nil: switches are not asked

	best map[portUse]float64 // what ports carried at best in the rounds before, bytes per second

	mu   sync.Mutex // guards what follows
	done []*transfer.Transfer
}

func newPairTest(j *target.Job) *pairTest {
	p := &pairTest{Runner: &transfer.Runner{Nodes: j.Nodes, Rec: j.Run, Test: j.Group.Validation.Pair}, g: *j.Group, st: j.Step, nodeOf: target.FrozenMembers(j.Inv, j.Run), leaves: rail.LeavesOf(j.Inv),
		inv: j.Inv, readSwitches: j.Counters}
	if focus, with := target.InFocus(j.Step, p.nodeOf); len(with) > 0 {
		p.nodeOf, p.rounds = slices.Concat(focus, with), rounds.FocusedRounds(focus, with)
	} else {
		p.rounds = rounds.ByLeaf(p.leavesOfNodes())
	}
	return p
}

// leavesOfNodes says of each node on which leaves its ports end, in one text.
func (p *pairTest) leavesOfNodes() []string {
	all := make([]string, len(p.nodeOf))
	for i, n := range p.nodeOf {
		for _, nic := range n.Hardware.NICs {
			for _, port := range nic.Ports {
				if nic.Fabric != nil {
					all[i] += p.leaves.Of(n.Name, nic.Fabric.Name, port.Rail) + " "
				}
			}
		}
	}
	return all
}

// run does the test within one journaled effect, judges it and names suspects.
func (p *pairTest) run(ctx context.Context) error {
	ends, skipped, err := p.ends()
	if err != nil {
		return err
	}
	before, began, watches := p.counters(ctx, ends), p.Rec.Clock().Now(), trunk.BeginAll(ctx, p.inv, p.nodeOf, p.readSwitches, p.Rec.Clock().Now())
	err = p.Rec.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s/run-%d", p.st.ID, p.Rec.Clock().Now().UnixNano()),
		Kind: plan.Load, Repeatable: true,
		Does: fmt.Sprintf("load the rails between %d nodes with RDMA writes", len(p.nodeOf)),
		Do:   func(ctx context.Context) error { return p.measure(ctx, ends) },
	})
	if err != nil {
		return err
	}
	for _, t := range p.done {
		if t.Cut != nil { // it speaks against no node: the test has no result
			return fmt.Errorf("the pair test, %s: %w", t.Name(), t.Cut)
		}
	}
	v := verdict{p: p, before: before, ends: ends}
	v.after, v.took = p.counters(ctx, ends), p.Rec.Clock().Now().Sub(began)
	v.watches, v.loads = watches, watches.End(ctx, p.Rec.Clock().Now())
	rep, err := v.evaluate(ctx)
	if err != nil {
		return err
	}
	rep.NotJudged = append(rep.NotJudged, skipped...)
	return target.LearnReport(ctx, p.Rec, p.st, result.PairReport, p.g.Set, rep)
}

// ends returns the ports of every member by fabric and rail, in the order of the
// members, and says which members have none.
func (p *pairTest) ends() (map[string][]rail.End, []string, error) {
	ends := map[string][]rail.End{}
	p.leafOf = map[rail.End]string{}
	var skipped []string
	word := rail.FabricNames(p.nodeOf)
	for _, n := range p.nodeOf {
		found := false
		for _, f := range fabric.Of(n) {
			ports, ok := target.ReadFact(p.Rec, fabric.Ports(f.Name), subject.OfNode(n.Name))
			if !ok {
				continue
			}
			need := transfer.WriteNeed(p.g, n, f)
			for _, port := range ports {
				found = true
				key := fmt.Sprintf("%s/%d", f.Name, port.Rail)
				e := rail.End{Node: n, Port: port, Fabric: word(f), Need: need}
				ends[key] = append(ends[key], e)
				p.leafOf[e] = p.leaves.Of(n.Name, f.Name, port.Rail)
			}
		}
		if !found {
			skipped = append(skipped, n.Name+" has no RDMA port on a fabric")
		}
	}
	for key, list := range ends {
		if len(list) < 2 {
			skipped = append(skipped, fmt.Sprintf("%s is alone on %s", list[0].Node.Name, key))
			delete(ends, key)
		}
	}
	slices.Sort(skipped)
	if len(ends) == 0 {
		return nil, nil, errkind.New(errkind.Refused, "no two of %s have an RDMA port on the same fabric", strings.Join(target.NodeNames(p.nodeOf), ", ")).
			Do("Give the hardware a nic or hca with `fabric`, or take the pair test out of the validation.")
	}
	return ends, skipped, nil
}

// byNode returns of each rail the first port of every node.
func byNode(ends map[string][]rail.End) []map[*inventory.Node]rail.End {
	var rails []map[*inventory.Node]rail.End
	for _, list := range ends {
		of := make(map[*inventory.Node]rail.End, len(list))
		for _, e := range list {
			if _, has := of[e.Node]; !has {
				of[e.Node] = e
			}
		}
		rails = append(rails, of)
	}
	return rails
}

// measure runs the rounds, and then bad transfers once more, alone.
func (p *pairTest) measure(ctx context.Context, ends map[string][]rail.End) error {
	p.mu.Lock()
	p.done, p.best = nil, map[portUse]float64{}
	p.mu.Unlock()
	all, rails := p.rounds, byNode(ends)
	for i, pairs := range all {
		p.Rec.Emit(event.Event{Type: event.StepProgress, Text: fmt.Sprintf("round %d of %d: %d pairs", i+1, len(all), len(pairs)), Done: int64(i), Total: int64(len(all))})
		if err := p.round(ctx, pairs, rails); err != nil {
			return err
		}
		if err := p.attach(fmt.Sprintf("ib_write_bw.round-%d.txt", i+1)); err != nil {
			return err
		}
	}
	transfer.Compare(p.done)
	return p.again(ctx)
}

// attach stores what the transfers printed that are not stored yet, and forgets it
// but for the bad ones: all rounds of thousands of nodes are a lot of text.
func (p *pairTest) attach(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all [][]byte
	for _, t := range p.done {
		if t.Ref == "" {
			all = append(all, t.Text)
		}
	}
	ref, err := p.Rec.Attach(name, bytes.Join(all, []byte("\n")))
	if err != nil {
		return err
	}
	for _, t := range p.done {
		if t.Ref == "" {
			t.Ref = ref
			if !t.Bad() {
				t.Text = nil
			}
		}
	}
	return nil
}

// round runs its pairs side by side; a pair runs all its rails at once, one way
// and then the other.
func (p *pairTest) round(ctx context.Context, pairs [][2]int, ends []map[*inventory.Node]rail.End) error {
	rounds.SideBySide(pairs, rounds.PairsAtOnce(len(ends)), func(pair [2]int) {
		a, b := p.nodeOf[pair[0]], p.nodeOf[pair[1]]
		p.oneWay(ctx, a, b, ends)
		p.oneWay(ctx, b, a, ends)
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.done {
		for _, use := range []portUse{{t.From, true}, {t.To, false}} {
			p.best[use] = max(p.best[use], t.Bw)
		}
	}
	slices.SortFunc(p.done, func(a, b *transfer.Transfer) int {
		return cmp.Or(cmp.Compare(a.From.Fabric, b.From.Fabric), cmp.Compare(a.From.Port.Rail, b.From.Port.Rail), cmp.Compare(a.From.Node.Name, b.From.Node.Name), cmp.Compare(a.To.Node.Name, b.To.Node.Name))
	})
	return nil
}

// pace is what a transfer is expected to carry after the rounds before: what the slower of
// its ports carried at best; 0: not known.
func (p *pairTest) pace(from, to rail.End) float64 {
	sent, received := p.best[portUse{from, true}], p.best[portUse{to, false}]
	if sent == 0 || received == 0 {
		return max(sent, received)
	}
	return min(sent, received)
}

func (p *pairTest) oneWay(ctx context.Context, from, to *inventory.Node, ends []map[*inventory.Node]rail.End) {
	var g errgroup.Group
	g.SetLimit(rounds.PortsAtOnce) // both nodes begin with the same ones
	for _, on := range ends {
		a, aok := on[from]
		b, bok := on[to]
		if !aok || !bok || ctx.Err() != nil {
			continue
		}
		g.Go(func() error {
			t := &transfer.Transfer{From: a, To: b, FromLeaf: p.leafOf[a], ToLeaf: p.leafOf[b], Pace: p.pace(a, b)}
			p.Runner.Run(ctx, t)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.done = append(p.done, t)
			return nil
		})
	}
	_ = g.Wait() // none of them fails
}

// measurements turns transfers into what the decoder reads.
func (p *pairTest) measurements() []isolate.Measurement {
	var ms []isolate.Measurement
	for _, t := range p.done {
		if t.Lost == "" {
			ms = append(ms, t.Measurement())
		}
	}
	return ms
}

// counters reads the counters of every port that is tested.
func (p *pairTest) counters(ctx context.Context, ends map[string][]rail.End) map[string]rail.PortCounters {
	return rail.ReadCounters(ctx, p.Nodes, slices.Concat(slices.Collect(maps.Values(ends))...))
}
