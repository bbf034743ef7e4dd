// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/internal/errkind"
)

func (a *app) reportPartCommand() *cobra.Command {
	file, mail := "", false
	c := &cobra.Command{
		Use:   "part [NODE|PART...]",
		Short: "Print a page for each part that failed",
		Long: `Print for each part that something was found of what was found and when, what was
measured against which limit, where the part is (rack, unit, port as printed,
cable), serial numbers, what vendors' programs collected, what to do, and a text
for its return to a vendor. Parts are named by their node, or as the report names
them.

--return prints only the text for the return. --from reads a report in JSON, in
place of the state.`,
		Example: "  ironrail report part\n  ironrail report part r01-u09\n  ironrail report part 'r01-u09 rail 3' --return > mail.txt\n  ironrail report part --from acceptance.json",
		Args:    asUsage(cobra.ArbitraryArgs),
		RunE: func(c *cobra.Command, words []string) error {
			write := report.PartsText
			if mail {
				write = report.ReturnsText
			}
			return a.reportParts(c.Context(), file, words, write)
		},
	}
	c.Flags().BoolVar(&mail, "return", false, "only the text for the return")
	c.Flags().StringVar(&file, "from", "", "read the report from this `FILE` (JSON)")
	return c
}

func (a *app) reportParts(ctx context.Context, file string, words []string, write func(io.Writer, report.Input, []string) (int, error)) (err error) {
	var in report.Input
	if file != "" {
		in, err = readReport(file)
	} else {
		in, err = a.makeReport(ctx)
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(report.Failed(in, words))
	}
	count, err := write(a.out, in, words)
	if err == nil && count == 0 && len(words) > 0 {
		err = errkind.New(errkind.NotFound, "nothing was found of %s", strings.Join(words, ", ")).Do("`ironrail report part` lists all parts that something was found of.")
	}
	if err == nil && count == 0 {
		a.sayf("Nothing was found of any part.")
	}
	return err
}
