// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/fabric/topology"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/provision/gaps"
)

func (a *app) checkCommand() *cobra.Command {
	var strict bool
	var explain string
	c := &cobra.Command{
		Use:   "check [--explain [NAME...]]",
		Short: "Load and cross-check the site's files",
		Long: `Load every *.hcl file of the folder and look for mistakes: syntax, types,
references, and things that cannot stand together. All findings are shown at
once, each with its place. No secret is resolved and nothing is contacted.

--explain NAME prints the page of a check: what it finds, why, where the rule
comes from, and how to fix it. Without a name it lists the checks, with that of
an area (power, cable, driver) those of the area. No site is read for it.

What the files ask for and this version does not do as asked is listed as well:
what plan refuses, what has no effect, what is not built or mirrored yet, and what
a rehearsal replaces or leaves out. A setting without effect, or that plan refuses,
is a warning.

Exit code 0 without errors, 1 with; --strict counts warnings as errors. --json
prints one object with diagnostics, summary and gaps.`,
		Example: "  ironrail check\n  ironrail -C sites/north check --json\n  ironrail check --explain power.feed-loss",
		Args: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("explain") {
				return asUsage(cobra.NoArgs)(c, args)
			}
			return nil
		},
		ValidArgsFunction: a.completeChecks,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("explain") {
				return a.explain(explainNames(explain, args))
			}
			return a.check(strict)
		},
	}
	c.Flags().BoolVar(&strict, "strict", false, "exit 1 on warnings too")
	c.Flags().StringVar(&explain, "explain", "", "print the pages of these checks; without a name, list all")
	c.Flags().Lookup("explain").NoOptDefVal = explainArgs
	return c
}

func (a *app) check(strict bool) error {
	inv, diags, files := a.loadInventory()
	t := countFindings(inv, diags)
	report, shown := checkJSON{Report: inventory.Report{Diagnostics: diags, Summary: t.Summary}}, diags
	if !diags.HasErrors() {
		report.Gaps, shown = a.gapsOf(inv), withoutGaps(diags)
	}
	if a.json {
		if err := a.printJSON(report); err != nil {
			return err
		}
	} else {
		a.showDiagnostics(shown, files)
		a.hintExplain(diags)
	}
	if diags.HasErrors() {
		return exit{code: exitFailed}
	}
	if !a.json {
		writeSummary(a, inv, t, len(diags))
		showGaps(a.out, report.Gaps)
	}
	if strict && len(diags) > 0 {
		return exit{code: exitFailed}
	}
	return nil
}

// checkJSON is what `check --json` prints.
type checkJSON struct {
	inventory.Report
	Gaps gaps.List `json:"gaps"` // empty while there are errors
}

// tally is a site in numbers.
type tally struct {
	inventory.Summary
	feeds   []power.Feed
	fabrics []topology.Counts // of the site's fabrics, in their order
}

// countFindings counts a site. Of one that is complete the power is that of its supplies
// one by one, with power shelves, and its fabrics are counted.
func countFindings(inv *inventory.Inventory, diags inventory.Diagnostics) tally {
	t := tally{Summary: inv.Summary()}
	if diags.HasErrors() {
		return t
	}
	t.feeds = power.New(inv).Feeds
	t.Power = make(map[string]inventory.FeedPower, len(t.feeds))
	for _, f := range t.feeds {
		t.Power[f.Name] = inventory.FeedPower{TypicalWatts: float64(f.Load.Typical), MaxWatts: float64(f.Load.Max)}
	}
	for _, f := range inv.Fabrics {
		c := topology.CountFabric(inv, f)
		t.fabrics = append(t.fabrics, c)
		t.Fabrics = append(t.Fabrics, inventory.FabricCounts{
			Name: f.Name, Kind: f.Kind, Topology: f.Topology, Nodes: c.Nodes, Leaves: c.Leaves, Spines: c.Spines, Cores: c.Cores,
			NodeCables: c.NodeCables, SwitchCables: c.LeafSpine + c.SpineCore, Oversubscription: math.Round(c.Ratio*100) / 100,
		})
	}
	return t
}

// hintExplain says once where more is written about what was found.
func (a *app) hintExplain(diags inventory.Diagnostics) {
	if len(diags) == 0 {
		return
	}
	first := diags[0]
	if i := slices.IndexFunc(diags, func(d inventory.Diagnostic) bool { return d.Severity == diag.Error }); i >= 0 {
		first = diags[i]
	}
	a.sayf("hint: `ironrail check --explain %s` says why and how to fix", first.Check)
}

// writeSummary counts what a site without errors holds, what its feeds carry, and
// what its fabrics are, with their over-subscription (speed down to nodes by speed
// up, of the worst leaf).
func writeSummary(a *app, inv *inventory.Inventory, t tally, warnings int) {
	count := func(n int, one string) string { return fmt.Sprintf("%d %s", n, pluralOf(n, one, one+"s")) }
	found := "No errors."
	if warnings > 0 {
		found = fmt.Sprintf("No errors, %s.", count(warnings, "warning"))
	}
	var p page
	p.linef("Site %s: %s, %s, %s, %s, %s. %s", inv.Site.Name, count(t.Racks, "rack"), count(t.Nodes, "node"),
		count(t.GPUs, "GPU"), pluralOf(t.Switches, "1 switch", fmt.Sprintf("%d switches", t.Switches)), count(t.Cables, "cable"), found)
	for _, f := range t.feeds {
		limit := ""
		if f.Limit > 0 {
			limit = ", of " + formatKilowatts(f.Limit)
		}
		p.linef("Feed %s: %s typically, %s at most%s.", f.Name, formatKilowatts(f.Load.Typical), formatKilowatts(f.Load.Max), limit)
	}
	for i, f := range inv.Fabrics {
		if c := t.fabrics[i]; c.NodeCables > 0 {
			p.linef("Fabric %s: %s.", f.Name, c)
		}
	}
	p.to(a.out)
}

// formatKilowatts shows a power to the nearest watt below ten kilowatts, and to a tenth
// of a kilowatt above.
func formatKilowatts(w unit.Watts) string {
	if w < 10_000 {
		return unit.Watts(math.Round(float64(w))).String()
	}
	return fmt.Sprintf("%.1fkW", w/1000)
}

// showDiagnostics prints findings with excerpts on standard error.
func (a *app) showDiagnostics(diags inventory.Diagnostics, files inventory.Files) {
	width, _ := terminalSize(a.err)
	// An error here is a closed terminal: there is nobody left to tell.
	_ = diag.WriteText(a.err, diags, files, width)
}

// showHCL prints the diagnostics of stages, and returns them as those of a check.
func (a *app) showHCL(diags hcl.Diagnostics, files inventory.Files) (list inventory.Diagnostics) {
	if len(diags) == 0 {
		return nil
	}
	list.Import(diags, "plan")
	list = list.Sort()
	a.showDiagnostics(list, files)
	return list
}
