// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/lock"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/artifacts"
)

// lockFlags are the options of one `ironrail lock`.
type lockFlags struct {
	upgrade, prune, check bool
}

func (a *app) lockCommand() *cobra.Command {
	var f lockFlags
	c := &cobra.Command{
		Use:   "lock [NAME...]",
		Short: "Write allocated addresses and digests to ironrail.lock",
		Long: `Resolve what the site does not give, and keep it in ironrail.lock: the addresses of
point-to-point links and of loopbacks, the digests of images, the packages of
driver stacks. What is missing is added. What is there stays, so that adding a
node renumbers nobody and a newer ironrail means no reinstall; keep the file in git.

--upgrade takes the images and packages that are built now, and gives other
addresses to entries that cannot be: of all things, or of the named fabrics,
images and drivers. --prune takes out what nothing in the site has a use for.
--check writes nothing, and exits with 1 when something is missing or could not be.`,
		Example: "  ironrail lock\n  ironrail lock --upgrade os storage\n  ironrail lock --check",
		Args:    asUsage(cobra.ArbitraryArgs),
		RunE: func(c *cobra.Command, names []string) error {
			if len(names) > 0 && !f.upgrade {
				return wrongUsage(c, fmt.Errorf("%q: names go with --upgrade", names[0]))
			}
			return a.lock(f, names)
		},
	}
	c.Flags().BoolVar(&f.upgrade, "upgrade", false, "also change what is there, of the named things or of all")
	c.Flags().BoolVar(&f.prune, "prune", false, "take out entries of things that are gone")
	c.Flags().BoolVar(&f.check, "check", false, "write nothing; exit with 1 when there is something to write")
	return c
}

// locked is what `ironrail lock --json` prints.
type locked struct {
	Steps   []artifacts.LockStep `json:"steps"`
	Notes   []string             `json:"notes"`
	Written bool                 `json:"written"`
}

func (a *app) lock(f lockFlags, names []string) error {
	site, err := a.loadToLock(f)
	if err != nil {
		return err
	}
	u, err := site.Relock(artifacts.LockOptions{Upgrade: f.upgrade, Names: names, Prune: f.prune})
	if err != nil {
		return err
	}
	out := locked{Steps: append([]artifacts.LockStep{}, u.Steps...), Notes: append([]string{}, u.Notes...)}
	if !f.check {
		if out.Written, err = u.Lock.Write(a.dir); err != nil {
			return err
		}
	}
	if a.json {
		err = a.printJSON(out)
	} else {
		a.showLock(u, out.Written)
	}
	if err == nil && f.check && len(u.Steps) > 0 {
		return exit{code: exitFailed}
	}
	return err
}

// loadToLock loads the site with the errors that this command is there to fix.
func (a *app) loadToLock(f lockFlags) (*provision.Site, error) {
	inv, all, files := a.loadInventory()
	var diags inventory.Diagnostics
	for _, d := range all {
		fixes := d.Check == "lock.missing" || d.Check == "lock.stale" && f.prune || d.Check == "lock.conflict" && f.upgrade
		if !fixes && (d.Severity == diag.Error || d.Check == "lock.stale") {
			diags = append(diags, d)
		}
	}
	if len(diags) > 0 {
		a.showDiagnostics(diags, files)
	}
	if diags.HasErrors() {
		return nil, hasErrors(diags)
	}
	return a.openSite(inv, provision.Options{Look: true})
}

// lockLines is how many lines of one kind are shown: the first lock of a large
// site has a hundred thousand. --json has all.
const lockLines = 20

var lockSigns = map[artifacts.LockAction]string{artifacts.LockAdd: "+", artifacts.LockChange: "~", artifacts.LockMove: ">", artifacts.LockRemove: "-"}

// showLock prints what changes, and what nothing changes.
func (a *app) showLock(u artifacts.LockUpdate, written bool) {
	var p page
	type group struct {
		action     artifacts.LockAction
		record, of string
	}
	count := map[group]int{}
	for i, s := range u.Steps {
		g := group{s.Action, s.Record, s.Of}
		if count[g]++; count[g] <= lockLines {
			p.linef("%s %s %s", lockSigns[s.Action], s.Record, lockStep(s))
		}
		last := i+1 == len(u.Steps) || group{u.Steps[i+1].Action, u.Steps[i+1].Record, u.Steps[i+1].Of} != g
		if more := count[g] - lockLines; last && more > 0 {
			p.linef("%s ... and %d more of %s", lockSigns[s.Action], more, s.Of)
		}
	}
	switch {
	case written:
		p.linef("%s is written: %s. Keep it in git.", lock.File, lockSummary(u.Steps))
	case len(u.Steps) > 0:
		p.linef("%s is not written: %s.", lock.File, lockSummary(u.Steps))
	default:
		p.linef("Nothing to lock: %s has all that the site needs.", lock.File)
	}
	p.to(a.out)
	for _, n := range u.Notes {
		a.sayf("note: %s", n)
	}
}

// lockStep is one change in words.
func lockStep(s artifacts.LockStep) string {
	text := s.Of
	if s.Name != "" {
		text += " " + s.Name
	}
	switch {
	case s.Was != "" && s.Now != "":
		return text + " " + s.Was + " -> " + s.Now
	case s.Action == artifacts.LockMove:
		return text + " -> " + s.Now
	}
	return text + " " + s.Was + s.Now
}

// lockSummary counts changes in words.
func lockSummary(steps []artifacts.LockStep) string {
	count := map[artifacts.LockAction]int{}
	for _, s := range steps {
		count[s.Action]++
	}
	text := ""
	for _, x := range []struct {
		action artifacts.LockAction
		word   string
	}{{artifacts.LockAdd, "added"}, {artifacts.LockChange, "changed"}, {artifacts.LockMove, "moved"}, {artifacts.LockRemove, "removed"}} {
		if n := count[x.action]; n > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%d %s", n, x.word)
		}
	}
	if text == "" {
		return "put in order"
	}
	return text
}

// relock adds to the lock file what a plan is made of and the file lacks. What a virtual rack
// simulates does not belong into it.
func (a *app) relock(site *provision.Site) error {
	if a.rack {
		return nil
	}
	u, err := site.Relock(artifacts.LockOptions{})
	if err != nil || len(u.Steps) == 0 {
		return err
	}
	written, err := u.Lock.Write(a.dir)
	if written {
		a.sayf("%s is written: %s. Keep it in git.", lock.File, lockSummary(u.Steps))
	}
	return err
}
