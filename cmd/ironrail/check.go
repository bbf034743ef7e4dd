package main

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Load and cross-check the site's files",
		Long: `Load every *.hcl file of the folder and look for mistakes: syntax, types,
references, and things that cannot stand together. All findings are shown at
once, each with its place. No secret is resolved and nothing is contacted.

Exit code 0 without errors, 1 with. --json prints one object with diagnostics
and summary.`,
		Example: "  ironrail check\n  ironrail -C sites/north check --json",
		Args:    usage(cobra.NoArgs),
		RunE:    func(*cobra.Command, []string) error { return a.check() },
	}
}

func (a *app) check() error {
	inv, diags, files := a.loadInventory()
	if a.json {
		if err := a.printJSON(inventory.Report{Diagnostics: diags, Summary: inv.Summary()}); err != nil {
			return err
		}
	} else {
		a.showDiagnostics(diags, files)
	}
	if diags.HasErrors() {
		return exit{code: exitFailed}
	}
	if !a.json {
		writeSummary(a, inv)
	}
	return nil
}

// writeSummary counts what a site without errors holds.
func writeSummary(a *app, inv *inventory.Inventory) {
	s := inv.Summary()
	count := func(n int, one string) string { return fmt.Sprintf("%d %s", n, plural(n, one, one+"s")) }
	var p page
	p.linef("Site %s: %s, %s, %s, %s, %s. No errors.", inv.Site.Name, count(s.Racks, "rack"), count(s.Nodes, "node"),
		count(s.GPUs, "GPU"), plural(s.Switches, "1 switch", fmt.Sprintf("%d switches", s.Switches)), count(s.Cables, "cable"))
	p.to(a.out)
}

// showDiagnostics prints findings with excerpts on standard error.
func (a *app) showDiagnostics(diags inventory.Diagnostics, files inventory.Files) {
	width, _ := terminalSize(a.err)
	// An error here is a closed terminal: there is nobody left to tell.
	_ = diag.WriteText(a.err, diags, files, width)
}

// showHCL prints the diagnostics of stages.
func (a *app) showHCL(diags hcl.Diagnostics, files inventory.Files) {
	if len(diags) == 0 {
		return
	}
	var list inventory.Diagnostics
	list.Import(diags, "plan")
	a.showDiagnostics(list.Sort(), files)
}
