// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/language"
)

func (a *app) fmtCommand() *cobra.Command {
	var f formatting
	c := &cobra.Command{
		Use:   "fmt [FILE...]",
		Short: "Give the site's files their usual form",
		Long: `Indent and align the *.hcl files of the site, and of the modules that it uses, and
list those that changed. Only spaces change, never a word. With files, only those;
"-" reads standard input and writes standard output, for editors.

A file with a mistake in its syntax is shown and left as it is. *.hcl.json files
are not touched.

Exit code 1 when a file cannot be read or parsed, and with --check when one is not
in its usual form.`,
		Example: "  ironrail fmt\n  ironrail fmt --check --diff\n  ironrail fmt - < racks.hcl",
		Args:    asUsage(cobra.ArbitraryArgs),
		RunE:    func(_ *cobra.Command, args []string) error { return a.format(f, args) },
	}
	c.Flags().BoolVar(&f.check, "check", false, "change nothing; exit 1 when a file is not in its usual form")
	c.Flags().BoolVar(&f.diff, "diff", false, "change nothing; show what would change")
	return c
}

// formatting is one run of fmt.
type formatting struct {
	check, diff bool
	changed     []string
	diags       inventory.Diagnostics
	files       inventory.Files
}

// formatted is what `fmt --json` prints.
type formatted struct {
	Changed     []string              `json:"changed"` // or, with --check and --diff, to be changed
	Diagnostics inventory.Diagnostics `json:"diagnostics"`
}

func (a *app) format(f formatting, args []string) error {
	f.files, f.changed = inventory.Files{}, []string{}
	if len(args) == 1 && args[0] == "-" {
		return a.formatInput(&f)
	}
	root, err := os.OpenRoot(a.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	names := args
	if len(args) == 0 {
		if names, err = siteFiles(root.FS()); err != nil {
			return err
		}
	}
	var failed []error
	for _, name := range names {
		if err := a.formatFile(&f, root, name); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(append(failed, a.formatResult(&f))...)
}

// siteFiles are the *.hcl files of a site and of the modules that it uses.
func siteFiles(site fs.FS) ([]string, error) {
	var names []string
	for _, dir := range append([]string{"."}, language.ListModules(site)...) {
		found, err := fs.Glob(site, path.Join(escapeGlob(dir), "*.hcl"))
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if !strings.HasPrefix(path.Base(name), ".") {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil, errors.New("the folder has no *.hcl file; -C DIR names another folder")
	}
	return names, nil
}

// escapeGlob returns a folder as a pattern that means just this folder.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// formatFile formats one file; what is wrong with its syntax goes to f.diags.
func (a *app) formatFile(f *formatting, root *os.Root, name string) error {
	if !strings.HasSuffix(name, ".hcl") {
		return fmt.Errorf("%s is no *.hcl file", name)
	}
	src, err := language.ReadFile(root.FS(), filepath.ToSlash(filepath.Clean(name)), maxFormatted)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	out, ok := f.usual(name, src)
	if !ok || bytes.Equal(src, out) {
		return nil
	}
	f.changed = append(f.changed, name)
	if f.diff && !a.json {
		if _, err := a.out.Write(diff.Diff(name, src, name+" (formatted)", out)); err != nil {
			return err
		}
	}
	if f.check || f.diff {
		return nil
	}
	return replaceFile(filepath.Join(a.dir, name), out)
}

// maxFormatted is the largest file that is formatted, in bytes: as large as any
// that is loaded.
const maxFormatted = 16 << 20

// usual is a source in its usual form; false when it cannot be parsed.
func (f *formatting) usual(name string, src []byte) ([]byte, bool) {
	out, found := language.Format(name, src)
	if found.HasErrors() {
		f.diags = append(f.diags, found...)
		f.files[name] = src
		return nil, false
	}
	return out, true
}

// formatInput formats standard input.
func (a *app) formatInput(f *formatting) error {
	src, err := io.ReadAll(io.LimitReader(a.in, maxFormatted+1))
	if err != nil {
		return err
	}
	if len(src) > maxFormatted {
		return fmt.Errorf("standard input is larger than %d bytes", maxFormatted)
	}
	out, ok := f.usual("<stdin>", src)
	switch {
	case !ok:
		a.showDiagnostics(f.diags, f.files)
		return exit{code: exitFailed}
	case f.diff:
		out = diff.Diff("<stdin>", src, "<stdin> (formatted)", out)
	case f.check:
		if !bytes.Equal(src, out) {
			return exit{code: exitFailed}
		}
		return nil
	}
	_, err = a.out.Write(out)
	return err
}

// formatResult lists the files that changed, or should.
func (a *app) formatResult(f *formatting) error {
	if a.json {
		if err := a.printJSON(formatted{f.changed, f.diags.Sort()}); err != nil {
			return err
		}
	} else {
		a.showDiagnostics(f.diags.Sort(), f.files)
	}
	if !a.json && !f.diff {
		var p page
		for _, name := range f.changed {
			p.linef("%s", name)
		}
		p.to(a.out)
	}
	if f.diags.HasErrors() || f.check && len(f.changed) > 0 {
		return exit{code: exitFailed}
	}
	return nil
}

// replaceFile writes a file whole or not at all, with the mode that it had; of a
// symbolic link, the file that it leads to. What is no regular file, such as
// /dev/stdout, is written to as it is.
func replaceFile(name string, data []byte) error {
	return replaceWith(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
