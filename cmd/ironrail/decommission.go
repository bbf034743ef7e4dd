// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/acceptance"
	"github.com/ironrail/ironrail/provision/overrides"
	"github.com/ironrail/ironrail/provision/selection"
)

// decommissionFlags are the options of one decommission.
type decommissionFlags struct {
	applyFlags
	forget bool
	reason string
}

func (a *app) decommissionCommand() *cobra.Command {
	var f decommissionFlags
	c := &cobra.Command{
		Use:   "decommission NODE...",
		Short: "Wipe, switch off and forget nodes that left the files",
		Long: `Plan and apply the end of nodes. Take them out of the site's files first: a node of
the site is refused. Each is drained at its scheduler, identified once more in the
install ramdisk, its disks are wiped, it is switched off, the scheduler's files are
written without it, and the state forgets it; the journal keeps its history. The
plan is shown, the erase budget counts, and a node that was protected is refused.

What is wiped is the disks that the node's hardware block names: discarded where
the disk can do that, and zeroed at its ends. This is no certified sanitisation. A
node that kept its system in memory is switched off, and no disk is wiped.

--forget-only touches neither disks nor power: for a chassis that is dead, or gone
already, or that has another name now. It asks for the word "forget".`,
		Example: "  ironrail decommission n7\n  ironrail decommission n7 n8 --drain-wait 2h --auto-approve --erase 2\n  ironrail decommission n7 --forget-only --reason 'chassis returned, case 4711'",
		Args:    asUsage(cobra.MinimumNArgs(1)),

		ValidArgsFunction: a.completeGone,
		RunE: func(c *cobra.Command, args []string) error {
			f.decommission = args
			if err := f.check(c); err != nil {
				return wrongUsage(c, err)
			}
			if f.reason != "" && !f.forget {
				return wrongUsage(c, errors.New("--reason goes with --forget-only"))
			}
			if f.forget {
				return a.removeDecommissioned(c.Context(), f, args)
			}
			return a.apply(c.Context(), f.applyFlags)
		},
	}
	c.Flags().BoolVar(&f.forget, "forget-only", false, "only forget the nodes; neither their disks nor their power are touched")
	c.Flags().StringVar(&f.reason, "reason", "", "`WHY` they are only forgotten, for the journal")
	f.addApproval(c)
	return c
}

// completeGone offers to the shell the nodes of the state that are in no file.
func (a *app) completeGone(c *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	inv, diags, _ := a.loadInventory()
	r, done, err := a.openReader()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer done()
	all, err := r.Objects(c.Context(), state.NodeKey("").Kind)
	if err != nil || diags.HasErrors() {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, o := range all {
		if _, here := inv.Node(o.Key.Name); !here {
			names = append(names, o.Key.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// removeDecommissioned takes nodes out of the state and touches nothing else.
func (a *app) removeDecommissioned(ctx context.Context, f decommissionFlags, nodes []string) error {
	site, _, err := a.load()
	if err != nil {
		return err
	}
	o, err := a.own(ctx, "decommission")
	if err != nil {
		return err
	}
	defer o.giveBack()
	if err := overrides.MayForget(ctx, o.store, site.Inv, nodes); err != nil {
		return err
	}
	if !f.approve {
		a.sayf("All that the state has of %s is forgotten: facts, steps, pins. Disks and power are not touched.", strings.Join(nodes, ", "))
		if err := a.promptFor("forget", "Add --auto-approve if they are to be forgotten."); err != nil {
			return err
		}
	}
	reason := f.reason
	if reason == "" {
		reason = "forgotten without being touched"
	}
	if err := overrides.Forget(ctx, o.store, o.fence, site.Inv, nodes, overrides.ForgetReason{Reason: reason, By: operatorName()}, a.now()); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string][]string{"forgotten": nodes})
	}
	var p page
	for _, n := range nodes {
		p.linef("%s is forgotten.", n)
	}
	if len(site.Inv.Handovers) > 0 {
		p.linef("`ironrail plan` shows what is to be written for the scheduler.")
	}
	p.to(a.out)
	return nil
}

// rollbackFlags are the options of one rollback.
type rollbackFlags struct {
	applyFlags
	to            int
	reason        string
	list, release bool
}

func (a *app) rollbackCommand() *cobra.Command {
	var f rollbackFlags
	c := &cobra.Command{
		Use:   "rollback NODE...",
		Short: "Bring nodes back to what they were accepted with",
		Long: `Plan and apply the reinstallation of nodes with what they were accepted with before:
the image, by its digest, and the driver stacks. The last acceptance that is not
what the node has now is taken, or the one that --to numbers. The nodes are drained
first, the plan is shown and the erase budget counts, as for rebuild. When the
image or the packages are not there any more, nothing is begun.

A node that was rolled back is pinned: it keeps that image and those drivers
whatever the site's files say, rollouts pass it by, and every plan says so, until
--release lets it follow the site again. --list shows what nodes were accepted
with, and their pins. Nodes are named as for plan --target.`,
		Example: "  ironrail rollback n7 --reason 'all-reduce is slow since Monday'\n  ironrail rollback n7 --to 3\n  ironrail rollback --list n7\n  ironrail rollback --release n7",
		Args:    asUsage(cobra.MinimumNArgs(1)), ValidArgsFunction: a.completeWords,
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c); err != nil {
				return wrongUsage(c, err)
			}
			switch {
			case f.list && f.release || (f.list || f.release) && f.to != 0:
				return wrongUsage(c, fmt.Errorf("--list, --release and --to do not go together"))
			case f.to < 0:
				return wrongUsage(c, fmt.Errorf("--to %d: acceptances are numbered from 1", f.to))
			case f.list:
				return a.listAccepted(c.Context(), args)
			case f.release:
				return a.unpin(c.Context(), args)
			}
			f.replace, f.targets = args, args
			return a.rollback(c.Context(), f, args)
		},
	}
	c.Flags().IntVar(&f.to, "to", 0, "the acceptance with this `NUMBER` in --list")
	c.Flags().StringVar(&f.reason, "reason", "", "`WHY`, for the journal and for every plan until the pin is released")
	c.Flags().BoolVar(&f.list, "list", false, "only show what the nodes were accepted with")
	c.Flags().BoolVar(&f.release, "release", false, "let the nodes follow the site's files again")
	f.addApproval(c)
	return c
}

// rollback owns the state from here to its end.
func (a *app) rollback(ctx context.Context, f rollbackFlags, words []string) error {
	site, files, err := a.loadFor(words)
	if err != nil {
		return err
	}
	nodes, err := selection.ReadNodes(site.Inv, words)
	if err != nil {
		return err
	}
	o, err := a.own(ctx, "rollback")
	if err != nil {
		return err
	}
	defer o.giveBack()
	r := &acceptance.Rollback{Nodes: nodes, To: f.to, By: operatorName(), Reason: f.reason, At: a.now()}
	if site, err = site.PrepareRollback(ctx, o.store, r); err != nil {
		return err
	}
	p, err := a.makePlan(ctx, site, files, o.store, f.planOptions(a))
	if err != nil {
		return err
	}
	approval, err := a.agree(ctx, site, o, p, f.applyFlags, false)
	if err != nil {
		return err
	}
	if p.Empty() {
		return errkind.New(errkind.Refused, "nothing can be planned for %s", strings.Join(nodes, ", ")).Do("The warnings above say why, such as a hold.")
	}
	if err := overrides.RecordPins(ctx, o.store, o.fence, r.Pins); err != nil {
		return err
	}
	return a.execute(ctx, site, o, provision.RunOptions{Plan: p, Store: o.store, Fence: o.fence, Bus: event.NewBus(ringSize), EraseApproved: approval.Erase, Approval: approval})
}

// unpin lets nodes follow the site again.
func (a *app) unpin(ctx context.Context, words []string) error {
	site, _, err := a.loadFor(words)
	if err != nil {
		return err
	}
	nodes, err := selection.ReadNodes(site.Inv, words)
	if err != nil {
		return err
	}
	o, err := a.own(ctx, "rollback --release")
	if err != nil {
		return err
	}
	defer o.giveBack()
	if err := overrides.ReleasePins(ctx, o.store, o.fence, nodes, operatorName(), a.now()); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string][]string{"released": nodes})
	}
	for _, n := range nodes {
		a.sayf("%s follows the site again; `ironrail plan` shows what that means for it.", n)
	}
	return nil
}

// nodeHistory is what a node was accepted with, as --json prints it.
type nodeHistory struct {
	Node     string                `json:"node"`
	Pin      *overrides.Pin        `json:"pin,omitempty"`
	Accepted []acceptance.Accepted `json:"accepted"` // the last first; --to counts them from 1
}

func (a *app) listAccepted(ctx context.Context, words []string) error {
	site, _, err := a.openReadOnlyFor(words)
	if err != nil {
		return err
	}
	nodes, err := selection.ReadNodes(site.Inv, words)
	if err != nil {
		return err
	}
	r, done, err := a.openReader()
	if err != nil {
		return err
	}
	defer done()
	pins, err := overrides.Pins(ctx, r)
	if err != nil {
		return err
	}
	var all []nodeHistory
	for _, n := range nodes {
		h := nodeHistory{Node: n, Accepted: []acceptance.Accepted{}}
		list, err := acceptance.ReadHistory(ctx, r, n)
		if err != nil {
			return err
		}
		h.Accepted = append(h.Accepted, list...)
		for i := range pins {
			if pins[i].Node == n {
				h.Pin = &pins[i]
			}
		}
		all = append(all, h)
	}
	if a.json {
		return a.printJSON(all)
	}
	var p page
	for _, h := range all {
		a.history(&p, h)
	}
	p.to(a.out)
	return nil
}

// history shows what one node was accepted with.
func (a *app) history(p *page, h nodeHistory) {
	p.linef("%s", h.Node)
	if len(h.Accepted) == 0 {
		p.linef("  was never accepted with an image that ironrail wrote")
	}
	for i, x := range h.Accepted {
		p.linef("  %d  %s  %s", i+1, formatMoment(x.At, a.now()), x.String())
	}
	if h.Pin != nil {
		p.linef("  %s", h.Pin.Warning())
	}
}
