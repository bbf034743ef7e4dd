// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/acceptance"
)

// reportForms are the forms of a report, by the name that --format has for them.
var reportForms = map[string]func(io.Writer, report.Input) error{"text": report.Text, "json": report.JSON, "html": report.HTML, "junit": report.JUnit}

// formOf is the form that the name of a file says; nil: none.
func formOf(file string) func(io.Writer, report.Input) error {
	return reportForms[map[string]string{".txt": "text", ".json": "json", ".html": "html", ".xml": "junit"}[filepath.Ext(file)]]
}

func (a *app) reportCommand() *cobra.Command {
	format := "text"
	c := &cobra.Command{
		Use:   "report",
		Short: "Print what was measured and accepted",
		Long: `Print the acceptance report: which nodes are accepted and on what measurements,
which are not and what to do, how long each part took, and what was not proven.
Every run also writes it to .ironrail/report.txt and report.json.

--format html is one page to read and print, without scripts and other files;
junit is for CI systems: a case for each node and each measurement, in which what
was not judged is skipped, never passed.`,
		Example: "  ironrail report\n  ironrail report --json > acceptance.json\n  ironrail report --format html > acceptance.html\n  ironrail report --format junit > acceptance.xml",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			write := reportForms[format]
			switch {
			case write == nil:
				return wrongUsage(c, fmt.Errorf("--format is text, json, html or junit, not %q", format))
			case a.json && c.Flags().Changed("format") && format != "json":
				return wrongUsage(c, fmt.Errorf("--json and --format %s are two forms", format))
			case a.json:
				write = report.JSON
			}
			return a.report(c.Context(), write)
		},
	}
	c.Flags().StringVar(&format, "format", format, "text, json, html or junit")
	c.AddCommand(a.reportPartCommand(), a.reportDiffCommand(), a.reportKeyCommand(), a.reportSignCommand(), a.reportVerifyCommand())
	return c
}

func (a *app) report(ctx context.Context, write func(io.Writer, report.Input) error) error {
	in, err := a.makeReport(ctx)
	if err != nil {
		return err
	}
	return write(a.out, in)
}

// makeReport makes the report of the site's state.
func (a *app) makeReport(ctx context.Context) (report.Input, error) {
	site, err := a.openRecords()
	if err != nil {
		return report.Input{}, err
	}
	r, closeState, err := a.openReader()
	if err != nil {
		return report.Input{}, err
	}
	defer closeState()
	defer a.during("Reading what was measured")()
	return site.Report(ctx, r, thisVersion(), a.now())
}

// saveReport writes the report of a run that ended. It is no reason to fail.
func (a *app) saveReport(ctx context.Context, site *provision.Site, store state.Reader) {
	in, err := site.Report(ctx, store, thisVersion(), a.now())
	if err == nil {
		err = acceptance.SaveReport(a.stateDir(), in)
	}
	if err != nil {
		a.sayf("warning: report: %s", err)
	}
}
