// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/provision/predict"
)

func (a *app) showPlanCommand() *cobra.Command {
	var full bool
	c := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show a saved plan",
		Long: `Show a plan that was saved with plan --out, and whether its seal is valid under
this site's key. A plan without a valid seal is shown as well; apply plans anew
instead of it. With --json the plan is printed as plan --json prints it.`,
		Example: "  ironrail show plan monday.plan\n  ironrail show plan monday.plan --json | jq '.steps | length'",
		Args:    asUsage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return a.showSavedPlan(c.Context(), args[0], full)
		},
	}
	c.Flags().BoolVar(&full, "full", false, "show every step, also of nodes that are alike")
	return c
}

func (a *app) showSavedPlan(ctx context.Context, path string, full bool) error {
	inv, err := a.inventory()
	if err != nil {
		return err
	}
	site, err := a.openSite(inv, provision.Options{Look: true})
	if err != nil {
		return err
	}
	p, problem, err := readPlan(path, site.Keys.Plan)
	if err != nil {
		return err
	}
	if problem == "" {
		a.sayf("Its seal is valid: nothing of it was changed since it was saved.")
	} else {
		a.sayf("warning: %s; apply plans anew instead of it, and asks", problem)
	}
	if a.json {
		return a.printPlan(p)
	}
	write := writePlan
	if full {
		write = writeWholePlan
	}
	guess, err := a.guessSaved(ctx, site, p)
	if err != nil {
		return err
	}
	write(a.out, p, guess)
	return nil
}

// guessSaved says how long a saved plan may take on this site; the zero prediction for
// a plan of another one. Earlier runs count where the state can be read, which it
// cannot while another process owns it.
func (a *app) guessSaved(ctx context.Context, site *provision.Site, p *plan.Plan) (predict.Prediction, error) {
	if p.Site != site.Inv.Site.Name {
		return predict.Prediction{}, nil
	}
	r, closeState, err := a.openReader()
	if _, owned := errors.AsType[onrecord.OwnedError](err); owned {
		return a.predictDuration(ctx, site, state.Empty{}, p), nil
	}
	if err != nil {
		return predict.Prediction{}, err
	}
	defer closeState()
	return a.predictDuration(ctx, site, r, p), nil
}

// printPlan prints a plan as JSON.
func (a *app) printPlan(p *plan.Plan) error { return a.printJSON(withSteps(p)) }

// withSteps is a plan whose list of steps is not null in JSON.
func withSteps(p *plan.Plan) *plan.Plan {
	if p.Steps == nil {
		p.Steps = []plan.Step{}
	}
	return p
}
