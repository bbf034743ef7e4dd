// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// lockState owns the state folder while the file itself is closed.
func (a *app) lockState(command string) (*control.Owner, error) {
	held, err := control.AcquireFolder(a.stateDir(), command, a.now())
	if errkind.Of(err) == errkind.Refused {
		return nil, exit{exitOwned, err}
	}
	return held, err
}

// noteState writes to the journal what was done to the file.
func (a *app) noteState(ctx context.Context, held *control.Owner, text string) error {
	s, err := state.Open(a.statePath())
	if err != nil {
		return err
	}
	defer s.Close()
	f, err := s.Claim(ctx, held.String())
	if err == nil {
		_, err = s.Append(ctx, f, state.Batch{Records: []state.Record{state.Record{Kind: state.Note, Time: a.now().UTC()}.With(text)}})
	}
	return err
}

func (a *app) stateCompactCommand() *cobra.Command {
	var runs int
	var dry bool
	c := &cobra.Command{
		Use:   "compact",
		Short: "Write the state file anew without its oldest history",
		Long: `Write the state file anew: without the journal of all but the last runs, without
the settled effects of runs that are gone, and without free space. Nodes, facts,
steps and whatever an unfinished run needs stay. How long steps take is learned
from the journal: fewer runs make estimates less certain. Not while apply runs.`,
		Example: "  ironrail state compact --dry-run\n  ironrail state backup && ironrail state compact --runs 10",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if runs < 1 {
				return wrongUsage(c, fmt.Errorf("--runs %d: at least one run is kept", runs))
			}
			return a.compact(c.Context(), runs, dry)
		},
	}
	c.Flags().IntVar(&runs, "runs", 50, "how many of the last runs keep their journal")
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what would be dropped")
	return c
}

func (a *app) compact(ctx context.Context, runs int, dry bool) error {
	if _, err := os.Stat(a.statePath()); errors.Is(err, fs.ErrNotExist) {
		return a.noState()
	}
	held, err := a.lockState("state compact")
	if err != nil {
		return err
	}
	defer held.Release()
	done := a.during("Compacting the state")
	r, err := state.Compact(ctx, a.statePath(), runs, dry)
	done()
	if err == nil && !dry {
		err = a.noteState(ctx, held, fmt.Sprintf("compacted: the journal begins at record %d", r.First))
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	var out page
	did := "Dropped"
	if dry {
		did = "Would be dropped"
	}
	out.linef("%d %s kept whole; the journal begins at record %d.", len(r.Runs), pluralOf(len(r.Runs), "run is", "runs are"), r.First)
	out.linef("%s: %d records, %d settled effects, %d groups of plans that ended.", did, r.Records, r.Effects, r.Groups)
	if dry {
		out.linef("It has %s now.", formatSize(r.Before))
	} else {
		out.linef("%s -> %s", formatSize(r.Before), formatSize(r.After))
	}
	out.to(a.out)
	return nil
}
