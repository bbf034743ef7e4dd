// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/report"
)

func (a *app) reportDiffCommand() *cobra.Command {
	beyond := 5.0
	c := &cobra.Command{
		Use:   "diff OLDER NEWER",
		Short: "Say what differs between two reports",
		Long: `Compare two reports in JSON: which nodes stand otherwise or have another serial
number, image, kernel or driver, and which figures moved or have another verdict.
A part that was exchanged is compared with the one that was in its place before.

Exit code 2 when something differs, 0 when nothing does.`,
		Example: "  ironrail report diff accepted.json today.json\n  ironrail report diff --beyond 2 before.json after.json",
		Args:    asUsage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if !(beyond > 0 && beyond <= 100) {
				return wrongUsage(c, fmt.Errorf("--beyond is a percentage above 0, not %g", beyond))
			}
			var in [2]report.Input
			for i, name := range args {
				var err error
				if in[i], err = readReport(name); err != nil {
					return err
				}
			}
			d := report.Diff(in[0], in[1], beyond/100)
			var err error
			if a.json {
				err = a.printJSON(d)
			} else {
				err = d.WriteText(a.out, beyond/100)
			}
			if err == nil && !d.Same() {
				err = exit{exitChanges, nil}
			}
			return err
		},
	}
	c.Flags().Float64Var(&beyond, "beyond", beyond, "a figure has moved when it changed by this `PERCENT` or more")
	return c
}

// readReport reads a report in JSON from a file.
func readReport(name string) (report.Input, error) {
	f, err := openRegular(name)
	if err != nil {
		return report.Input{}, err
	}
	defer f.Close()
	in, err := report.Read(f)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return in, err
}
