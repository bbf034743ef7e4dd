// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/provision/status"
)

func (a *app) powerCommand() *cobra.Command {
	return groupCommands(&cobra.Command{
		Use:     "power",
		Short:   "Ask BMCs about power",
		Long:    "Direct work with the BMCs of nodes, many at once.",
		Example: "  ironrail power status",
	}, &cobra.Command{
		Use:   "status [NODE...]",
		Short: "Ask the BMCs of nodes for their power, all at once",
		Long: `Ask the BMCs of the nodes, of all when none is named, whether the node is on.
How the nodes stand by what is recorded is printed at once; then one line for each
BMC when it answers. A BMC has 20 seconds at most, and 64 are asked at a time.
Ctrl-C ends the wait with exit code 130. While apply runs it is asked, so that no
BMC has two sessions of ours. Nodes are named as for plan --target.

Exit code 3 when a BMC did not say. --json prints a list of objects with node,
state, error and at, when all have answered or had their time.`,
		Example:           "  ironrail power status\n  ironrail power status rack.r01 --json",
		Args:              asUsage(cobra.ArbitraryArgs),
		ValidArgsFunction: a.completeWords,
		RunE:              func(c *cobra.Command, args []string) error { return a.power(c.Context(), args) },
	})
}

func (a *app) power(ctx context.Context, words []string) error {
	nodes, err := a.selected(words)
	if err != nil {
		return err
	}
	var list []control.BMCAnswer
	err = a.interruptible(ctx, func(ctx context.Context) (err error) {
		list, err = a.powerStates(ctx, nodes)
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(list)
	}
	if err == nil && slices.ContainsFunc(list, func(p control.BMCAnswer) bool { return p.Error != "" }) {
		err = exit{code: exitSomeFailed}
	}
	return err
}

// powerKnown prints how nodes stand before their BMCs are asked.
func (a *app) powerKnown(all []why.NodeSummary, nodes []string) {
	if a.json {
		return
	}
	var p page
	p.linef("Recorded, before any BMC answers:")
	for _, b := range all {
		if len(nodes) > 0 && !slices.Contains(nodes, b.Node) {
			continue
		}
		text := string(b.Status)
		if since := formatSpan(b.Since, b.Until, a.now()); since != "" {
			text += ", " + since
		}
		p.linef("  %-14s %s", b.Node, text)
	}
	p.linef("")
	p.linef("Asked now:")
	p.to(a.out)
}

// powerLine prints what one BMC said.
func (a *app) powerLine(x control.BMCAnswer) {
	if a.json {
		return
	}
	var p page
	if x.Error != "" {
		p.linef("%-14s unknown: %s", x.Node, x.Error)
	} else {
		p.linef("%-14s %s", x.Node, x.State)
	}
	p.to(a.out)
}

// powerStates tells what is known, and asks through the owner when there is one. It
// prints each answer when it comes, unless all are to be one document.
func (a *app) powerStates(ctx context.Context, nodes []string) ([]control.BMCAnswer, error) {
	list := []control.BMCAnswer{}
	owned, err := a.asked(func(c *control.Client) (err error) {
		list, err = a.powerOwned(ctx, c, nodes)
		return err
	})
	if owned || err != nil {
		return list, err
	}
	site, err := a.openRecords(nodes...)
	if err != nil {
		return nil, err
	}
	reader, closeState, err := a.openReader()
	if err != nil {
		return nil, err
	}
	defer closeState()
	now, err := status.ReadSite(ctx, site.Inv, reader, a.now())
	if err != nil {
		return nil, err
	}
	a.powerKnown(why.SummariseNodes(now), nodes)
	ob, err := site.Observer(ctx, reader)
	if err != nil {
		return nil, err
	}
	got, err := ob.PowerStatus(ctx, reader, nodes, func(x control.BMCAnswer) {
		if ctx.Err() == nil { // what ends with Ctrl-C is no answer
			a.powerLine(x)
		}
	})
	return append(list, got...), err
}

// powerOwned asks the owner. A node without an answer when the owner ends has an error.
func (a *app) powerOwned(ctx context.Context, c *control.Client, nodes []string) ([]control.BMCAnswer, error) {
	s, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	briefs := why.SummariseNodes(why.NewSite(s, a.now()))
	if err := knownBriefs(briefs, nodes); err != nil {
		return nil, err
	}
	a.powerKnown(briefs, nodes)
	got := map[string]control.BMCAnswer{}
	take := func(x control.BMCAnswer) {
		if ctx.Err() != nil || len(nodes) > 0 && !slices.Contains(nodes, x.Node) { // what ends with Ctrl-C is no answer
			return
		}
		got[x.Node] = x
		a.powerLine(x)
	}
	if err := c.Power(ctx, nodes, take); err != nil {
		return nil, err
	}
	list := []control.BMCAnswer{}
	for _, b := range briefs {
		if len(nodes) > 0 && !slices.Contains(nodes, b.Node) {
			continue
		}
		if _, answered := got[b.Node]; !answered {
			take(control.BMCAnswer{Node: b.Node, Error: fmt.Sprintf("%s ended before the BMC answered", s.Owner.Command), At: a.now().UTC()})
		}
		list = append(list, got[b.Node])
	}
	return list, nil
}

// knownBriefs checks names of nodes against those that are known.
func knownBriefs(all []why.NodeSummary, nodes []string) error {
	var names []string
	for _, b := range all {
		names = append(names, b.Node)
	}
	return checkKnown(names, nodes)
}
