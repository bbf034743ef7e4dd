// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/etcd"
	"github.com/ironrail/ironrail/internal/errkind"
)

func (a *app) stateCommand() *cobra.Command {
	return groupCommands(&cobra.Command{
		Use:   "state",
		Short: "Look at, copy and fix what ironrail knows of the site",
		Long: `What ironrail knows of the site lies in .ironrail/state.db: where each node stands,
what was learned of it, how each step ended, and a journal of all that was done.
Losing it never means that a node is installed again: see docs/state.md.

list, show, export, check and backup work while apply runs; they read a copy.`,
		Example: "  ironrail state list\n  ironrail state backup\n  ironrail state check",
	}, a.stateListCommand(), a.stateShowCommand(), a.stateRmCommand(), a.stateBackupCommand(), a.stateRestoreCommand(),
		a.stateExportCommand(), a.stateCompactCommand(), a.stateCheckCommand(), a.stateKeysCommand(), a.stateMoveCommand())
}

// readFile opens the state file for reading, or a copy of it while another process works with
// it, and of a state in etcd as it is there now.
func (a *app) readFile(ctx context.Context) (*state.Bolt, func(), error) {
	dir, err := os.MkdirTemp("", "ironrail-state-")
	if err != nil {
		return nil, nil, err
	}
	done := func() { _ = os.RemoveAll(dir) }
	path := filepath.Join(dir, "state.db")
	owned, err := a.asked(func(c *control.Client) error {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		return errors.Join(c.Snapshot(ctx, f), f.Close())
	})
	if err == nil && !owned {
		path, err = a.ownFile(ctx, path)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	s, err := state.OpenReadOnly(path)
	if err != nil {
		done()
		return nil, nil, err
	}
	if owned {
		a.sayf("The state is in use; this is a copy of now.")
	}
	return s, func() { _ = s.Close(); done() }, nil
}

// ownFile is the path of the state file that no process of this controller owns: copied to
// path where it lies in etcd.
func (a *app) ownFile(ctx context.Context, path string) (string, error) {
	shared, err := a.findState()
	if err != nil {
		return "", err
	}
	if shared != nil {
		_, err := a.copyShared(ctx, *shared, path)
		return path, err
	}
	return a.statePath(), nil
}

// findState is where in etcd the state lies; nil: in the file, which is there, or wherever the process
// of this controller has it that owns it and has its file open.
func (a *app) findState() (*etcd.Config, error) {
	if _, owned, err := control.FindOwner(a.stateDir()); err != nil || owned {
		return nil, err
	}
	shared, err := a.etcd()
	if err != nil || shared != nil {
		return shared, err
	}
	if _, err := os.Stat(a.statePath()); errors.Is(err, fs.ErrNotExist) {
		return nil, a.noState()
	}
	return nil, nil
}

// noState says that nothing was ever done here.
func (a *app) noState() error {
	return errkind.New(errkind.NotFound, "there is no state in %s yet", a.stateDir()).
		Do("`ironrail apply` makes it. With -C another site is looked at.")
}

// stateObject is an object as `state list` prints it.
type stateObject struct {
	Kind    string          `json:"kind"`
	Name    string          `json:"name"`
	Version uint64          `json:"version"`
	Bytes   int             `json:"bytes"`
	Value   json.RawMessage `json:"value,omitempty"`
}

func (a *app) stateListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list [KIND]",
		Short: "List what is in the state, by kind",
		Long: `List the kinds of objects in the state with how many there are, or, of one kind,
every object with its version and size.`,
		Example: "  ironrail state list\n  ironrail state list node\n  ironrail state list fact --json | jq -r '.[].name'",
		Args:    asUsage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s, done, err := a.readFile(c.Context())
			if err != nil {
				return err
			}
			defer done()
			p, err := s.CountContents(c.Context())
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.listKinds(p)
			}
			if p.Objects[args[0]] == 0 {
				return errkind.New(errkind.NotFound, "the state has no objects of kind %q; it has %s", args[0],
					strings.Join(slices.Sorted(maps.Keys(p.Objects)), ", "))
			}
			return a.listObjects(c.Context(), s, args[0])
		},
	}
}

func (a *app) listKinds(p state.Contents) error {
	if a.json {
		return a.printJSON(p)
	}
	var out page
	a.picture(&out, p)
	for _, k := range slices.Sorted(maps.Keys(p.Objects)) {
		out.linef("%-12s %d", k, p.Objects[k])
	}
	out.to(a.out)
	return nil
}

// picture says what a state file is, on one line.
func (a *app) picture(out *page, p state.Contents) {
	out.linef("state %s, format %d, since %s: %d records (%d to %d), %s", p.Lineage, p.Format,
		p.Created.Local().Format(time.DateOnly), p.Records, p.First, p.Last, formatSize(p.Bytes))
}

func (a *app) listObjects(ctx context.Context, s *state.Bolt, kind string) error {
	os, err := s.Objects(ctx, kind)
	if err != nil {
		return err
	}
	list := []stateObject{}
	var out page
	for _, o := range os {
		list = append(list, stateObject{Kind: o.Key.Kind, Name: o.Key.Name, Version: o.Version, Bytes: len(o.Value)})
		out.linef("%-40s version %-8d %s", o.Key.Name, o.Version, formatSize(int64(len(o.Value))))
	}
	if a.json {
		return a.printJSON(list)
	}
	out.to(a.out)
	return nil
}

func (a *app) stateShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show KIND/NAME",
		Short: "Print one object of the state",
		Long: `Print one object of the state, as it is stored, with its version. state list KIND
has the names.`,
		Example: "  ironrail state show node/n7\n  ironrail state show step/n7/install.write --json\n" +
			"  ironrail state show 'fact/node/n7#node.serial'",
		Args: asUsage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			k, err := keyOf(args[0])
			if err != nil {
				return err
			}
			s, done, err := a.readFile(c.Context())
			if err != nil {
				return err
			}
			defer done()
			o, err := readObject(c.Context(), s, k)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(stateObject{k.Kind, k.Name, o.Version, len(o.Value), o.Value})
			}
			return a.showObject(o)
		},
	}
}

func (a *app) showObject(o state.Object) error {
	pretty, err := json.MarshalIndent(o.Value, "", "  ")
	if err != nil {
		return err
	}
	var out page
	out.linef("%s, version %d", o.Key, o.Version)
	for line := range strings.Lines(string(pretty)) {
		out.linef("%s", strings.TrimRight(line, "\n"))
	}
	out.to(a.out)
	return nil
}

// keyOf reads KIND/NAME; a name may hold slashes.
func keyOf(word string) (state.Key, error) {
	kind, name, ok := strings.Cut(word, "/")
	if !ok || kind == "" || name == "" {
		return state.Key{}, exit{exitUsage, fmt.Errorf("%q is not KIND/NAME, such as node/n7 (see `ironrail state list`)", word)}
	}
	return state.Key{Kind: kind, Name: name}, nil
}

// readObject reads an object that has to be there.
func readObject(ctx context.Context, r state.Reader, k state.Key) (state.Object, error) {
	o, ok, err := r.Object(ctx, k)
	if err == nil && !ok {
		err = errkind.New(errkind.NotFound, "the state has no object %s", k).Do("`ironrail state list " + k.Kind + "` has their names.")
	}
	if err == nil {
		o.Value, err = state.WholeValue(ctx, r, o)
	}
	return o, err
}

func (a *app) stateExportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Print everything that is in the state, as JSON lines",
		Long: `Print everything that is in the state, one JSON object a line, to keep it or to
load it into something else. The first line has "state", then come one "record" for
each line of the journal and one "object" for each thing that is known. The same
state gives the same bytes. Nothing of it is secret: no secret is ever in the state.`,
		Example: "  ironrail state export | gzip > site.jsonl.gz\n  ironrail state export | jq -c 'select(.object.kind == \"node\") | .object'",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			s, done, err := a.readFile(c.Context())
			if err != nil {
				return err
			}
			defer done()
			return s.Export(c.Context(), a.out)
		},
	}
}

func (a *app) stateBackupCommand() *cobra.Command {
	var keys keyFlags
	c := &cobra.Command{
		Use:   "backup [FILE]",
		Short: "Copy the state to a file, also while apply runs",
		Long: `Copy the state to FILE (.ironrail/backup/state-TIME.db) and print its name. The copy
is one moment of the state, also while apply runs. It is read back with every
checksum before it gets its name, so that a file that is there is a good one.

With --recipient or a passphrase the controller's keys are written beside it, to
FILE.keys.age, encrypted (age-encryption.org). Without them a controller that has
lost its disk cannot log in to any node.

apply itself keeps one copy of each of the last three days that it ran on in
.ironrail/backup, while the state has less than 64 MiB. Keep copies elsewhere, too.`,
		Example: "  ironrail state backup\n  ironrail state backup /mnt/backup/lab-$(date +%F).db --recipient age1...\n  ironrail state backup lab.db --passphrase-file /root/backup.pass",
		Args:    asUsage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			path := filepath.Join(a.stateDir(), backupFolder, "state-"+a.stamp()+".db")
			if len(args) > 0 {
				path = args[0]
			} else if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			return a.backup(c.Context(), path, keys)
		},
	}
	keys.addBackup(c)
	return c
}

// backupFolder is where copies lie in the state folder.
const backupFolder = "backup"

// stamp names a moment in the name of a file.
func (a *app) stamp() string { return a.now().UTC().Format("20060102T150405") }

// backupPlace refuses to write a copy over the state itself, which would then be
// lost to the process that has it open, or over a file that is no copy.
func (a *app) backupPlace(path string) error {
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && there.Size() == 0 && there.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	if own, err := os.Stat(a.statePath()); err == nil && os.SameFile(own, there) {
		return errkind.New(errkind.Refused, "%s is the state itself, and no place for a copy of it", path).Do("Name another file.")
	}
	if !there.IsDir() && !there.Mode().IsRegular() {
		return errkind.New(errkind.Refused, "%s is no regular file", path).Do("Name another file.")
	}
	if there.IsDir() {
		return errkind.New(errkind.Refused, "%s is a folder", path).Do("Name a file in it.")
	}
	if copied, err := state.IsFile(path); err != nil || copied {
		return err
	}
	return errkind.New(errkind.Refused, "%s is there already and is no copy of a state: it is not overwritten", path).Do("Name another file.")
}

func (a *app) backup(ctx context.Context, path string, keys keyFlags) error {
	if err := a.backupPlace(path); err != nil {
		return err
	}
	var p state.Contents
	owned, err := a.asked(func(c *control.Client) (err error) {
		p, err = state.SaveCopy(ctx, path, func(w io.Writer) error { return c.Snapshot(ctx, w) })
		return err
	})
	if err == nil && !owned {
		var shared *etcd.Config
		if shared, err = a.findState(); err == nil {
			p, err = a.saveCopy(ctx, shared, path)
		}
	}
	if err != nil {
		return err
	}
	kept := ""
	if keys.given() {
		if kept, err = a.backupKeys(keys, path); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(struct {
			File string `json:"file"`
			Keys string `json:"keys,omitempty"`
			state.Contents
		}{path, kept, p})
	}
	if kept == "" {
		a.sayf("The controller's keys are not in it: --recipient or --passphrase-file adds them, encrypted.")
	}
	a.sayf("%d %s until record %d, %s, read back with every checksum.", p.Objects["node"], pluralOf(int(p.Objects["node"]), "node", "nodes"), p.Last, formatSize(p.Bytes))
	var out page
	out.linef("%s", path)
	if kept != "" {
		out.linef("%s", kept)
	}
	out.to(a.out)
	return nil
}
