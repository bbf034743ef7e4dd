// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/draw"
	"github.com/ironrail/ironrail/draw/svg"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/fabric/cable"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/power"
)

// drawing is what a draw command was asked for.
type drawing struct {
	out           string
	rear, serials bool
	labels, bill  bool
	each          bool   // draw racks that are alike one by one
	standing      bool   // colour nodes by how they stand
	report        string // a report in JSON that says how they stood
}

func (a *app) drawCommand() *cobra.Command {
	var o drawing
	c := &cobra.Command{
		Use:   "draw",
		Short: "Draw the site: racks, rows, power, fabrics",
		Long: `Draw the site as it is written: without a word, all of it as one HTML page that
is printed on A3, with the bill of cables; else one kind of drawing as SVG.
The page loads nothing and runs no script.

A site with errors of check is drawn as far as its files are understood, and
says on each sheet that it has errors: look at what is wrong, do not build it.

--standing colours the nodes by how they stand: by the state of the site, or what a
rehearsal that was kept left. --report FILE colours them by a report in JSON.

--json prints the numbers that are drawn, of the whole site.`,
		Example: "  ironrail draw --out site.html\n  ironrail draw rack r01 r02 --out racks.svg\n  ironrail draw power > power.svg",
		Args:    asUsage(cobra.ArbitraryArgs),
	}
	add := func(sub *cobra.Command, sheets func(*draw.Drawing, []string) ([]svg.Sheet, error)) *cobra.Command {
		sub.RunE = func(c *cobra.Command, names []string) error { return a.draw(c.Context(), o, names, sheets) }
		c.AddCommand(sub)
		return sub
	}
	all := add(&cobra.Command{Use: "all", Short: "All of it as one HTML page", Args: asUsage(cobra.NoArgs),
		Long:    "Draw the hall, rows, racks, power and fabrics, as `ironrail draw` alone does.",
		Example: "  ironrail draw all --out site.html"}, nil)
	rack := add(&cobra.Command{Use: "rack [NAME...]", Short: "Elevations of racks", Args: asUsage(cobra.ArbitraryArgs),
		Long:    "Draw racks unit by unit, those that are named; else all, with those that are alike\ndrawn once. With --rear from behind.",
		Example: "  ironrail draw rack r01 --rear --serials > r01.svg"}, drawRacks)
	row := add(&cobra.Command{Use: "row [NAME...]", Short: "The racks of a row side by side", Args: asUsage(cobra.ArbitraryArgs),
		Long:    "Draw the racks of rows side by side, of all rows when none is named.",
		Example: "  ironrail draw row A --out row-a.svg"}, drawRows)
	hall := add(&cobra.Command{Use: "hall", Short: "The plan of the hall, a tile a rack", Args: asUsage(cobra.NoArgs),
		Long:    "Draw the hall from above: its rows, with a tile for each rack.",
		Example: "  ironrail draw hall > hall.svg"},
		func(d *draw.Drawing, _ []string) ([]svg.Sheet, error) { return d.Hall(), nil })
	add(&cobra.Command{Use: "power [RACK...]", Short: "Feeds, PDUs, phases, and the order of switching on", Args: asUsage(cobra.ArbitraryArgs),
		Long:    "Draw what feeds, PDUs and phases carry and in which order things are switched on,\nof all racks when none is named.",
		Example: "  ironrail draw power r01 r02 --out power.svg"}, drawPower)
	fabric := add(&cobra.Command{Use: "fabric [NAME...]", Short: "Maps of fabrics", Args: asUsage(cobra.ArbitraryArgs),
		Long:    "Draw the switches of fabrics and what connects them, of all when none is named.",
		Example: "  ironrail draw fabric compute > compute.svg"}, drawFabrics)
	c.AddCommand(a.drawCablesCommand(&o))
	c.PersistentFlags().StringVar(&o.out, "out", "", "file to write, .svg or .html by its name; without it standard output")
	for _, sub := range []*cobra.Command{c, all, rack, row, hall} {
		sub.Flags().BoolVar(&o.rear, "rear", false, "see racks from the rear")
	}
	o.addStanding(c, all, rack, row, hall, fabric)
	for _, sub := range []*cobra.Command{c, all, rack} {
		sub.Flags().BoolVar(&o.each, "each", false, "draw racks that are alike one by one, each with its names")
		sub.Flags().BoolVar(&o.serials, "serials", false, "write the serials of nodes")
	}
	c.SuggestionsMinimumDistance = 2
	c.RunE = func(c *cobra.Command, args []string) error { return a.drawAll(c, o, args) }
	return c
}

// drawAll draws the whole site, for draw without the word of a drawing.
func (a *app) drawAll(c *cobra.Command, o drawing, args []string) error {
	if len(args) > 0 {
		return wrongUsage(c, fmt.Errorf("unknown command %q%s", args[0], suggestNames(c.SuggestionsFor(args[0]))))
	}
	return a.draw(c.Context(), o, nil, nil)
}

// addStanding adds the flags that colour nodes by how they stand.
func (o *drawing) addStanding(to ...*cobra.Command) {
	for _, c := range to {
		c.Flags().BoolVar(&o.standing, "standing", false, "colour nodes by how they stand now")
		c.Flags().StringVar(&o.report, "report", "", "colour nodes by a report in JSON, a `FILE`")
	}
}

func (a *app) drawCablesCommand(o *drawing) *cobra.Command {
	c := &cobra.Command{
		Use:   "cables",
		Short: "The cables as CSV: schedule, labels, bill",
		Long: `Print the cables of the site as CSV: a row for each cable with its ends, its
type, the length to order and its rail. --labels prints what is printed, a row
for each plug; --bill what is ordered. The CSV is the data: --json is refused.`,
		Example: "  ironrail draw cables > schedule.csv\n  ironrail draw cables --bill --out bill.csv",
		Args:    asUsage(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return a.drawCables(c, *o) },
	}
	c.Flags().BoolVar(&o.labels, "labels", false, "a row for each plug, for the label printer")
	c.Flags().BoolVar(&o.bill, "bill", false, "the bill of materials: cables, optics and spares")
	return c
}

// drawable loads the site for drawings: one with errors as far as its files mean
// something.
func (a *app) drawable() (*inventory.Inventory, int, error) {
	inv, diags, files := a.loadInventory()
	if !diags.HasErrors() {
		return inv, 0, nil
	}
	a.showDiagnostics(diags, files)
	if !inventory.Complete(diags) {
		return nil, 0, hasErrors(diags)
	}
	a.sayf("The site is drawn with its %d %s.", diags.Errors(), pluralOf(diags.Errors(), "error", "errors"))
	return inv, diags.Errors(), nil
}

// draw draws what sheets says; all of the site without it.
func (a *app) draw(ctx context.Context, o drawing, names []string, sheets func(*draw.Drawing, []string) ([]svg.Sheet, error)) error {
	html, err := o.page(sheets == nil)
	if err != nil && !a.json { // numbers are written to any file
		return err
	}
	inv, errs, err := a.drawable()
	if err != nil {
		return err
	}
	side := draw.Front
	if o.rear {
		side = draw.Rear
	}
	opt := draw.Options{Side: side, Serials: o.serials, Each: o.each, Errors: errs}
	if opt.Nodes, opt.Of, err = a.marks(ctx, o); err != nil {
		return err
	}
	d := draw.New(inv, power.New(inv), opt)
	var list []svg.Sheet
	if sheets != nil {
		if list, err = sheets(d, names); err != nil {
			return err
		}
	}
	if a.json {
		return o.write(a, func(w io.Writer) error { return (&app{out: w}).printJSON(d.Numbers()) })
	}
	if html {
		var bill []cable.Item
		if sheets == nil {
			list, bill = d.All(), cable.CountBill(cable.ListRuns(inv))
		}
		return o.write(a, func(w io.Writer) error { return d.HTML(w, list, bill) })
	}
	return o.write(a, func(w io.Writer) error { return svg.WriteSheets(w, "Site "+inv.Site.Name, list, d.Defs()) })
}

// marks returns how nodes stand and what says so, where that is to be drawn.
func (a *app) marks(ctx context.Context, o drawing) (marks map[string]draw.Mark, of string, err error) {
	switch {
	case o.report != "" && o.standing:
		return nil, "", exit{exitUsage, errors.New("--standing and --report: one at a time")}
	case o.report != "":
		in, err := readReport(o.report)
		if err != nil {
			return nil, "", err
		}
		marks = map[string]draw.Mark{}
		for _, n := range in.Nodes {
			marks[n.Name] = markOf(n)
		}
		return marks, "report of " + in.At.UTC().Format("2006-01-02 15:04"), nil
	case o.standing:
		s, err := a.status(ctx)
		if err != nil {
			return nil, "", err
		}
		marks = map[string]draw.Mark{}
		for _, n := range s.Where {
			text := string(n.Status)
			if n.Cause != "" && !n.Up {
				text += ": " + n.Cause
			}
			marks[n.Node] = draw.Mark{Standing: standingOf(n), Text: text}
		}
		of = "state of " + a.now().UTC().Format("2006-01-02 15:04")
		if s.Rehearsal {
			of = "rehearsed"
		}
	}
	return marks, of, nil
}

// markOf is a node as a report has it.
func markOf(n report.Node) draw.Mark {
	m := draw.Mark{Standing: draw.Waiting, Text: n.Status.String()}
	switch n.Status {
	case report.Accepted, report.Adopted:
		m.Standing = draw.Good
	case report.Quarantined, report.NotAccepted:
		m.Standing = draw.Bad
		if len(n.Findings) > 0 {
			m.Text += ": " + n.Findings[0].Part
		}
	}
	return m
}

// standingOf is how a node is drawn by how it stands.
func standingOf(n why.NodeSummary) draw.Standing {
	switch n.Status {
	case why.Accepted, why.Adopted:
		return draw.Good
	case why.Quarantined, why.Late, why.Cut:
		return draw.Bad
	case why.Working:
		return draw.Working
	case why.Untouched:
		return draw.Unknown
	}
	return draw.Waiting
}

// page reports whether an HTML page is wanted, by the name of the file.
func (o drawing) page(all bool) (bool, error) {
	switch strings.ToLower(filepath.Ext(o.out)) {
	case ".html", ".htm":
		return true, nil
	case ".svg":
		if all {
			return false, exit{exitUsage, errors.New("the whole site is an HTML page: name a file that ends in .html, or say which drawing")}
		}
		return false, nil
	case "":
		if o.out == "" {
			return all, nil
		}
	}
	return false, exit{exitUsage, fmt.Errorf("--out %q: a drawing is written to a file that ends in .svg or .html", o.out)}
}

// write writes to the file that was named, or to standard output. A file appears
// whole or not at all.
func (o drawing) write(a *app, fill func(io.Writer) error) error {
	if o.out == "" {
		return fill(a.out)
	}
	defer a.during("Drawing")()
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return err
	}
	temp := o.out + ".new"
	if err := os.WriteFile(temp, b.Bytes(), 0o644); err != nil {
		return err
	}
	if err := os.Rename(temp, o.out); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	a.sayf("Wrote %s, %s.", o.out, sizeOf(b.Len()))
	return nil
}

// sizeOf is the size of a file in words.
func sizeOf(n int) string {
	if n < 1_000_000 {
		return fmt.Sprintf("%dkB", (n+999)/1000)
	}
	return fmt.Sprintf("%.1fMB", float64(n)/1e6)
}

func (a *app) drawCables(c *cobra.Command, o drawing) error {
	if a.json {
		return wrongUsage(c, errors.New("cables are printed as CSV, not as JSON"))
	}
	if o.labels && o.bill {
		return wrongUsage(c, errors.New("--labels and --bill are two files: ask for one at a time"))
	}
	if ext := filepath.Ext(o.out); o.out != "" && ext != ".csv" {
		return wrongUsage(c, fmt.Errorf("--out %q: cables are written to a file that ends in .csv", o.out))
	}
	inv, _, err := a.drawable()
	if err != nil {
		return err
	}
	runs := cable.ListRuns(inv)
	return o.write(a, func(w io.Writer) error {
		switch {
		case o.labels:
			return cable.WriteLabels(w, runs)
		case o.bill:
			return cable.WriteBill(w, cable.CountBill(runs))
		default:
			return cable.WriteSchedule(w, runs)
		}
	})
}

func drawRacks(d *draw.Drawing, names []string) ([]svg.Sheet, error) {
	return d.Racks(names...), missingName("rack", names, d.RackNames())
}

func drawPower(d *draw.Drawing, names []string) ([]svg.Sheet, error) {
	return d.Power(names...), missingName("rack", names, d.RackNames())
}

func drawRows(d *draw.Drawing, names []string) ([]svg.Sheet, error) {
	return d.Rows(names...), missingName("row", names, d.RowNames())
}

func drawFabrics(d *draw.Drawing, names []string) ([]svg.Sheet, error) {
	return d.Maps(names...), missingName("fabric", names, d.FabricNames())
}

// missingName reports the names that the site does not have.
func missingName(what string, names, all []string) error {
	var errs error
	for _, n := range names {
		if !slices.Contains(all, n) {
			errs = errors.Join(errs, errkind.New(errkind.NotFound, "%q is not a %s of this site.%s", n, what, diag.DidYouMean(n, all)))
		}
	}
	return errs
}
