package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/control"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/state"
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

Nothing is changed and no secret is resolved. A node that runs but is not in the
state is offered for adoption; nothing is planned for it.`,
		Example: "  ironrail plan\n  ironrail plan --out monday.plan\n  ironrail plan --replace n7",
		Args:    usage(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return a.plan(c.Context(), f) },
	}
	f.add(c)
	c.Flags().StringVar(&f.out, "out", "", "also save the plan to this file, for `ironrail apply FILE`")
	c.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "exit with 2 when there is something to do")
	return c
}

// add defines the flags of planning.
func (f *planFlags) add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.replace, "replace", nil, "reinstall these nodes, drained first (comma separated)")
	c.Flags().StringSliceVar(&f.targets, "target", nil, "plan for these nodes only (comma separated)")
}

func (a *app) plan(ctx context.Context, f planFlags) error {
	site, files, err := a.load()
	if err != nil {
		return err
	}
	reader, closeState, err := a.openReader()
	if err != nil {
		return err
	}
	defer closeState()
	p, diags, err := site.Plan(ctx, reader, provision.PlanOptions{Replace: f.replace, Targets: f.targets, Now: time.Now()})
	if len(diags) > 0 {
		a.showHCL(diags, files)
	}
	if err != nil {
		return err
	}
	if diags.HasErrors() {
		return exit{exitFailed, errors.New("the site cannot be planned as it stands")}
	}
	if err := a.showPlan(p, f.out); err != nil {
		return err
	}
	if f.detailed && !p.Empty() {
		return exit{code: exitChanges}
	}
	return nil
}

// showPlan prints a plan and saves it when asked to.
func (a *app) showPlan(p *plan.Plan, out string) error {
	if a.json {
		if err := a.printJSON(p); err != nil {
			return err
		}
	} else {
		writePlan(a.out, p)
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
	fmt.Fprintf(a.err, "Saved to %s: `ironrail apply %s` does exactly this.\n", out, out)
	return nil
}

// readPlan reads a saved plan.
func readPlan(path string) (*plan.Plan, error) {
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

// stateDir is the state folder of the site.
func (a *app) stateDir() string { return filepath.Join(a.dir, provision.StateFolder) }

// openReader opens the state for reading; without one it is empty. While another
// process owns it, its file is not readable: the caller asks the owner instead.
func (a *app) openReader() (state.Reader, func(), error) {
	if who, owned, err := control.Find(a.stateDir()); err != nil {
		return nil, nil, err
	} else if owned {
		return nil, nil, owned11(who)
	}
	path := provision.StatePath(a.dir)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return state.Empty{}, func() {}, nil
	}
	s, err := state.OpenReadOnly(path)
	if err != nil {
		return nil, nil, err
	}
	return s, func() { s.Close() }, nil
}

// owned11 is the refusal while another process owns the state.
func owned11(who control.Identity) error {
	return exit{exitOwned, fmt.Errorf("the state of this site belongs to %s", who)}
}
