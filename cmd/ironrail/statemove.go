// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/etcd"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/onrecord"
)

func (a *app) stateMoveCommand() *cobra.Command {
	var approve bool
	c := &cobra.Command{
		Use:   "move etcd|file",
		Short: "Move the state from its file into etcd, or back",
		Long: `Move the state from the file of this controller into etcd, as the site's files name
it (state "etcd"), or back into the file. All of it is read, written, read back
and compared, record for record, before the place that it came from is marked.

Moved into etcd, the file becomes a copy that nothing but what follows etcd
writes; as it was it stays beside it, marked too. Moved back, what is in etcd stays
and is marked: no controller opens it any more. Then take state "etcd" out of the
files. Nothing may own the state meanwhile. A move that died is continued by the
same command.`,
		Example:   "  ironrail state backup && ironrail state move etcd\n  ironrail state move file",
		Args:      asUsage(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		ValidArgs: []string{"etcd", "file"},
		RunE: func(c *cobra.Command, args []string) error {
			return a.moveState(c.Context(), args[0] == "etcd", approve)
		},
	}
	c.Flags().BoolVar(&approve, "auto-approve", false, "do not ask")
	return c
}

func (a *app) moveState(ctx context.Context, into, approve bool) error {
	inv, err := a.names()
	if err != nil {
		return err
	}
	c, err := etcdOf(inv)
	if err != nil {
		return err
	}
	held, err := a.lockState("state move")
	if err != nil {
		return err
	}
	defer held.Release()
	path := a.statePath()
	kept := path + ".moved-" + a.stamp()
	place := fmt.Sprintf("etcd under %s", c.Prefix)
	from, to := path, place
	if !into {
		from, to = to, from
	}
	a.sayf("The state moves from %s to %s.", from, to)
	if !approve {
		if err := a.promptFor("yes", "Read what is moved, then add --auto-approve."); err != nil {
			return err
		}
	}
	done := a.during("Moving the state")
	var p state.Contents
	if into {
		p, err = etcd.MoveIn(ctx, c, path, kept)
	} else {
		host, _ := os.Hostname() // without it the mark says where, and not of which computer
		p, err = etcd.MoveOut(ctx, c, path, kept, fmt.Sprintf("to %s of %s", absolute(path), host))
	}
	done()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			From string `json:"from"`
			To   string `json:"to"`
			state.Contents
		}{from, to, p})
	}
	a.sayf("%d %s until record %d, compared record for record. The state is in %s.", p.Objects["node"], pluralOf(int(p.Objects["node"]), "node", "nodes"), p.Last, to)
	if _, err := os.Stat(kept); err == nil {
		a.sayf("What was in the file before is kept as %s.", kept)
	}
	if !into {
		a.sayf("Take state \"etcd\" out of the site's files.")
	}
	return nil
}

// etcdOf is where the site's files have the state in etcd.
func etcdOf(inv *inventory.Inventory) (etcd.Config, error) {
	c := onrecord.EtcdOf(inv)
	if c == nil {
		return etcd.Config{}, errkind.New(errkind.Refused, "the site's files have no state \"etcd\", which says where it lies there").
			Do("Add the block (docs/language.md); to move the state back, leave it there until it is moved.")
	}
	return *c, nil
}

// absolute is a path as other computers need not know the working folder for it.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
