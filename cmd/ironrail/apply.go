// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/gaps"
	"github.com/ironrail/ironrail/provision/looks"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/web/server"
)

// applyFlags are the approvals of apply and rebuild.
type applyFlags struct {
	planFlags
	drainFlags
	file    string
	approve bool
	erase   int
	counted bool           // erase was given: also 0 is a number
	page    *server.Listen // the page is served meanwhile; nil: it is not
	shown   *server.Server // that page; nil: there is none
	fresh   bool
	attach  bool // show what serve runs
}

func (a *app) applyCommand() *cobra.Command {
	var f applyFlags
	c := &cobra.Command{
		Use:   "apply [PLAN]",
		Short: "Do what the plan says, with live progress",
		Long: `Show the plan and, once approved, do it. A run that was stopped or killed is
resumed: what was done is not done again, and what is in doubt is looked at first.

Ctrl-C once starts nothing new and lets running steps end; twice stops them.
Either way, run ` + "`ironrail apply`" + ` again to go on. From a second terminal,
` + "`status`, `why NODE`, `hold NODE`, `events --follow`" + ` answer meanwhile. --ui
serves the web page for as long as it runs, on 127.0.0.1:8470 or where it says.
Before the plan is approved that page, and that of a serve, shows it with the
digest that stands here. It is approved here, not there.

While ` + "`ironrail serve`" + ` runs it owns the site: apply plans, shows and asks, and serve
does it, also when this terminal is closed. Ctrl-C stops the run as it does without
serve. --attach shows the run that is active, and ends as it ends.

Erasing more nodes than the site's max_erase needs the number, typed or given
with --erase; --auto-approve does not replace it. Nodes in service are erased only
by --replace, by rebuild, or by an edit where their role has a rollout block. A
node under running jobs is not touched: see rebuild on --drain-wait and
--jobs-unknown.

With --json, standard output is one JSON object a line: every event as it
happens, and at the end the result of the run, whose "type" is "result". The
plan is shown on standard error.

Exit code 2 when all steps ended well and nodes are unmanaged that --target does
not leave out: those that run and are not in the state, and those on hold. They
are named as plan names them.`,
		Example: "  ironrail apply\n  ironrail apply monday.plan\n  ironrail apply --auto-approve --erase 12\n  ironrail apply --auto-approve --json | jq 'select(.type == \"result\")'",
		Args:    asUsage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.file = args[0]
			}
			if err := f.check(c); err != nil {
				return wrongUsage(c, err)
			}
			if f.attach {
				return a.attach(c.Context(), c, f)
			}
			return a.apply(c.Context(), f)
		},
	}
	f.add(c, a)
	f.addApproval(c)
	a.addMetrics(c)
	c.Flags().BoolVar(&f.fresh, "new-plan", false, "do not resume an unfinished plan; make a new one")
	c.Flags().BoolVar(&f.attach, "attach", false, "plan nothing: show the run that serve does, until its end")
	var l server.Listen
	c.Flags().StringVar(&l.Address, "ui", "", "serve the web page while it runs, on `ADDRESS:PORT`: see serve")
	c.Flags().Lookup("ui").NoOptDefVal = defaultPage
	addListen(c, &l, "ui-")
	f.page = &l
	return c
}

// addApproval defines the flags that approve without a question.
func (f *applyFlags) addApproval(c *cobra.Command) {
	c.Flags().BoolVar(&f.approve, "auto-approve", false, "do not ask; the erase budget holds all the same")
	c.Flags().IntVar(&f.erase, "erase", 0, "approve erasing at most this `NUMBER` of nodes, past the site's max_erase too")
	f.addDrain(c)
}

// check refuses what no number may be, before anything is loaded.
func (f *applyFlags) check(c *cobra.Command) error {
	f.counted = c.Flags().Changed("erase")
	switch {
	case f.erase < 0:
		return fmt.Errorf("--erase %d: no number of nodes", f.erase)
	case f.wait < 0:
		return fmt.Errorf("--drain-wait %v: no time to wait", f.wait)
	}
	return f.planFlags.check(c)
}

// apply owns the state from here to its end.
func (a *app) apply(ctx context.Context, f applyFlags) error {
	if err := f.refuseBesideFile(); err != nil {
		return err
	}
	site, files, err := a.loadFor(f.words()...)
	if err != nil {
		return err
	}
	var endPage func()
	f.shown, endPage, err = a.showPage(ctx, f.page)
	if err != nil {
		return err
	}
	defer endPage()
	o, err := a.own(ctx, "apply")
	if err != nil {
		return err
	}
	defer o.giveBack()
	p, resume, err := a.choosePlan(ctx, site, files, o, f)
	if err != nil {
		return err
	}
	if err := site.RememberNodes(ctx, o.store, o.fence); err != nil {
		return err
	}
	approval, err := a.agree(ctx, site, o, p, f, resume)
	if err != nil {
		return err
	}
	if p.Empty() {
		return a.nothingDone(p)
	}
	return a.execute(ctx, site, o, provision.RunOptions{Plan: p, Store: o.store, Fence: o.fence,
		Bus: event.NewBus(ringSize), Resume: resume, EraseApproved: approval.Erase, Approval: approval})
}

// showBefore shows the plan that is about to be applied, on standard error when
// standard output is a stream of JSON.
func (a *app) showBefore(p *plan.Plan, guess predict.Prediction) {
	a.shown = guess
	w := a.out
	if a.json {
		w = a.err
	}
	writePlan(w, p, guess)
}

// predictDuration says how long a plan may take. What cannot be read of the past is left
// out: a prediction is no reason to stop.
func (a *app) predictDuration(ctx context.Context, site *provision.Site, r state.Reader, p *plan.Plan) predict.Prediction {
	if p.Empty() {
		return predict.Prediction{}
	}
	if of, err := site.For(ctx, r, p); err == nil { // else the site as its files say it
		site = of
	}
	past, err := site.Past(ctx, r)
	if err != nil {
		a.sayf("warning: how long earlier runs took cannot be read: %v", err)
	}
	g, err := site.Predict(p, past, nil)
	if err != nil {
		a.sayf("warning: how long the plan takes cannot be predicted: %v", err)
	}
	return g
}

// nothingDone ends an apply whose plan, which was shown, has no steps.
func (a *app) nothingDone(p *plan.Plan) error {
	res := apply.Result{Plan: p.ID, Started: p.Created, Ended: p.Created, Outcome: state.RunDone,
		Nodes: []apply.NodeResult{}, Steps: []apply.StepResult{}, Counts: map[string]int{}, Unmanaged: p.Unmanaged}
	if a.json {
		a.printResult(res)
	}
	return a.exitOf(res)
}

// choosePlan reads a saved plan, resumes what was interrupted, or makes a plan.
func (a *app) choosePlan(ctx context.Context, site *provision.Site, files inventory.Files, o ownership, f applyFlags) (p *plan.Plan, resume bool, err error) {
	if f.file != "" {
		p, err = a.savedPlan(ctx, site, files, o, f)
		return p, false, err
	}
	if !f.fresh && !f.chooses() {
		if p, err = a.unfinished(ctx, site, o.store); p != nil || err != nil {
			return p, true, err
		}
	}
	options, shown := f.planOptions(a), []looks.Look(nil)
	options.Looked = func(l []looks.Look) { shown = l }
	if p, err = a.makePlan(ctx, site, files, o.store, options); err != nil {
		return nil, false, err
	}
	return p, false, looks.Record(ctx, o.store, o.fence, shown)
}

// chooses reports whether the operator wants a plan of his own, and not to go on
// with an unfinished one.
func (f *applyFlags) chooses() bool {
	return len(f.replace)+len(f.targets)+len(f.decommission) > 0 || f.refresh
}

// refuseBesideFile refuses options beside a saved plan, which has its own.
func (f *applyFlags) refuseBesideFile() error {
	if f.file == "" || !f.chooses() && !f.fresh {
		return nil
	}
	return exit{exitUsage, errkind.New(errkind.Refused, "a saved plan is applied as it is: --target, --replace, --decommission, --refresh and --new-plan are for making one").
		Do("Leave them out, or plan again with them.")}
}

// unfinished returns the plan that was stopped before its end and still fits the
// site; nil when there is none.
func (a *app) unfinished(ctx context.Context, site *provision.Site, store state.Store) (*plan.Plan, error) {
	p, run, err := state.ReadUnfinishedPlan(ctx, store)
	if p == nil || err != nil {
		return nil, err
	}
	if run.Restored {
		a.sayf("Run %s had not ended in the copy that the state was restored from, and is not resumed: a new plan is made.", run.ID)
		return nil, nil
	}
	why, err := site.Outdated(ctx, store, p)
	switch {
	case err != nil:
		return nil, err
	case why != "":
		a.sayf("Run %s was stopped before its end, and the site has changed since (%s): a new plan is made.", run.ID, why)
		return nil, nil
	}
	a.sayf("Run %s was stopped before its end; its plan is resumed. Steps that are done are not repeated.", run.ID)
	return p, nil
}

// makePlan plans, and shows what is wrong with the site, with all that its files ask for
// and do not get where the plan is refused. What the plan is made of and the lock file
// lacks is added to it.
func (a *app) makePlan(ctx context.Context, site *provision.Site, files inventory.Files, r state.Reader, options provision.PlanOptions) (*plan.Plan, error) {
	defer provision.LimitMemory(len(site.Inv.Nodes))()
	var list gaps.List
	show, what := options.Gaps, fmt.Sprintf("Planning %d %s", len(site.Inv.Nodes), pluralOf(len(site.Inv.Nodes), "node", "nodes"))
	done := a.during(what)
	options.Gaps = func(l gaps.List) {
		if list = l; show != nil {
			done()
			show(l)
			done = a.during(what)
		}
	}
	p, diags, err := site.Plan(ctx, r, options)
	done()
	found := a.showHCL(diags, files)
	if err == nil && diags.HasErrors() {
		showGaps(a.err, list)
		err = diagnosed{errors.New("the site cannot be planned as it stands"), found, list}
	}
	if err == nil {
		err = a.relock(site)
	}
	return p, err
}

// bindLineage lets a plan that was made before there was any state be the first
// one of a state in which nothing was done.
func bindLineage(ctx context.Context, p *plan.Plan, store state.Store) error {
	if p.Lineage != "" {
		return nil
	}
	_, version, err := state.Get[state.Run](ctx, store, state.LastRun)
	if err == nil && version == state.Absent {
		p.Lineage = store.Info().Lineage
	}
	return err
}
