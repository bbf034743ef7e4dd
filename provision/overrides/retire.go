// SPDX-License-Identifier: Apache-2.0

package overrides

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
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/install"
)

// retireStage is the name of the stage whose one step ends the life of a node.
const retireStage = "retire"

// Forgotten is the record of a node whose objects were taken out of the state; its
// history stays in the journal.
const Forgotten state.RecordKind = "node-forgotten" // ForgetReason

// ForgetReason says why a node was forgotten.
type ForgetReason struct {
	Reason string `json:"reason"`
	By     string `json:"by,omitempty"`
}

// forgetStep is the last step of a node: once it has a good end, everything that
// the state has of the node is forgotten when the run ends.
func forgetStep(node string) plan.StepID { return plan.StepID(node + "/" + retireStage + ".forget") }

// Decommissions lists the nodes that a plan decommissions.
func Decommissions(p *plan.Plan) (list []string) {
	for _, st := range p.Steps {
		if st.Stage == retireStage {
			list = append(list, st.Subject.Name)
		}
	}
	return list
}

// Retirement is the stage retire: the end of the life of nodes that are decommissioned.
type Retirement struct{ Inv *inventory.Inventory }

// Name implements stage.Stage.
func (Retirement) Name() string { return retireStage }

// Version implements stage.Stage.
func (Retirement) Version() int { return 1 }

// Plan implements stage.Stage: the last step of every node that leaves. It comes
// when the node is off and its scheduler has heard of it.
func (r Retirement) Plan(stage.View) (steps []plan.Step, diags hcl.Diagnostics) {
	for _, n := range r.Inv.Nodes {
		if !n.Retired {
			continue
		}
		steps = append(steps, plan.Step{ID: forgetStep(n.Name), Stage: retireStage, Action: plan.Delete, Subject: subject.OfNode(n.Name),
			Title: "forget the node; the journal keeps its history", Needs: []plan.Need{{Step: install.StepOf(n.Name, install.Off), On: plan.Success}},
			Decl: stage.Source(n.Decl), Deadline: plan.Budget{Limit: time.Minute, Expected: time.Second}, Version: 1, DepthKey: n.Name})
	}
	return steps, nil
}

// Observe implements stage.Stage.
func (Retirement) Observe(context.Context, stage.Run, plan.Step) (stage.Observation, error) {
	return stage.Observation{State: stage.Unknown}, nil
}

// Apply implements stage.Stage. The node is forgotten when the run has ended:
// until then its steps are shown, and a run that is cut off continues with them.
func (Retirement) Apply(_ context.Context, run stage.Run, st plan.Step) error {
	run.Emit(event.Event{Type: event.Note, Text: st.Subject.Name + " is forgotten when the run ends"})
	return nil
}

// ForgetDecommissioned forgets the nodes whose last step is done.
func ForgetDecommissioned(ctx context.Context, store state.Store, fence state.Fence, files *inventory.Inventory) error {
	nodes, err := state.ReadNodes(ctx, store)
	if err != nil {
		return err
	}
	for name := range nodes {
		if _, ok := files.Node(name); ok {
			continue
		}
		last, _, err := state.Get[state.Step](ctx, store, state.StepKey(forgetStep(name)))
		if err != nil {
			return err
		}
		if last.State != state.StepIsDone {
			continue
		}
		if err := forgetNode(ctx, store, fence, name, ForgetReason{Reason: "decommissioned"}, time.Now().UTC()); err != nil {
			return err
		}
	}
	return nil
}

// Forget takes nodes out of the state that the site does not have any more, and
// touches nothing else: neither their disks nor their power.
func Forget(ctx context.Context, store state.Store, fence state.Fence, files *inventory.Inventory, names []string, why ForgetReason, now time.Time) error {
	if err := MayForget(ctx, store, files, names); err != nil {
		return err
	}
	for _, name := range names {
		tell, err := handedOver(ctx, store, name, now.UTC())
		if err != nil {
			return err
		}
		if err := forgetNode(ctx, store, fence, name, why, now.UTC(), tell...); err != nil {
			return err
		}
	}
	return nil
}

// MayForget says why nodes are not forgotten: one is in the site, or the state does
// not know it. Nil: they may be.
func MayForget(ctx context.Context, store state.Reader, files *inventory.Inventory, names []string) error {
	for _, name := range names {
		if n, ok := files.Node(name); ok {
			return errkind.New(errkind.Refused, "%s is still in the site (%s:%d), and a node of the site is not forgotten", name, n.Decl.Filename, n.Decl.Start.Line).
				Do(fmt.Sprintf("Take it out first: out of %s:%d, or of the list that the block there is made from.", n.Decl.Filename, n.Decl.Start.Line))
		}
		if _, known, err := store.Object(ctx, state.NodeKey(name)); err != nil {
			return err
		} else if !known {
			return errkind.New(errkind.Refused, "the state knows no node %q", name).Do("`ironrail plan` lists the nodes that are gone from the site.")
		}
	}
	return nil
}

// handedOver makes a plan write what the scheduler of a node has once more, without
// the node, which nobody takes from it.
func handedOver(ctx context.Context, r state.Reader, node string, now time.Time) ([]state.Put, error) {
	d, _, err := state.Get[Declared](ctx, r, state.Key{Kind: declaredKind, Name: node})
	if err != nil || d.Handover == "" {
		return nil, err
	}
	f, err := handover.ForgottenFact.New(handover.SubjectOf(d.Handover), now, "")
	if err != nil {
		return nil, err
	}
	p, err := state.PutOf(state.FactKey(f.Key), f)
	return []state.Put{p}, err
}

// The kinds of object that are about one node: by its name, by names that begin
// with it and a slash, and facts.
var (
	kindsOfNode = []string{string(subject.Node), declaredKind, "accepted", pinKind, replacementKind, "drift-baseline", "drift-asked"}
	kindsBelow  = []string{"step", "effect", "direct"}
)

// forgetNode takes everything that the state has of a node out of it, in one append
// with what is put beside. What is too much for one append goes in several: steps, effects
// and facts first, so that a node of which something is left still stands in the state, and
// is forgotten again.
func forgetNode(ctx context.Context, store state.Store, fence state.Fence, name string, why ForgetReason, now time.Time, beside ...state.Put) error {
	b := state.Batch{Records: []state.Record{state.Record{Kind: Forgotten, Time: now, Subject: subject.OfNode(name)}.With(why)}}
	drop := func(k state.Key) { b.Puts = append(b.Puts, state.Put{Key: k, Want: state.Any}) }
	var below []state.Put
	for _, kind := range kindsOfNode {
		if _, ok, err := store.Object(ctx, state.Key{Kind: kind, Name: name}); err != nil {
			return err
		} else if ok {
			drop(state.Key{Kind: kind, Name: name})
		}
	}
	prefixes := map[string]string{"fact": subject.OfNode(name).String() + "#"}
	for _, kind := range kindsBelow {
		prefixes[kind] = name + "/"
	}
	for kind, prefix := range prefixes {
		os, err := store.Objects(ctx, kind)
		if err != nil {
			return err
		}
		for _, o := range os {
			if strings.HasPrefix(o.Key.Name, prefix) {
				below = append(below, state.Put{Key: o.Key, Want: state.Any})
			}
		}
	}
	b.Puts = append(b.Puts, beside...)
	byKey := func(a, b state.Put) int { return strings.Compare(a.Key.String(), b.Key.String()) }
	slices.SortFunc(b.Puts, byKey)
	slices.SortFunc(below, byKey)
	rest := state.Batch{Puts: below}
	return state.AppendParts(ctx, store, fence, append(rest.Split(), b)...)
}
