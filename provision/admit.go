// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
)

// Admit makes a saved plan anew, from the site, the state and the options that it was
// made with, and returns what may be applied of it: the steps of the new plan that
// the saved one has too. Nothing that the saved one says of erasures, budget, refusals
// or needs is believed. The error is of kind refused, before anybody is asked to
// approve it: for a plan of another site or state, one that reads what has moved
// since, and one of which a step would not be planned now, or not like this. Nothing
// is changed; nodes are looked at as by Plan. say is told how far a long look is.
func (s *Site) Admit(ctx context.Context, store state.Store, fence state.Fence, p *plan.Plan, say func(string)) (*plan.Plan, error) {
	if p.Site != s.Inv.Site.Name {
		return nil, errkind.New(errkind.Refused, "plan %s is for site %s, and this is site %s", p.ID, p.Site, s.Inv.Site.Name).
			Do("Apply it in the folder of its site: `ironrail -C DIR apply FILE`.")
	}
	why, err := s.Outdated(ctx, store, p)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return nil, noLongerFits(p, why)
	}
	if len(p.Refusals) == 0 { // else it is shown, with what it is refused for
		if err := s.admits(ctx, store, fence, p); err != nil {
			return nil, err
		}
	}
	now, diags, err := s.Plan(ctx, store, savedOptions(p, say))
	if err == nil && diags.HasErrors() {
		err = noLongerFits(p, "it has errors now")
	}
	if err != nil {
		return nil, err
	}
	if why, err = p.Differs(now); err != nil {
		return nil, err
	}
	if why != "" {
		return nil, errkind.New(errkind.Refused, "plan %s is not what is planned now: %s", p.ID, why).Do(planAgain)
	}
	now.Narrow(p)
	now.ID, now.Created = p.ID, p.Created
	if len(now.Refusals) > 0 {
		return now, nil
	}
	return now, s.admits(ctx, store, fence, now)
}

const planAgain = "Plan again, look at what is new, and apply that."

func noLongerFits(p *plan.Plan, why string) error {
	return errkind.New(errkind.Refused, "plan %s no longer fits the site's files: %s", p.ID, why).Do(planAgain)
}

// savedOptions are the options that a saved plan was made with. What it trusts is as old
// as it was then, so that the same steps are looked at.
func savedOptions(p *plan.Plan, say func(string)) PlanOptions {
	var a plan.Request
	if p.Request != nil {
		a = *p.Request
	}
	return PlanOptions{Replace: a.Replace, Retest: a.Retest, Targets: a.Targets, Decommission: a.Decommission,
		Refresh: a.Refresh, Trust: a.Trust, Now: p.Created, Say: say}
}

// admits runs the checks of the engine on a plan.
func (s *Site) admits(ctx context.Context, store state.Store, fence state.Fence, p *plan.Plan) error {
	digests, err := s.Artifacts.Digests()
	if err != nil {
		return err
	}
	_, err = apply.New(ctx, s.config(RunOptions{Plan: p, Store: store, Fence: fence, EraseApproved: len(p.Steps)}, digests))
	return err
}

// Outdated says why a plan that was begun, or saved, no longer fits the site's
// files: a step of it is gone, one of its inputs has changed, or a node that it
// erases is protected now. Empty: it still fits.
func (s *Site) Outdated(ctx context.Context, r state.Reader, p *plan.Plan) (string, error) {
	if err := s.Keys.CheckIdentity(ctx, r, s.Inv.Site.Name); err != nil {
		return "", err
	}
	s, err := s.For(ctx, r, p)
	if err != nil {
		return "", err
	}
	if n := protectedIn(s.Inv, p); n != "" {
		return n + " is protected now", nil
	}
	if was, is := p.Erase.Budget, s.Inv.Site.MaxErase; len(p.Erase.Nodes) > 0 && was != is {
		return fmt.Sprintf("max_erase %d -> %d", was, is), nil
	}
	prior, err := state.ReadPrior(ctx, r)
	if err != nil {
		return "", err
	}
	s = s.withOrphaned(ctx, r, s.over.Gone(prior))
	steps, diags, err := s.desired(prior)
	if err != nil {
		return "", err
	}
	if diags.HasErrors() {
		return "it has errors now", nil
	}
	now := make(map[plan.StepID]*plan.Step, len(steps))
	for i := range steps {
		now[steps[i].ID] = &steps[i]
	}
	for i := range p.Steps {
		was := &p.Steps[i]
		if was.Gate != nil {
			continue // of the rollout itself, which no stage asks for
		}
		is, ok := now[was.ID.Base()]
		if !ok {
			return fmt.Sprintf("%s is no longer wanted", was.ID), nil
		}
		if why := plan.DescribeChange(was, is); why != "" {
			return fmt.Sprintf("%s: %s", was.ID, why), nil
		}
	}
	return "", nil
}

// protectedIn is a node that a plan erases and that the site protects; empty: none.
func protectedIn(inv *inventory.Inventory, p *plan.Plan) string {
	for i := range p.Steps {
		if !p.Steps[i].May.Has(plan.Erase) {
			continue
		}
		if n, ok := inv.Node(p.Steps[i].Subject.Name); ok && n.Protect {
			return n.Name
		}
	}
	return ""
}

// factKind is the kind of the objects that hold facts.
var factKind = state.FactKey(fact.Key{}).Kind

// OfItsMoment reports whether an object of the state says something that holds only
// when it is written, so that a copy which is put back does not bring it back. A
// boot attempt is leave to interrupt its node; the node may have been accepted since
// the copy, and have jobs. Without it the node is as unknown: one that runs is
// offered for adoption, and its power is not touched.
func OfItsMoment(k state.Key) bool {
	return k.Kind == factKind && strings.HasSuffix(k.Name, "#"+string(install.AttemptFact))
}

// StillUnmanaged is what is left of the nodes that a plan left unmanaged: the plan of a
// run that was stopped may be older than the adoption of a node.
func StillUnmanaged(ctx context.Context, r state.Reader, list []plan.Unmanaged) (left []plan.Unmanaged, err error) {
	known, err := state.ReadNodes(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, u := range list {
		u.Nodes = slices.DeleteFunc(slices.Clone(u.Nodes), func(n string) bool { return known[n].Accepted || known[n].Adopted })
		if len(u.Nodes) > 0 {
			left = append(left, u)
		}
	}
	return left, nil
}
