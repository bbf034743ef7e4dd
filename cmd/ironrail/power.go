package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/provision/control"
)

func (a *app) powerCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "power",
		Short:   "Ask BMCs about power",
		Long:    "Direct work with the BMCs of nodes, many at once.",
		Example: "  ironrail power status",
	}, &cobra.Command{
		Use:   "status [NODE...]",
		Short: "Ask the BMCs of nodes for their power, all at once",
		Long: `Ask the BMCs of the nodes, of all when none is named, whether the node is on.
While apply runs it is asked, so that no BMC has two sessions of ours. Nodes are
named as for plan --target.

Exit code 3 when a BMC did not say. --json prints a list of objects with node,
state, error and at.`,
		Example:           "  ironrail power status\n  ironrail power status rack.r01 --json",
		Args:              usage(cobra.ArbitraryArgs),
		ValidArgsFunction: a.completeWords,
		RunE:              func(c *cobra.Command, args []string) error { return a.power(c.Context(), args) },
	})
}

func (a *app) power(ctx context.Context, words []string) error {
	nodes, err := a.selected(words)
	if err != nil {
		return err
	}
	list, err := a.powerStates(ctx, nodes)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(list)
	} else {
		writePower(a, list)
	}
	if err == nil && slices.ContainsFunc(list, func(p control.Power) bool { return p.Error != "" }) {
		err = exit{code: exitSomeFailed}
	}
	return err
}

func writePower(a *app, list []control.Power) {
	var p page
	for _, x := range list {
		if x.Error != "" {
			p.linef("%-14s unknown: %s", x.Node, x.Error)
		} else {
			p.linef("%-14s %s", x.Node, x.State)
		}
	}
	p.to(a.out)
}

// powerStates asks through the owner when there is one.
func (a *app) powerStates(ctx context.Context, nodes []string) ([]control.Power, error) {
	list := []control.Power{}
	owned, err := a.asked(func(c *control.Client) error {
		all, err := c.Power(ctx)
		if err != nil {
			return err
		}
		list, err = only(all, nodes)
		return err
	})
	if owned || err != nil {
		return list, err
	}
	site, _, err := a.look(nodes...)
	if err != nil {
		return nil, err
	}
	reader, closeState, err := a.openReader()
	if err != nil {
		return nil, err
	}
	defer closeState()
	got, err := site.PowerStatus(ctx, reader, nodes)
	return append(list, got...), err
}

// only keeps the named nodes; no names mean all.
func only(all []control.Power, nodes []string) ([]control.Power, error) {
	if len(nodes) == 0 {
		return all, nil
	}
	var names []string
	for _, p := range all {
		names = append(names, p.Node)
	}
	return slices.DeleteFunc(all, func(p control.Power) bool { return !slices.Contains(nodes, p.Node) }), known(names, nodes)
}
