package main

import (
	"context"
	"errors"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/provision/control"
	"github.com/ironrail/ironrail/provision/state"
)

// marking is how nodes are held or released: through the owner of the state, or
// in the state when there is none.
type marking struct {
	word  string // what is said of the node afterwards
	ask   func(*control.Client, context.Context, string, control.HoldRequest) error
	write func(context.Context, state.Store, state.Fence, string, state.Hold) error
}

func (a *app) holdCommand() *cobra.Command {
	var reason string
	m := marking{"held", (*control.Client).Hold, state.HoldNode}
	c := &cobra.Command{
		Use:   "hold NODE...",
		Short: "Stop all automation on nodes at once",
		Long: `Stop all automation on the nodes, now and in later runs, until ` + "`ironrail release`" + `.
Works while apply runs: what is under way on the nodes is stopped, and nothing
new is started on them.`,
		Example:           "  ironrail hold n7 --reason 'riser is being swapped'",
		Args:              usage(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeNodes,
		RunE: func(c *cobra.Command, args []string) error {
			return a.mark(c.Context(), m, args, reason)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for whoever looks at the node next")
	return c
}

func (a *app) releaseCommand() *cobra.Command {
	m := marking{"released", (*control.Client).Release, state.ReleaseNode}
	return &cobra.Command{
		Use:   "release NODE...",
		Short: "Let held nodes go again",
		Long: `Let held nodes go again. Without a run, nodes that are quarantined are taken out
of quarantine as well: you say that they are in order. What a run skipped because
of a hold is done by the next apply.`,
		Example:           "  ironrail release n7",
		Args:              usage(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeNodes,
		RunE: func(c *cobra.Command, args []string) error {
			return a.mark(c.Context(), m, args, "")
		},
	}
}

// mark holds or releases nodes, all that it can, and returns what failed.
func (a *app) mark(ctx context.Context, m marking, nodes []string, reason string) error {
	by := operator()
	owned, err := a.asked(func(c *control.Client) error {
		return a.each(nodes, m.word, func(n string) error {
			return m.ask(c, ctx, n, control.HoldRequest{By: by, Reason: reason})
		})
	})
	if owned || err != nil {
		return err
	}
	if _, err := a.inventory(nodes...); err != nil {
		return err
	}
	o, err := a.own(ctx, m.word)
	if err != nil {
		return err
	}
	defer o.giveBack()
	return a.each(nodes, m.word, func(n string) error {
		return m.write(ctx, o.store, o.fence, n, state.Hold{By: by, Reason: reason, At: a.now().UTC()})
	})
}

// each does something to every node, says what it has become, and joins what
// failed.
func (a *app) each(nodes []string, word string, do func(string) error) error {
	var failed error
	for _, n := range nodes {
		if err := do(n); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		a.sayf("%s is %s.", n, word)
	}
	return failed
}

// operator names who types, for the journal.
func operator() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "operator"
}
