package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/provision/control"
	"github.com/ironrail/ironrail/provision/event"
)

func (a *app) powerCommand() *cobra.Command {
	c := &cobra.Command{Use: "power", Short: "Direct work with BMCs", Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return exit{exitUsage, fmt.Errorf("say what: `ironrail power status` (see `%s --help`)", c.CommandPath())}
		}}
	c.AddCommand(&cobra.Command{
		Use:   "status [NODE...]",
		Short: "Ask the BMCs of nodes for their power, all at once",
		Args:  usage(cobra.ArbitraryArgs),
		RunE:  func(c *cobra.Command, args []string) error { return a.power(c.Context(), args) },
	})
	return c
}

func (a *app) power(ctx context.Context, nodes []string) error {
	list, err := a.powerStates(ctx, nodes)
	if err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(list); err != nil {
			return err
		}
	}
	failed := 0
	for _, p := range list {
		text := p.State
		if p.Error != "" {
			failed++
			text = "unknown: " + event.Escape(p.Error)
		}
		if !a.json {
			fmt.Fprintf(a.out, "%-12s %s\n", p.Node, text)
		}
	}
	if failed > 0 {
		return exit{code: exitSomeFailed}
	}
	return nil
}

// powerStates asks through the owner when there is one, so that no BMC has two
// sessions of ours.
func (a *app) powerStates(ctx context.Context, nodes []string) ([]control.Power, error) {
	if _, owned, err := control.Find(a.stateDir()); err != nil {
		return nil, err
	} else if owned {
		all, err := control.NewClient(a.stateDir()).Power(ctx)
		return only(all, nodes), err
	}
	site, _, err := a.load()
	if err != nil {
		return nil, err
	}
	return site.PowerStatus(ctx, nodes)
}

// only keeps the named nodes; no names mean all.
func only(all []control.Power, names []string) (out []control.Power) {
	want := "," + strings.Join(names, ",") + ","
	for _, p := range all {
		if len(names) == 0 || strings.Contains(want, ","+p.Node+",") {
			out = append(out, p)
		}
	}
	return out
}
