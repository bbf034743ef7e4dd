package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/state"
)

func (a *app) rebuildCommand() *cobra.Command {
	var f applyFlags
	c := &cobra.Command{
		Use:   "rebuild NODE...",
		Short: "Reinstall nodes, from draining to hand-over",
		Long: `Plan and apply the replacement of nodes: drain them at their scheduler, erase and
install them, bring up drivers and fabric, test what they touch, and hand them
over again. The same rules hold as for apply: the plan is shown, the erase budget
counts, and a drain that fails stops before anything is erased.`,
		Example: "  ironrail rebuild n7\n  ironrail rebuild n7 n8 --auto-approve",
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			f.replace, f.targets = args, args
			return a.apply(c.Context(), f)
		},
	}
	f.addApproval(c)
	return c
}

func (a *app) adoptCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "adopt NODE...",
		Short: "Record running nodes as they are; nothing is installed",
		Long: `Observe nodes that run and record them as they were found, unverified. Nothing is
installed, powered or changed. This is what a lost state folder costs: an adopt
for each node, never a reinstall.`,
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return a.adopt(c.Context(), args) },
	}
}

func (a *app) adopt(ctx context.Context, nodes []string) error {
	site, _, err := a.load()
	if err != nil {
		return err
	}
	return a.asOwner(ctx, "adopt", func(store state.Store, fence state.Fence) error {
		var failed error
		for _, n := range nodes {
			seen, err := site.Adopt(ctx, store, fence, n, time.Now())
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			fmt.Fprintf(a.out, "%s is adopted: %s\n", n, event.Escape(seen))
		}
		return failed
	})
}
