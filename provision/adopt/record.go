// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/observe"
)

// gathered are facts that are not in the state yet, over those that are. It is
// safe for concurrent use.
type gathered struct {
	base func(fact.Key) (fact.Fact, bool)
	now  time.Time

	mu  sync.Mutex // guards all
	all []fact.Fact
}

// add takes a fact that was just made.
func (g *gathered) add(f fact.Fact, err error) error {
	if err == nil {
		err = g.Learn(context.Background(), f)
	}
	return err
}

// Learn adds facts; of one key the last counts.
func (g *gathered) Learn(_ context.Context, fs ...fact.Fact) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range fs {
		f.Observed = g.now.UTC()
		g.all = append(slices.DeleteFunc(g.all, func(o fact.Fact) bool { return o.Key == f.Key }), f)
	}
	return nil
}

// Fact finds a fact.
func (g *gathered) Fact(k fact.Key) (fact.Fact, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.all {
		if f.Key == k {
			return f, true
		}
	}
	return g.base(k)
}

func conforms(x observe.StepState) bool { return x.State == stage.Conforms }

// record writes a node with all that was learned of it: facts and steps first, so
// that a node that stands as adopted is whole.
func (a *adoption) record(ctx context.Context, n *inventory.Node, f found) error {
	at, me := a.o.Now.UTC(), subject.OfNode(n.Name)
	b := state.Batch{}
	for _, x := range f.facts.all {
		p, err := state.PutOf(state.FactKey(x.Key), x)
		if err != nil {
			return err
		}
		b.Puts = append(b.Puts, p)
		b.Records = append(b.Records, state.Record{Kind: state.FactLearned, Time: at, Subject: me}.With(x))
	}
	for _, x := range f.done {
		if conforms(x) {
			p, err := asFound(x.Step, at, x.Evidence)
			if err != nil {
				return err
			}
			b.Puts = append(b.Puts, p)
		}
	}
	if err := state.AppendParts(ctx, a.keep.Store, a.keep.Fence, b.Split()...); err != nil {
		return err
	}
	if len(f.seen.Items) > 0 {
		if err := a.keep.Accept(ctx, f.seen.Join(drift.Snapshot{}, "its BMC was not asked"), f.seen.Lists); err != nil {
			return err
		}
	}
	return state.AdoptNode(ctx, a.keep.Store, a.keep.Fence, n.Name, at)
}

// asFound is a step as the state keeps it that was found to be so already.
func asFound(st plan.Step, at time.Time, evidence string) (state.Put, error) {
	return state.PutOf(state.StepKey(st.ID), state.Step{ID: st.ID, State: state.StepIsDone, Version: st.Version, Inputs: st.Inputs,
		Started: at, Ended: at, Observed: true, Evidence: evidence})
}

// groups records the tests of groups whose nodes were all taken as they were
// found: nobody asks for them until something of these nodes changes.
func (a *adoption) groups(ctx context.Context) error {
	stands, err := state.ReadNodes(ctx, a.keep.Store)
	if err != nil {
		return err
	}
	prior, err := state.ReadPrior(ctx, a.keep.Store)
	if err != nil {
		return err
	}
	steps, err := a.Steps(prior)
	if err != nil {
		return err
	}
	b := state.Batch{}
	for _, st := range steps {
		if _, done := prior.Steps[st.ID]; done || st.Only != "" || st.Subject.Kind == subject.Node || !adoptedOnly(a.nodesNeeded(st), stands) {
			continue
		}
		p, err := asFound(st, a.o.Now.UTC(), "its nodes were adopted as they were found; nothing was tested")
		if err != nil {
			return err
		}
		b.Puts = append(b.Puts, p)
	}
	return state.AppendParts(ctx, a.keep.Store, a.keep.Fence, b.Split()...)
}

// nodesNeeded are the nodes that a step of several works on, or follows.
func (a *adoption) nodesNeeded(st plan.Step) (names []string) {
	if st.Group != nil {
		for _, m := range st.Group.Members {
			names = append(names, m.Name)
		}
		return names
	}
	for _, n := range st.Needs {
		node, _, _ := strings.Cut(string(n.Step), "/")
		if _, ok := a.Observer.Inv.Node(node); ok {
			names = append(names, node)
		}
	}
	return names
}

// adoptedOnly reports whether there are nodes and all of them were adopted.
func adoptedOnly(names []string, stands map[string]state.Node) bool {
	return len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return !stands[n].Adopted })
}
