// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/keys"
)

func (a *app) stateCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Read the whole state, or a copy of it, with every checksum",
		Long: `Read the whole state, or FILE, which is a copy of one: every page, every checksum,
every number of the journal, and whether all of it can be decoded. What refers to
something that is not there is said; it is no damage. Exit code 1: it is damaged.`,
		Example: "  ironrail state check\n  ironrail state check /mnt/backup/lab.db",
		Args:    asUsage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s, done, err := a.fileOr(c.Context(), args)
			if err != nil {
				return err
			}
			defer done()
			return a.checkState(c.Context(), s)
		},
	}
}

// fileOr opens the named file, or the site's state when none is named.
func (a *app) fileOr(ctx context.Context, args []string) (*state.Bolt, func(), error) {
	if len(args) == 0 {
		return a.readFile(ctx)
	}
	if err := aFile(args[0]); err != nil {
		return nil, nil, err
	}
	s, err := state.OpenReadOnly(args[0])
	if err != nil {
		return nil, nil, err
	}
	return s, func() { _ = s.Close() }, nil
}

// aFile refuses what is not there, before a folder is made for it.
func aFile(path string) error {
	const action = "Name a copy of the state, such as one of those in .ironrail/backup."
	info, err := os.Stat(path)
	if err != nil {
		return errkind.New(errkind.NotFound, "%v", err).Do(action)
	}
	if !info.Mode().IsRegular() {
		return errkind.New(errkind.Refused, "%s is no regular file", path).Do(action)
	}
	return nil
}

func (a *app) checkState(ctx context.Context, s *state.Bolt) error {
	done := a.during("Reading the state")
	err := s.Check()
	done()
	if err != nil {
		return err
	}
	p, err := s.CountContents(ctx)
	if err != nil {
		return err
	}
	notes, err := s.FindDangling(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			state.Contents
			Notes []string `json:"notes"`
		}{p, append([]string{}, notes...)})
	}
	var out page
	a.picture(&out, p)
	switch {
	case p.Format < 2:
		out.linef("Nothing is damaged, as far as a file of format %d can tell: it has no checksums. The next apply brings it to format %d.", p.Format, state.Format)
	case p.Format < state.Format:
		out.linef("Nothing is damaged: every page, checksum and number was read. The next apply brings it from format %d to %d.", p.Format, state.Format)
	default:
		out.linef("Nothing is damaged: every page, checksum and number was read.")
	}
	for _, n := range notes {
		out.linef("note: %s", n)
	}
	out.to(a.out)
	return nil
}

func (a *app) stateRmCommand() *cobra.Command {
	var approve bool
	c := &cobra.Command{
		Use:   "rm KIND/NAME...",
		Short: "Take objects out of the state",
		Long: `Take objects out of the state. Without the object of a node planning takes the node
as unknown: it is looked at, and it is never installed because of this. What is
removed is written to the journal, with its value. Not while apply runs.`,
		Example: "  ironrail state rm node/n7\n  ironrail state rm step/n7/validate.accept",
		Args:    asUsage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return a.removeObjects(c.Context(), args, approve)
		},
	}
	c.Flags().BoolVar(&approve, "auto-approve", false, "do not ask")
	return c
}

func (a *app) removeObjects(ctx context.Context, args []string, approve bool) error {
	if _, err := a.findState(); err != nil {
		return err
	}
	keys := make([]state.Key, len(args))
	for i, word := range args {
		var err error
		if keys[i], err = keyOf(word); err != nil {
			return err
		}
	}
	o, err := a.own(ctx, "state rm")
	if err != nil {
		return err
	}
	defer o.giveBack()
	var parts []state.Batch
	for _, k := range keys {
		x, err := readObject(ctx, o.store, k)
		if err != nil {
			return err
		}
		what, err := describeRemoval(ctx, o.store, k)
		if err != nil {
			return err
		}
		a.sayf("%s, version %d: %s", k, x.Version, what)
		parts = append(parts, state.Batch{Puts: []state.Put{{Key: k, Want: x.Version}},
			Records: []state.Record{state.Record{Kind: state.Note, Time: a.now().UTC()}.With(state.NewRemoved(x, operatorName()))}})
	}
	if !approve {
		if err := a.promptFor("yes", "Read what is removed, then add --auto-approve."); err != nil {
			return err
		}
	}
	if err := state.AppendParts(ctx, o.store, o.fence, parts...); err != nil {
		return err
	}
	removed := []string{}
	for _, k := range keys {
		a.sayf("%s is removed.", k)
		removed = append(removed, k.String())
	}
	if a.json {
		return a.printJSON(map[string][]string{"removed": removed})
	}
	return nil
}

// describeRemoval says what it means that an object goes.
func describeRemoval(ctx context.Context, r state.Reader, k state.Key) (string, error) {
	switch k.Kind {
	case "node":
		counts := make([]int, 3)
		for i, kind := range []string{"step", "fact", "effect"} {
			os, err := r.Objects(ctx, kind)
			if err != nil {
				return "", err
			}
			for _, o := range os {
				if strings.HasPrefix(o.Key.Name, k.Name+"/") || strings.HasPrefix(o.Key.Name, "node/"+k.Name+"#") {
					counts[i]++
				}
			}
		}
		return fmt.Sprintf("its acceptance, hold and quarantine go with it. It counts as unknown and is not installed because of that; %d steps, %d facts and %d effects of it stay",
			counts[0], counts[1], counts[2]), nil
	case "step":
		return "the step counts as not done: the next plan has it again", nil
	case "fact":
		return "it is learned again where a step learns it", nil
	case "effect":
		return "if its step is repeated, this may be done to the world a second time", nil
	case "identity":
		return "the next apply records the site's name and the fingerprints of its keys anew, whatever they are then", nil
	case "run", "plan":
		return "a run that was stopped can no longer be resumed", nil
	}
	return "what it is for is said by whoever wrote it", nil
}

func (a *app) stateRestoreCommand() *cobra.Command {
	var approve bool
	var keys keyFlags
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a copy in the place of the state",
		Long: `Put a copy in the place of the state. The copy is read first, with every checksum,
and must be of this site's state. What the present state has and the copy has not is
said before anything is done. The replaced file is kept beside it. Not while apply
runs.

What was done to nodes since the copy is not undone: afterwards run
` + "`ironrail plan --refresh`" + `, which looks at them. A run that had not ended in the
copy is not resumed, and a node that runs and was not accepted in it is offered for
adoption.

The keys in FILE.keys.age are put back too when --identity-file,
--passphrase-file or --passphrase is given; those that they replace are kept
beside them.`,
		Example: "  ironrail state restore lab.db --identity-file /root/age.key\n  ironrail state restore .ironrail/backup/daily-2026-03-01.db",
		Args:    asUsage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return a.restore(c.Context(), args[0], approve, keys)
		},
	}
	c.Flags().BoolVar(&approve, "auto-approve", false, "do not ask")
	keys.addRestore(c)
	return c
}

func (a *app) restore(ctx context.Context, copied string, approve bool, f keyFlags) error {
	if err := aFile(copied); err != nil {
		return err
	}
	var withKeys keys.Bundle
	if f.given() {
		var err error
		if withKeys, err = a.readKeys(f, copied+keysSuffix); err != nil {
			return err
		}
	}
	held, err := a.lockState("state restore")
	if err != nil {
		return err
	}
	defer held.Release()
	path := a.statePath()
	p, err := state.VerifyFile(ctx, copied)
	if err != nil {
		return err
	}
	newer, err := state.CompareCopy(ctx, path, copied)
	if err != nil {
		return err
	}
	a.sayf("%s: %d %s, until record %d.", copied, p.Objects["node"], pluralOf(int(p.Objects["node"]), "node", "nodes"), p.Last)
	a.sayNewer(newer)
	if !approve {
		if err := a.promptFor("yes", "Read what is lost, then add --auto-approve."); err != nil {
			return err
		}
	}
	kept, err := a.putBack(ctx, copied)
	if err != nil {
		return err
	}
	if err := a.restoreKeys(withKeys, copied+keysSuffix); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Restored string      `json:"restored"`
			Kept     string      `json:"kept,omitempty"`
			Newer    state.Newer `json:"newer"`
		}{copied, kept, newer})
	}
	a.sayf("The state is that of %s.", copied)
	if kept != "" {
		a.sayf("What it replaced is kept as %s.", kept)
	}
	return nil
}

// sayNewer says what is lost when the copy takes the place of the state.
func (a *app) sayNewer(newer state.Newer) {
	switch {
	case newer.Unknown != "":
		a.sayf("What it replaces cannot be compared: %s", newer.Unknown)
	case newer.Records == 0 && len(newer.Nodes) == 0:
		a.sayf("The present state has nothing that it has not.")
	default:
		a.sayf("The present state has %d %s that it has not.", newer.Records, pluralOf(int(newer.Records), "record", "records"))
		if n := len(newer.Nodes); n > 0 {
			a.sayf("%d %s otherwise now: %s", n, pluralOf(n, "node stands", "nodes stand"), shortenNames(newer.Nodes, 8))
		}
	}
}
