// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os/user"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/selection"
)

// marking is how nodes are put on hold or released: through the owner of the state, or
// in the state when there is none.
type marking struct {
	word   string                // of the JSON that lists the nodes
	status string                // of a node afterwards
	fits   func(state.Node) bool // whether a node of a group is meant
	ask    func(*control.Client, context.Context, string, control.HoldRequest) error
	write  func(context.Context, state.Store, state.Fence, string, state.Hold) error
}

func (a *app) holdCommand() *cobra.Command {
	var reason string
	m := marking{"held", "on hold", isHoldable, (*control.Client).Hold, state.HoldNode}
	c := &cobra.Command{
		Use:   "hold NODE...",
		Short: "Stop all automation on nodes at once",
		Long: `Stop all automation on the nodes, now and in later runs, until ` + "`ironrail release`" + `.
Works while apply runs: what is under way on the nodes is stopped, and nothing
new is started on them.

Nodes are named as for plan --target. Of a pattern or a group those that are on hold
already keep their hold, with its reason. --json prints the nodes that are now on
hold.`,
		Example:           "  ironrail hold n7 --reason 'riser is being swapped'\n  ironrail hold rack.r01 --reason 'PDU a is replaced'",
		Args:              asUsage(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeWords,
		RunE: func(c *cobra.Command, args []string) error {
			return a.setHolds(c.Context(), m, args, reason)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for whoever looks at the node next")
	return c
}

func (a *app) releaseCommand() *cobra.Command {
	m := marking{"released", "released", isReleasable, (*control.Client).Release, state.ReleaseNode}
	return &cobra.Command{
		Use:   "release NODE...",
		Short: "Let held nodes go again",
		Long: `Let held nodes go again. Without a run, nodes that are quarantined are taken out
of quarantine as well: you say that they are in order. What a run skipped because
of a hold is done by the next apply.

Nodes are named as for plan --target. Of a pattern or a group only those are meant
that are on hold, and not those that are quarantined: name these.`,
		Example:           "  ironrail release n7\n  ironrail release rack.r01",
		Args:              asUsage(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeWords,
		RunE: func(c *cobra.Command, args []string) error {
			return a.setHolds(c.Context(), m, args, "")
		},
	}
}

// isHoldable returns the nodes of a group that hold means: nobody's hold is overwritten.
func isHoldable(n state.Node) bool { return n.Hold == nil }

// isReleasable returns the nodes of a group that release means: a quarantine is lifted by
// who names the node.
func isReleasable(n state.Node) bool { return n.Hold != nil }

// setHolds holds or releases nodes, all that it can, and returns what failed.
func (a *app) setHolds(ctx context.Context, m marking, words []string, reason string) error {
	nodes, err := a.meantBy(ctx, m, words)
	if err != nil {
		return err
	}
	by := operatorName()
	owned, err := a.asked(func(c *control.Client) error {
		return a.each(nodes, m, func(n string) error {
			return m.ask(c, ctx, n, control.HoldRequest{By: by, Reason: reason})
		})
	})
	if owned || err != nil {
		return err
	}
	if _, err := a.names(nodes...); err != nil {
		return err
	}
	o, err := a.own(ctx, m.word)
	if err != nil {
		return err
	}
	defer o.giveBack()
	return a.each(nodes, m, func(n string) error {
		return m.write(ctx, o.store, o.fence, n, state.Hold{By: by, Reason: reason, At: a.now().UTC()})
	})
}

// meantBy are the nodes that words mean. Plain names need no file of the site, so
// that a node can be held while somebody edits them.
func (a *app) meantBy(ctx context.Context, m marking, words []string) ([]string, error) {
	if plainNames(words) {
		return words, nil
	}
	inv, err := a.names()
	if err != nil {
		return nil, err
	}
	chosen, err := selection.ReadNodes(inv, words)
	if err != nil {
		return nil, err
	}
	site, _, err := a.siteNow(ctx, inv)
	if err != nil {
		return nil, err
	}
	var nodes []string
	for _, n := range site.Nodes {
		if slices.Contains(words, n.Name) || slices.Contains(chosen, n.Name) && m.fits(n) {
			nodes = append(nodes, n.Name)
		}
	}
	if len(nodes) == 0 {
		return nil, errkind.New(errkind.Refused, "none of the %d %s can be %s: see who holds them", len(chosen), pluralOf(len(chosen), "node", "nodes"), m.word).
			Do("`ironrail status` says where each of them stands.")
	}
	return nodes, nil
}

// each does something to every node, says what it has become, and joins what
// failed.
func (a *app) each(nodes []string, m marking, do func(string) error) error {
	var failed error
	done := []string{}
	for _, n := range nodes {
		if err := do(n); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		a.sayf("%s is %s.", n, m.status)
		done = append(done, n)
	}
	if a.json {
		failed = errors.Join(failed, a.printJSON(map[string][]string{m.word: done}))
	}
	return failed
}

// operatorName names who types, for the journal.
func operatorName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "operator"
}
