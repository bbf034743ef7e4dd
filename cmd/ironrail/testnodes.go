// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/provision"
)

// retestFlags are the flags of a test of the site's own nodes.
type retestFlags struct {
	applyFlags
	here []string // names of the flags that are for nodes of the site alone
}

// define gives a command the flags.
func (f *retestFlags) define(c *cobra.Command) {
	f.here = []string{"auto-approve", "drain-wait", "jobs-unknown"}
	c.Flags().BoolVar(&f.approve, "auto-approve", false, "with NODE: do not ask")
	f.addDrain(c)
}

// check refuses flags that are for the other of the two ways to name nodes.
func (f *retestFlags) check(c *cobra.Command, nodes []string, hosts *hostFlags) error {
	switch {
	case len(nodes) == 0 && hosts.list == "":
		return wrongUsage(c, errors.New("say which nodes: NODE of the site, or --hosts FILE"))
	case len(nodes) > 0 && hosts.list != "":
		return wrongUsage(c, errors.New("NODE names nodes of the site, and --hosts a file of others: give one of them"))
	}
	for _, name := range f.here {
		if len(nodes) == 0 && c.Flags().Changed(name) {
			return wrongUsage(c, fmt.Errorf("--%s is for nodes of the site, which are named by NODE", name))
		}
	}
	var wrong error
	for _, name := range hosts.names {
		if len(nodes) > 0 && c.Flags().Changed(name) {
			wrong = errors.Join(wrong, fmt.Errorf("--%s is for --hosts", name))
		}
	}
	if wrong != nil {
		return wrongUsage(c, wrong)
	}
	if f.wait < 0 {
		return wrongUsage(c, fmt.Errorf("--drain-wait %v: no time to wait", f.wait))
	}
	return nil
}

// testNodes drains nodes of the site that were accepted, tests them again as they are, and hands back
// those that pass.
func (a *app) testNodes(ctx context.Context, words []string, f retestFlags) error {
	f.targets = words
	site, files, err := a.loadFor(words)
	if err != nil {
		return err
	}
	o, err := a.own(ctx, "test")
	if err != nil {
		return err
	}
	defer o.giveBack()
	if err := site.CheckRetest(ctx, o.store, words); err != nil {
		return err
	}
	options := f.planOptions(a)
	options.Retest, options.Trust = words, 0
	p, err := a.makePlan(ctx, site, files, o.store, options)
	if err != nil {
		return err
	}
	if err := provision.RefuseBeside(p, f.unknown); err != nil {
		return err
	}
	approval, err := a.agree(ctx, site, o, p, f.applyFlags, false)
	if err != nil {
		return err
	}
	lone, err := site.Unmeasured(ctx, o.store, p)
	if err != nil {
		return err
	}
	defer func() { // the verdict of such a node does not speak of its rails
		for _, text := range lone {
			a.sayf("Not measured: %s.", text)
		}
	}()
	return a.execute(ctx, site, o, provision.RunOptions{Plan: p, Store: o.store, Fence: o.fence, Bus: event.NewBus(ringSize), Approval: approval})
}
