// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/gaps"
	"github.com/ironrail/ironrail/provision/predict"
)

// planFlags are the options that plan, apply and rebuild share.
type planFlags struct {
	replace      []string
	targets      []string
	decommission []string
	refresh      bool
	trust        time.Duration
	full         bool
	out          string
	detailed     bool
	offline      bool // of plan only: apply looks before it does anything
}

// defaultTrust is how long what was done, or seen, is taken to be so still.
const defaultTrust = 168 * time.Hour

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what apply would do, and why",
		Long: `Compare the site's files with what was done before, and show every step that is
left: grouped by node, with its reason, with what it erases in capitals.

No node is changed. A node that runs but is not in the state is offered for
adoption; nothing is planned for it. What ironrail.lock lacks of addresses and
digests is added to it.

--target and --replace name nodes by words, comma separated or repeated:
  r01-u09          a node
  'r01-*'          all whose names fit the pattern (quote it for your shell)
  rack.r01         the nodes of a rack; 'rack.r0*' those of several
  role.worker      the nodes of a role
  fabric.compute   the nodes with ports in a fabric
  '!r01-u09'       not this one; alone, all but this one
Nodes outside of the targets are left alone. Accepted ones still take part in the
tests of those inside, as their partners.

What was done less than --trust ago is taken to be so still. What is older is
looked at over SSH, and with --refresh everything is, over SSH and by its BMC,
whose password is read for that. Switches with a login are read then as well, also
those that were never configured: the plan shows what it would write to them, and
.operations of --json all of it. A step is planned again when the look shows that
it is no longer so; a node that does not answer is named, and nothing is planned
for it. With --offline nobody is contacted at all, and the plan says so; apply
looks before it does anything. docs/plan.md says more.

What the files ask for and this version does not do as asked is listed behind the
plan, and where the plan is refused for it, as ` + "`ironrail check`" + ` lists it.

With --json the plan itself is printed, with gaps beside it; when there can be none,
an object with error, reasons (alike ones together), diagnostics and gaps. --out
saves the plan for apply, in few bytes and sealed with a key of this site: show plan
FILE shows it.`,
		Example: "  ironrail plan\n  ironrail plan --out monday.plan\n  ironrail plan --target rack.r01,'!r01-u09'\n  ironrail plan --replace n7\n  ironrail plan --refresh --detailed-exitcode",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(c); err != nil {
				return wrongUsage(c, err)
			}
			return a.asJSON(a.plan(c.Context(), f))
		},
	}
	f.add(c, a)
	c.Flags().StringVar(&f.out, "out", "", "also save the plan to this `FILE`, for `ironrail apply FILE`")
	c.Flags().BoolVar(&f.full, "full", false, "show every node; else those that are treated alike are shown once in a plan of more than 40")
	c.Flags().BoolVar(&f.offline, "offline", false, "contact nobody: neither nodes that the state does not know nor what was done is looked at; the plan says so")
	c.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "exit with 2 when there is something to do, be it to adopt nodes that run")
	return c
}

// add defines the flags of planning.
func (f *planFlags) add(c *cobra.Command, a *app) {
	c.Flags().StringSliceVar(&f.replace, "replace", nil, "reinstall these `NODES`, drained first: words as for plan --target")
	c.Flags().StringSliceVar(&f.targets, "target", nil, "plan for these `NODES` only: n7, 'r01-*', rack.r01, role.worker, fabric.compute, '!n7'")
	c.Flags().StringSliceVar(&f.decommission, "decommission", nil, "drain, wipe, switch off and forget these `NODES`, which are in no file any more; without --target and --replace nothing else")
	c.Flags().BoolVar(&f.refresh, "refresh", false, "look at everything that was done, on nodes, BMCs and switches, before planning")
	c.Flags().DurationVar(&f.trust, "trust", defaultTrust, "look at what was done or seen longer ago than this `TIME`; 0: at nothing")
	_ = c.RegisterFlagCompletionFunc("decommission", a.completeGone)
	for _, name := range []string{"replace", "target"} {
		// An error would be a flag that was not defined just above.
		_ = c.RegisterFlagCompletionFunc(name, a.completeWords)
	}
}

// check refuses what no number may be, and lists without a word, before anything
// is loaded: --target "$NODES" must not mean all nodes when the variable is empty.
func (f *planFlags) check(c *cobra.Command) error {
	if f.offline && f.refresh {
		return errors.New("--offline contacts nobody, and --refresh looks at everything: leave one of them out")
	}
	if f.trust < 0 {
		return fmt.Errorf("--trust %v: an age is not negative", f.trust)
	}
	for _, l := range []struct {
		flag  string
		words []string
	}{{"target", f.targets}, {"replace", f.replace}, {"decommission", f.decommission}} {
		if c.Flags().Changed(l.flag) && len(l.words) == 0 {
			return fmt.Errorf("--%s is empty: name nodes, or leave it out", l.flag)
		}
	}
	return nil
}

// words are all by which the operator named nodes.
func (f *planFlags) words() [][]string {
	if slices.Equal(f.replace, f.targets) { // what is wrong with them is said once
		return [][]string{f.targets}
	}
	return [][]string{f.replace, f.targets}
}

// planOptions are the flags as planning takes them.
func (f *planFlags) planOptions(a *app) provision.PlanOptions {
	return provision.PlanOptions{Replace: f.replace, Targets: f.targets, Decommission: f.decommission,
		Refresh: f.refresh, Trust: f.trust, Offline: f.offline, Now: a.now(), Say: func(text string) { a.sayf("%s", text) }}
}

func (a *app) plan(ctx context.Context, f planFlags) error {
	if err := planPlace(f.out); err != nil {
		return err
	}
	site, files, err := a.openReadOnlyFor(f.words()...)
	if err != nil {
		return err
	}
	reader, closeState, err := a.openReader()
	if err != nil {
		return err
	}
	defer closeState()
	defer provision.LimitMemory(len(site.Inv.Nodes))()
	var list gaps.List
	o := f.planOptions(a)
	o.Gaps = func(l gaps.List) { list = l }
	p, err := a.makePlan(ctx, site, files, reader, o)
	if err != nil {
		return err
	}
	if err := a.showPlan(site, p, a.predictDuration(ctx, site, reader, p), list, f); err != nil {
		return err
	}
	if f.detailed && !p.Conforms() {
		return exit{code: exitChanges}
	}
	return nil
}

// planJSON is what `plan --json` prints.
type planJSON struct {
	*plan.Plan
	Gaps gaps.List `json:"gaps"` // as check --json has them
}

// showPlan prints a plan, with what the files ask for and do not get, and saves it when
// asked to.
func (a *app) showPlan(site *provision.Site, p *plan.Plan, guess predict.Prediction, list gaps.List, f planFlags) error {
	out, write := f.out, writePlan
	if f.full {
		write = writeWholePlan
	}
	var err error
	if p.Sum, err = p.Digest(); err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(planJSON{withSteps(p), list}); err != nil {
			return err
		}
	} else {
		write(a.out, withoutGapWarnings(p, list), guess)
		showGaps(a.out, list)
	}
	if out == "" {
		return nil
	}
	return a.savePlan(site, p, out)
}
