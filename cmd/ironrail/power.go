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
		Short:   "Ask for the power of nodes, and change it",
		Long:    "Direct work with the BMCs of nodes, many at once.",
		Example: "  ironrail power status\n  ironrail power cycle r01-u09",
	}, a.powerOnCommand(), a.powerOffCommand(), a.powerCycleCommand(), a.powerResetCommand(), &cobra.Command{
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
	return a.bmcs(ctx, bmcWork{ask: control.BMCQuestion{For: control.AskPower}, known: a.powerKnown, show: a.powerLine}, words)
}

// bmcWork is what the BMCs of nodes are asked for, and how that is shown.
type bmcWork struct {
	ask   control.BMCQuestion
	known func(all []why.NodeSummary, nodes []string) // what is printed before any answers; nil: nothing
	show  func(control.BMCAnswer)                     // one answer, unless all are to be one document
}

// bmcs asks the BMCs of nodes, of all when none is named.
func (a *app) bmcs(ctx context.Context, w bmcWork, words []string) error {
	nodes, err := a.selected(words)
	if err != nil {
		return err
	}
	var list []control.BMCAnswer
	err = a.interruptible(ctx, func(ctx context.Context) (err error) {
		list, err = a.askBMCs(ctx, w, nodes)
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

// askBMCs tells what is known, and asks through the owner when there is one. It
// shows each answer when it comes.
func (a *app) askBMCs(ctx context.Context, w bmcWork, nodes []string) ([]control.BMCAnswer, error) {
	list := []control.BMCAnswer{}
	owned, err := a.asked(func(c *control.Client) (err error) {
		list, err = a.bmcsOfOwner(ctx, c, w, nodes)
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
	if w.known != nil {
		w.known(why.SummariseNodes(now), nodes)
	}
	ob, err := site.Observer(ctx, reader)
	if err != nil {
		return nil, err
	}
	got, err := ob.AskBMCs(ctx, reader, w.ask, nodes, func(x control.BMCAnswer) {
		if ctx.Err() == nil { // what ends with Ctrl-C is no answer
			w.show(x)
		}
	})
	return append(list, got...), err
}

// bmcsOfOwner asks the owner. A node without an answer when the owner ends has an error.
func (a *app) bmcsOfOwner(ctx context.Context, c *control.Client, w bmcWork, nodes []string) ([]control.BMCAnswer, error) {
	s, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	briefs := why.SummariseNodes(why.NewSite(s, a.now()))
	if err := knownBriefs(briefs, nodes); err != nil {
		return nil, err
	}
	if w.known != nil {
		w.known(briefs, nodes)
	}
	got := map[string]control.BMCAnswer{}
	take := func(x control.BMCAnswer) {
		if ctx.Err() != nil || len(nodes) > 0 && !slices.Contains(nodes, x.Node) { // what ends with Ctrl-C is no answer
			return
		}
		got[x.Node] = x
		w.show(x)
	}
	if err := c.AskBMCs(ctx, w.ask, nodes, take); err != nil {
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
