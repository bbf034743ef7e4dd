package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/predict"
)

// planFlags are the wishes that plan, apply and rebuild share.
type planFlags struct {
	replace  []string
	targets  []string
	out      string
	detailed bool
}

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what apply would do, and why",
		Long: `Compare the site's files with what was done before, and show every step that is
left: grouped by node, with its reason, with what it erases in capitals.

No node is changed and no secret is resolved. A node that runs but is not in the
state is offered for adoption; nothing is planned for it. What ironrail.lock lacks
of addresses and digests is added to it.

With --json the plan itself is printed, as --out saves it.`,
		Example: "  ironrail plan\n  ironrail plan --out monday.plan\n  ironrail plan --replace n7",
		Args:    usage(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return a.plan(c.Context(), f) },
	}
	f.add(c, a)
	c.Flags().StringVar(&f.out, "out", "", "also save the plan to this `FILE`, for `ironrail apply FILE`")
	c.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "exit with 2 when there is something to do")
	return c
}

// add defines the flags of planning.
func (f *planFlags) add(c *cobra.Command, a *app) {
	c.Flags().StringSliceVar(&f.replace, "replace", nil, "reinstall these `NODES`, drained first (comma separated)")
	c.Flags().StringSliceVar(&f.targets, "target", nil, "plan for these `NODES` only (comma separated)")
	for _, name := range []string{"replace", "target"} {
		// An error would be a flag that was not defined just above.
		_ = c.RegisterFlagCompletionFunc(name, a.completeNodes)
	}
}

// nodes lists the nodes that the operator named.
func (f *planFlags) nodes() []string { return slices.Concat(f.replace, f.targets) }

func (a *app) plan(ctx context.Context, f planFlags) error {
	site, files, err := a.look(f.nodes()...)
	if err != nil {
		return err
	}
	reader, closeState, err := a.openReader()
	if err != nil {
		return err
	}
	defer closeState()
	p, err := a.makePlan(ctx, site, files, reader, f)
	if err != nil {
		return err
	}
	if err := a.showPlan(p, a.guess(ctx, site, reader, p), f.out); err != nil {
		return err
	}
	if f.detailed && !p.Empty() {
		return exit{code: exitChanges}
	}
	return nil
}

// showPlan prints a plan and saves it when asked to.
func (a *app) showPlan(p *plan.Plan, guess predict.Prediction, out string) error {
	if p.Steps == nil {
		p.Steps = []plan.Step{}
	}
	if a.json {
		if err := a.printJSON(p); err != nil {
			return err
		}
	} else {
		writePlan(a.out, p, guess)
	}
	if out == "" {
		return nil
	}
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, append(b, '\n'), 0o644); err != nil {
		return err
	}
	a.sayf("Saved to %s: `ironrail apply %s` does exactly this.", out, out)
	return nil
}

// maxPlan bounds a saved plan: that of ten thousand nodes has some 200 MiB.
const maxPlan = 1 << 30

// readPlan reads a saved plan.
func readPlan(path string) (*plan.Plan, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPlan {
		return nil, fmt.Errorf("%s is not a saved plan", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var p plan.Plan
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("%s is not a saved plan: %w", path, err)
	}
	if p.Format != plan.Format {
		return nil, fmt.Errorf("%s has plan format %d; this ironrail reads format %d: make a new plan", path, p.Format, plan.Format)
	}
	return &p, nil
}
