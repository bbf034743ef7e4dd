package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/report"
	"github.com/ironrail/ironrail/provision/state"
)

func (a *app) reportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report",
		Short: "Print what was measured and accepted",
		Long: `Print the acceptance report: which nodes are accepted and on what measurements,
which are not and what to do, how long each part took, and what was not proven.
Every run also writes it to .ironrail/report.txt and report.json.`,
		Example: "  ironrail report\n  ironrail report --json > acceptance.json",
		Args:    usage(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return a.report(c.Context()) },
	}
}

func (a *app) report(ctx context.Context) error {
	site, _, err := a.look()
	if err != nil {
		return err
	}
	r, closeState, err := a.openReader()
	if err != nil {
		return err
	}
	defer closeState()
	in, err := site.Report(ctx, r, version(), a.now())
	if err != nil {
		return err
	}
	if a.json {
		return report.JSON(a.out, in)
	}
	return report.Text(a.out, in)
}

// saveReport writes the report of a run that ended. It is no reason to fail.
func (a *app) saveReport(ctx context.Context, site *provision.Site, store state.Reader) {
	in, err := site.Report(ctx, store, version(), a.now())
	if err == nil {
		err = site.SaveReport(in)
	}
	if err != nil {
		a.sayf("warning: report: %s", err)
	}
}

func (a *app) handoverCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "handover",
		Short: "Print the scheduler's files as the last run wrote them",
		Long: `Print the files that hand the accepted nodes to their scheduler, from the verified
state. apply writes them to .ironrail/handover and keeps them up to date.`,
		Example: "  ironrail handover\n  ironrail handover --json | jq -r 'keys[]'",
		Args:    usage(cobra.NoArgs),
		RunE:    func(*cobra.Command, []string) error { return a.handover() },
	}
}

func (a *app) handover() error {
	files, err := filepath.Glob(filepath.Join(a.stateDir(), "handover", "*", "*", "*"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		a.sayf("Nothing was handed over yet.")
	}
	content := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(filepath.Join(a.stateDir(), "handover"), f)
		if err != nil {
			return err
		}
		content[name] = string(b)
		if !a.json {
			fmt.Fprintf(a.out, "# %s\n%s\n", name, b)
		}
	}
	if a.json {
		return a.printJSON(content)
	}
	return nil
}
