// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision/handover/ansible"
)

func (a *app) handoverCommand() *cobra.Command {
	var f handoverFlags
	c := &cobra.Command{
		Use:   "handover [NAME]",
		Short: "Print the files of hand-overs as the last run wrote them",
		Long: `Print the files that hand the accepted nodes over, of one hand-over or of all,
from the verified state. apply writes them to .ironrail/handover and keeps them up
to date: nodes that are drained or fail leave them.

--file prints one file as it is. With --list and --host it is the program of a
dynamic inventory for a hand-over of kind ansible: give Ansible a script of two
lines, the second of which is exec ironrail -C SITE handover NAME "$@".`,
		Example: "  ironrail handover\n  ironrail handover --json | jq -r 'keys[]'\n  mpirun --hostfile <(ironrail handover mpi --file hostfile) ./train\n  ironrail handover inventory --host r01-u01",
		Args:    asUsage(cobra.MaximumNArgs(1)),
		RunE:    func(c *cobra.Command, args []string) error { return a.handover(c, args, f) },
	}
	c.Flags().StringVar(&f.file, "file", "", "print only the `FILE` of that name, without a heading")
	c.Flags().BoolVar(&f.list, "list", false, "print groups and variables as Ansible asks a program for them")
	c.Flags().StringVar(&f.host, "host", "", "print the variables of one `NODE` as Ansible asks a program for them")
	c.MarkFlagsMutuallyExclusive("file", "list", "host")
	return c
}

type handoverFlags struct {
	file, host string
	list       bool
}

// single returns the file that is asked for alone; "" for all.
func (f handoverFlags) single() string {
	if f.list || f.host != "" {
		return ansible.ScriptName
	}
	return f.file
}

// writtenFile is a file of a hand-over; Name is KIND/NAME/FILE.
type writtenFile struct{ handover, name, path string }

func (a *app) handover(c *cobra.Command, args []string, f handoverFlags) error {
	if f.single() != "" && len(args) == 0 {
		return wrongUsage(c, errors.New("say of which hand-over: NAME is missing"))
	}
	files, err := listWritten(filepath.Join(a.stateDir(), "handover"))
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if files, err = filterWritten(files, args[0], f.single()); err != nil {
			return err
		}
	}
	if len(files) == 0 {
		a.sayf("Nothing was handed over yet.")
	}
	content := map[string]string{}
	for _, w := range files {
		b, err := os.ReadFile(w.path)
		if err == nil && f.host != "" {
			b, err = ansible.HostVariables(b, f.host)
		}
		if err != nil {
			return err
		}
		content[w.name] = string(b)
		switch {
		case f.single() != "":
			_, err := a.out.Write(b)
			return err
		case !a.json:
			fmt.Fprintf(a.out, "# %s\n%s\n", w.name, b)
		}
	}
	if a.json {
		return a.printJSON(content)
	}
	return nil
}

// listWritten lists the files of all hand-overs by name.
func listWritten(folder string) (files []writtenFile, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*", "*", "*"))
	for _, p := range paths {
		name, rerr := filepath.Rel(folder, p)
		if rerr != nil {
			return nil, rerr
		}
		if info, serr := os.Stat(p); serr != nil || !info.Mode().IsRegular() {
			err = errors.Join(err, ignoreMissing(serr))
			continue
		}
		files = append(files, writtenFile{filepath.Base(filepath.Dir(p)), name, p})
	}
	return files, err
}

// ignoreMissing returns an error that is not about a file that was replaced meanwhile.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// filterWritten keeps the files of one hand-over, or the one with that name.
func filterWritten(files []writtenFile, name, file string) ([]writtenFile, error) {
	var known, others []string
	var list []writtenFile
	for _, w := range files {
		if !slices.Contains(known, w.handover) {
			known = append(known, w.handover)
		}
		if w.handover != name {
			continue
		}
		if base := filepath.Base(w.name); file == "" || base == file {
			list = append(list, w)
		} else {
			others = append(others, base)
		}
	}
	switch {
	case len(list) > 0:
		return list, nil
	case len(others) > 0:
		return nil, errkind.New(errkind.NotFound, "hand-over %s has no file %s.%s", name, file, diag.DidYouMean(file, others)).Do(fmt.Sprintf("It has %s.", strings.Join(others, ", ")))
	case len(known) > 0:
		return nil, errkind.New(errkind.NotFound, "no file was written for a hand-over %s.%s", name, diag.DidYouMean(name, known)).Do(fmt.Sprintf("Files were written for %s; `ironrail apply` writes them.", strings.Join(known, ", ")))
	}
	return nil, errkind.New(errkind.NotFound, "no file was written for a hand-over %s", name).Do("`ironrail apply` writes the files of accepted nodes.")
}
