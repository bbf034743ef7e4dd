// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
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
	now, err := s.planAsked(ctx, store, p, say)
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

// planAsked plans with the options that a saved plan was made with. What it trusts is
// as old as it was then, so that the same steps are looked at.
func (s *Site) planAsked(ctx context.Context, store state.Store, p *plan.Plan, say func(string)) (*plan.Plan, error) {
	var a plan.Request
	if p.Request != nil {
		a = *p.Request
	}
	now, diags, err := s.Plan(ctx, store, PlanOptions{Replace: a.Replace, Targets: a.Targets, Decommission: a.Decommission,
		Refresh: a.Refresh, Trust: a.Trust, Now: p.Created, Say: say})
	if err == nil && diags.HasErrors() {
		err = noLongerFits(p, "it has errors now")
	}
	return now, err
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
