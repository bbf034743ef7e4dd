// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"

	"github.com/ironrail/ironrail/provision/adopt"
	"github.com/spf13/cobra"
)

func (a *app) adoptCommand() *cobra.Command {
	var o adopt.Options
	c := &cobra.Command{
		Use:   "adopt NODE... | --all",
		Short: "Record running nodes as they are; nothing is installed",
		Long: `Observe nodes that run and record them as they were found, unverified. Nothing is
installed, powered, changed or left behind: the nodes are read over SSH, and their
BMCs are asked who they are. This is what a lost state folder costs: an adopt,
never a reinstall.

A chassis or a BMC with another serial than the site's is refused. What drivers
and fabrics are found to be as the site has it is recorded as done: a later change
of the site is then a change to these nodes. How each node is now is what
` + "`ironrail drift`" + ` compares with later.

The host key of a node is taken as it is seen: compare the one that is shown.
Without the controller's key (.ironrail/keys) on a node, nothing but that is known
of its system.

Nodes are named as for plan --target. Exit code 3 when some nodes were not adopted;
run it again for these. --json prints a list of objects with node, adopted, seen,
unknown, error and do.`,
		Example: `  ironrail adopt n1 n2
  ironrail adopt --all
  ironrail adopt rack.r01 --no-bmc`,
		Args:              asUsage(cobra.ArbitraryArgs),
		ValidArgsFunction: a.completeWords,
		RunE: func(c *cobra.Command, args []string) error {
			o.Words = args
			return a.adopt(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.All, "all", false, "every node that this state does not know yet")
	c.Flags().BoolVar(&o.NoBMC, "no-bmc", false, "leave the BMCs alone")
	return c
}

func (a *app) adopt(ctx context.Context, o adopt.Options) error {
	if o.All == (len(o.Words) > 0) {
		return usageOf("ironrail adopt", errors.New("say which nodes are adopted, or --all"))
	}
	site, _, err := a.loadFor(o.Words)
	if err != nil {
		return err
	}
	own, err := a.own(ctx, "adopt")
	if err != nil {
		return err
	}
	defer own.giveBack()
	if o.Now = a.now(); !a.json {
		o.Say = func(text string) { a.sayf("%s", text) }
	}
	ad, err := site.Adopter(ctx, own.store)
	if err != nil {
		return err
	}
	list, err := ad.Adopt(ctx, own.store, own.fence, o)
	if a.json {
		err = errors.Join(err, a.printJSON(append([]adopt.Node{}, list...)))
	} else {
		writeAdopted(a, list, err == nil)
	}
	failed := 0
	for _, n := range list {
		if n.Error != "" {
			failed++
		}
	}
	switch {
	case err != nil:
		return err
	case failed > 0 && failed == len(list):
		return exit{code: exitFailed}
	case failed > 0:
		return exit{code: exitSomeFailed}
	}
	return nil
}

// writeAdopted says what each node is, and what is wrong with those that were not
// adopted; ok is false when the command itself has failed.
func writeAdopted(a *app, list []adopt.Node, ok bool) {
	var p, talk page
	for _, n := range list {
		switch {
		case n.Error != "":
			talk.linef("error: %s is not adopted: %s", n.Node, n.Error)
			if n.Action != "" {
				talk.linef("hint: %s", n.Action)
			}
			continue
		case n.Already:
			p.linef("%s is accepted already, and is left as it is.", n.Node)
			continue
		case !n.Adopted:
			continue
		}
		p.linef("%s is adopted: %s", n.Node, strings.Join(n.Seen, "; "))
		for _, u := range n.Unknown {
			p.linef("  not known: %s", u)
		}
	}
	if len(list) == 0 && ok {
		p.linef("There is nothing to adopt: this state knows every node.")
	}
	p.to(a.out)
	talk.to(a.err)
}
