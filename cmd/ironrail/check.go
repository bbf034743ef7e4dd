package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision"
)

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Load and cross-check the site's files",
		Long: `Load every *.hcl file of the folder and look for mistakes: syntax, types,
references, and things that cannot stand together. All findings are shown at
once, each with its place. No secret is resolved and nothing is contacted.

Exit code 0 without errors, 1 with.`,
		Args: usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.check() },
	}
}

func (a *app) check() error {
	inv, diags, files := inventory.Load(a.dir, inventory.Options{})
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
		s := inv.Summary()
		fmt.Fprintf(a.out, "Site %s: %d racks, %d nodes, %d GPUs, %d switches, %d cables. No errors.\n", inv.Site.Name, s.Racks, s.Nodes, s.GPUs, s.Switches, s.Cables)
	}
	return nil
}

// load loads the site for a command that acts on it: errors end the command,
// warnings are shown.
func (a *app) load() (*provision.Site, inventory.Files, error) {
	inv, diags, files := inventory.Load(a.dir, inventory.Options{})
	if len(diags) > 0 {
		a.showDiagnostics(diags, files)
	}
	if diags.HasErrors() {
		return nil, files, exit{exitFailed, fmt.Errorf("the site has %d errors", diags.Errors())}
	}
	agent, err := agentProgram()
	if err != nil {
		return nil, files, err
	}
	s, err := provision.Open(inv, provision.Options{Environ: a.environ, Agent: agent})
	return s, files, err
}

// agentProgram is the ironrail-agent that lies beside this program.
func agentProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(self), "ironrail-agent"), nil
}

// showDiagnostics prints findings with excerpts on standard error.
func (a *app) showDiagnostics(diags inventory.Diagnostics, files inventory.Files) {
	// An error here is a closed terminal: there is nobody left to tell.
	_ = diag.WriteText(a.err, diags, files, a.width())
}

// showHCL prints the diagnostics of stages.
func (a *app) showHCL(diags hcl.Diagnostics, files inventory.Files) {
	var list inventory.Diagnostics
	list.Import(diags, "plan")
	a.showDiagnostics(list.Sort(), files)
}

// width is that of the terminal that talk goes to.
func (a *app) width() int {
	if f, ok := a.err.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 40 {
			return w
		}
	}
	return 100
}

// isTerminal reports whether a reader or writer is one.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printJSON prints one value as data.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
