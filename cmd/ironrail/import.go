// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/vendorlist"
)

func (a *app) importCommand() *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "csv FILE",
		Short: "Make the site's manifest of a vendor's list",
		Long: `Read a vendor's list of what was shipped, a CSV file with whatever headers, and
write the site's manifest: rack, unit, serial, bmc_mac, boot_mac,
factory_password, and uuid and name where the list has them. The usual headers
are recognised; what is ambiguous is asked, or, where nobody can answer, is an
error that lists the columns.

All mistakes of the list are shown at once, with line and column, and nothing is
written unless it is right. A manifest that is there already is compared, and
what changes is shown before it is replaced; columns that were added to it by
hand are kept. Factory passwords go into the manifest, which only its owner can
read, and are never printed.

The HCL that uses the manifest is printed. --json prints one object with columns,
problems, questions, changes and whether the manifest was written.`,
		Example: "  ironrail import csv packing-list.csv\n" +
			"  ironrail -C sites/north import csv list.csv --map rack=Cabinet --map serial='Serial No'\n" +
			"  ironrail import csv list.csv --rack 'Rack 1=r01' --out row-a.csv --force",
		Args: asUsage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return a.importCSV(c, args[0], f) },
	}
	c.Flags().StringVar(&f.out, "out", "manifest.csv", "the manifest, in the site's folder")
	c.Flags().StringArrayVar(&f.columns, "map", nil, "FIELD=HEADER, FIELD=#3 for the third column, or FIELD=- when the list does not have it")
	c.Flags().StringArrayVar(&f.racks, "rack", nil, "NAME-IN-LIST=NAME of a rack that the site calls otherwise")
	c.Flags().StringArrayVar(&f.keep, "keep", nil, "HEADER of a further column that the manifest has too, in small letters")
	c.Flags().BoolVar(&f.missing, "allow-missing", false, "cells may be empty, but for serials")
	c.Flags().BoolVar(&f.force, "force", false, "replace a manifest that differs without asking")
	return groupCommands(&cobra.Command{
		Use:     "import",
		Short:   "Take over what others have written down",
		Long:    "Take over into the site's folder what others have written down.",
		Example: "  ironrail import csv packing-list.csv\n  ironrail import netbox --from saved --node gpu-server=worker",
	}, c, a.importNetboxCommand())
}

type importFlags struct {
	out                  string
	columns, racks, keep []string
	missing, force       bool
}

// importReport is what --json prints.
type importReport struct {
	File      string                `json:"file"`
	Manifest  string                `json:"manifest"`
	Nodes     int                   `json:"nodes"`
	Passwords int                   `json:"factory_passwords"`
	LeftOut   int                   `json:"rows_left_out"`
	Columns   map[string]string     `json:"columns"` // header by field
	Unused    []string              `json:"unused"`
	Problems  []vendorlist.Problem  `json:"problems"`
	Questions []vendorlist.Question `json:"questions"`
	Changes   []vendorlist.Change   `json:"changes"` // from the manifest that was there
	Written   bool                  `json:"written"`
}

func (a *app) importCSV(c *cobra.Command, file string, f importFlags) error {
	asked, racks, err := f.pairs()
	if err != nil {
		return wrongUsage(c, err)
	}
	if !filepath.IsLocal(f.out) {
		return wrongUsage(c, fmt.Errorf("--out %q is outside of the site's folder, where its files cannot read it", f.out))
	}
	list, err := readList(file)
	if err != nil {
		return err
	}
	i := &importing{app: a, answers: bufio.NewReader(a.in), flags: f, list: list, asked: asked, options: vendorlist.Options{AllowMissing: f.missing, Racks: racks, Keep: f.keep},
		report: importReport{File: file, Manifest: f.out, Columns: map[string]string{}, Unused: []string{}, Problems: []vendorlist.Problem{}, Questions: []vendorlist.Question{}, Changes: []vendorlist.Change{}}}
	err = i.run()
	if a.json {
		err = errors.Join(a.printJSON(i.report), err)
	}
	return err
}

// readList reads a vendor's list; the error says the file.
func readList(file string) (*vendorlist.List, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	l, err := vendorlist.Read(raw)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "%s: %w", file, err)
	}
	return l, nil
}

// pairs reads --map and --rack.
func (f importFlags) pairs() (asked map[vendorlist.Field]string, racks map[string]string, err error) {
	asked, racks = map[vendorlist.Field]string{}, map[string]string{}
	var names []string
	for _, x := range vendorlist.Fields() {
		names = append(names, string(x))
	}
	for _, w := range f.columns {
		field, header, ok := strings.Cut(w, "=")
		known := false
		for _, n := range names {
			known = known || n == field
		}
		if !ok || header == "" || !known {
			return nil, nil, fmt.Errorf("--map %q is not FIELD=HEADER; the fields are %s.%s", w, strings.Join(names, ", "), diag.DidYouMean(field, names))
		}
		asked[vendorlist.Field(field)] = header
	}
	for _, w := range f.racks {
		from, to, ok := strings.Cut(w, "=")
		if !ok || from == "" || to == "" {
			return nil, nil, fmt.Errorf("--rack %q is not NAME-IN-LIST=NAME", w)
		}
		racks[from] = to
	}
	return asked, racks, nil
}

// importing is one import.
type importing struct {
	*app
	answers *bufio.Reader
	flags   importFlags
	list    *vendorlist.List
	asked   map[vendorlist.Field]string
	options vendorlist.Options
	report  importReport
}

func (i *importing) run() error {
	mapping, err := i.columns()
	if err != nil {
		return err
	}
	m, problems := i.list.Convert(mapping, i.options)
	i.report.LeftOut = i.list.Left
	if len(problems) > 0 {
		return i.refuse(problems)
	}
	i.report.Nodes, i.report.Passwords = m.Len(), m.Count(vendorlist.FactoryPassword)
	if !i.json {
		i.showColumns()
	}
	path := filepath.Join(i.dir, i.flags.out)
	same, err := i.compare(path, m)
	if err != nil {
		return err
	}
	if same { // but perhaps not as private as it has to be
		err = os.Chmod(path, 0o600)
	} else {
		err = durable.Write(path, m.Bytes(), 0o600)
	}
	if err != nil {
		return err
	}
	i.report.Written = !same
	if !i.json {
		i.showResult(m, same)
	}
	return nil
}

// columns finds the column of each field, asking where there is somebody to ask.
func (i *importing) columns() (vendorlist.Mapping, error) {
	for {
		m, questions, problems := i.list.Columns(i.asked)
		i.report.Questions = append([]vendorlist.Question{}, questions...)
		for f, c := range m {
			i.report.Columns[string(f)] = i.list.Header[c]
		}
		i.report.Unused = i.list.Unused(m, i.flags.keep)
		switch {
		case len(problems) > 0:
			return nil, i.refuse(problems)
		case len(questions) == 0:
			return m, nil
		case i.json || !isTerminal(i.in):
			return nil, i.unanswered(questions)
		}
		if err := i.answer(questions[0]); err != nil {
			return nil, err
		}
	}
}

// changesShown is how many changes are shown one by one.
const changesShown = 40

// compare holds the new manifest against the one that is there; true when they
// are the same. The error says that it may not be replaced.
func (i *importing) compare(path string, m *vendorlist.Manifest) (same bool, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	before, err := vendorlist.ReadManifest(raw)
	if err != nil {
		return false, errkind.New(errkind.Invalid, "%s is there already and cannot be compared: %w", path, err).Do("Move it away, or write another file with --out.")
	}
	m.Keep(before)
	i.report.Changes = m.Changes(before)
	if len(i.report.Changes) == 0 {
		return true, nil
	}
	if !i.json {
		for n, c := range i.report.Changes {
			if n == changesShown {
				i.sayf("and %d more", len(i.report.Changes)-changesShown)
				break
			}
			i.sayf("%s", c)
		}
	}
	return false, i.mayReplace()
}

func (i *importing) mayReplace() error {
	n := len(i.report.Changes)
	what := fmt.Sprintf("%s is there and would change in %d %s", i.flags.out, n, pluralOf(n, "place", "places"))
	switch {
	case i.flags.force:
		return nil
	case i.json || !isTerminal(i.in):
		return errkind.New(errkind.Refused, "%s; nothing was written", what).Do("Read the changes, then add --force.")
	}
	fmt.Fprintf(i.err, "%s. Type \"yes\" to replace it: ", what)
	line, err := i.answers.ReadString('\n')
	if strings.TrimSpace(line) != "yes" || err != nil && !errors.Is(err, io.EOF) {
		return errkind.New(errkind.Refused, "not approved; nothing was written")
	}
	return nil
}
