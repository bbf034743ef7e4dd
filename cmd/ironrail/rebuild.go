package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
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
		Example:           "  ironrail rebuild n7\n  ironrail rebuild n7 n8 --auto-approve",
		Args:              usage(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeNodes,
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
		Example:           "  ironrail adopt n1 n2",
		Args:              usage(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeNodes,
		RunE:              func(c *cobra.Command, args []string) error { return a.adopt(c.Context(), args) },
	}
}

// adopted is one adopted node as --json prints it.
type adopted struct {
	Node string `json:"node"`
	Seen string `json:"seen"`
}

func (a *app) adopt(ctx context.Context, nodes []string) error {
	site, _, err := a.load(nodes...)
	if err != nil {
		return err
	}
	o, err := a.own(ctx, "adopt")
	if err != nil {
		return err
	}
	defer o.giveBack()
	var failed error
	done := []adopted{}
	for _, n := range nodes {
		seen, err := site.Adopt(ctx, o.store, o.fence, n, a.now())
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		done = append(done, adopted{n, seen})
	}
	if a.json {
		return errors.Join(failed, a.printJSON(done))
	}
	var p page
	for _, d := range done {
		p.linef("%s is adopted: %s", d.Node, d.Seen)
	}
	p.to(a.out)
	return failed
}
