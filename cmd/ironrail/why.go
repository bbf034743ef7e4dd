// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/internal/fold"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/selection"
	"github.com/ironrail/ironrail/provision/status"
)

// whyFlags are the options of one `ironrail why`.
type whyFlags struct{ offline, ask, all bool }

func (a *app) whyCommand() *cobra.Command {
	var f whyFlags
	c := &cobra.Command{
		Use:   "why [NODE... | SWITCH | FINDING]",
		Short: "Say why a node is not up or a switch not right; what to do",
		Long: `Say first why the node is not up or what it waits for, since when, whether that
is late for its hardware, the most likely cause and the next action. Then tell
what happened, from all sources in one list: the journal, the boot services, the
event log of its BMC; what was not started, and where the node is. Works while
apply runs and afterwards.

Without a node, or with several, one line for each group of nodes that are not up
for the same reason, and what the run found about the site and no node. Nodes are
named as for plan --target: r01-u09, 'r01-*', rack.r01, role.worker.

What is known is printed at once. Then, while a run is active and the node is not
up, its BMC is asked once for power, boot progress and event log, and its PDUs when
it has no power or is silent for 3 seconds, all in 10 seconds at most; the answer is
the last part. Ctrl-C ends the wait with exit code 130. --offline leaves them in
peace. Without a run nothing is asked unless --ask is given. Switches are never
asked: what is told of their ports is what the node heard.

A switch is named as net/leaf-1, or leaf-1 where there is one of that name, and a
port of it as net/leaf-1/17: what its own step found when it was configured, what
other steps found about it or its cables, and what was read or swept last.

A finding is named as the end of a run names it, such as f-k2q9va: what is alike
has the same name in every run. All that was seen of each is shown, by which step,
and what to do.

--json prints one object, after those 10 seconds at most: answer, lines (what
happened), and the details in node, place, steps, effects, skipped, active, waiting,
evidence, refused and look; for several nodes: groups. Of a switch it has answer,
lines, and the details in steps, suspect, near, read, sweep and cables. Of a finding
it has id and findings.`,
		Example: "  ironrail why n7\n  ironrail why\n  ironrail why rack.r01\n  ironrail why n7 --ask\n  ironrail why n7 --json | jq .answer\n  ironrail why net/leaf-1",
		Args:    asUsage(cobra.ArbitraryArgs), ValidArgsFunction: a.completeWordsAndSwitches,
		RunE: func(c *cobra.Command, args []string) error {
			if f.offline && f.ask {
				return wrongUsage(c, errors.New("--ask and --offline contradict each other"))
			}
			return a.whyOf(c.Context(), args, f)
		},
	}
	c.Flags().BoolVar(&f.offline, "offline", false, "ask no BMC and no PDU")
	c.Flags().BoolVar(&f.ask, "ask", false, "ask BMC and PDUs although no run is active")
	c.Flags().BoolVar(&f.all, "all", false, "show all that happened, however long ago")
	return c
}

// whyOf tells of one node, or of many in groups.
func (a *app) whyOf(ctx context.Context, words []string, f whyFlags) error {
	inv, err := a.names()
	if err != nil {
		return err
	}
	if len(words) == 1 {
		if reported, err := a.whyFinding(ctx, inv, words[0]); reported || err != nil {
			return err
		}
		if reported, err := a.whySwitch(ctx, inv, words[0], f); reported || err != nil {
			return err
		}
	}
	names, err := selection.ReadNodes(inv, words)
	if err != nil {
		return err
	}
	if len(words) == 1 && len(names) == 1 {
		return a.whyNode(ctx, inv, names[0], f)
	}
	site, _, err := a.siteNow(ctx, inv)
	if err != nil {
		return err
	}
	return a.writeGroups(why.SummariseNodes(site), names, status.ListTraits(inv), site.Findings)
}

// siteNow is where all nodes stand: as the owner says, or as the state has it.
func (a *app) siteNow(ctx context.Context, inv *inventory.Inventory) (why.Site, *control.Identity, error) {
	return a.onRecord(inv).Standings(ctx)
}

// writeGroups shows nodes by what they have in common, nil names are all, and what was
// found about the site.
func (a *app) writeGroups(all []why.NodeSummary, names []string, traits why.Traits, findings []stage.Finding) error {
	in := map[string]bool{}
	for _, n := range names {
		in[n] = true
	}
	var chosen []why.NodeSummary
	up := 0
	for _, b := range all {
		if names == nil || in[b.Node] {
			chosen = append(chosen, b)
			if b.Up {
				up++
			}
		}
	}
	groups := why.GroupNodes(chosen, traits)
	if a.json {
		return a.printJSON(struct {
			Nodes  int         `json:"nodes"`
			Up     int         `json:"up"`
			Groups []why.Group `json:"groups"`

			Findings []stage.Finding `json:"findings,omitempty"`
		}{len(chosen), up, append([]why.Group{}, groups...), findings})
	}
	var p page
	p.linef("%d of %d %s up.", up, len(chosen), pluralOf(len(chosen), "node is", "nodes are"))
	for _, g := range groups {
		p.linef("")
		p.linef("%d %s: %s", len(g.Nodes), g.Status, fold.Names(g.Nodes))
		p.linef("  %s", g.Text)
		if g.Shared != "" {
			p.linef("  %s", g.Shared)
		}
		if g.Action != "" {
			p.linef("  next: %s", g.Action)
		}
		if g.Finding != "" {
			p.linef("  seen: `ironrail why %s` shows it, of each node", g.Finding)
		}
	}
	p.ofSite(findings)
	p.to(a.out)
	return nil
}
