// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// mostKept is how many bytes of a site's files are copied for a rehearsal that is kept.
const mostKept = 64 << 20

// checkKeep refuses a folder to keep a rehearsal in that has something in it.
func checkKeep(to string) error {
	switch list, err := os.ReadDir(to); {
	case err == nil && len(list) > 0:
		return errkind.New(errkind.Refused, "%s is not empty", to).Do("Name a new folder for --keep.")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// keepSite copies the files of the site into the folder that a rehearsal is kept in: all but hidden ones,
// such as the state and the history of git.
func (a *app) keepSite(to string) error {
	self, err := os.Stat(to)
	if err != nil {
		return err
	}
	from, err := filepath.EvalSymlinks(a.dir) // a link is not walked into
	if err != nil {
		return err
	}
	left := int64(mostKept)
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if name != "." && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			if info, err := d.Info(); err != nil || os.SameFile(info, self) {
				return cmp.Or(err, fs.SkipDir)
			}
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		if left -= info.Size(); left < 0 {
			return errkind.New(errkind.Refused, "the files in %s are more than %s: not all of them are those of a site", a.dir, formatSize(mostKept)).
				Do("Rehearse without --keep, or move what is none of the site's out of its folder.")
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, info.Mode().Perm()&0o644)
	})
}

// readOnly are the commands that a rehearsal that was kept is looked at with: none of them asks hardware.
// handover prints what was written for the scheduler.
var readOnly = []string{"check", "completion", "draw", "events", "fmt", "handover", "help", "import", "lock", "man", "parts", "read", "rehearse", "report", "serve", "show", "state", "status", "version", "why"}

// checkKept refuses to act on hardware from the folder of a rehearsal, and gives a command there the
// variables that the rehearsal had.
func (a *app) checkKept(c *cobra.Command) error {
	k, kept, err := rehearsal.ReadKept(a.stateDir())
	if err != nil || !kept {
		return err
	}
	words := strings.Fields(c.CommandPath())
	if len(words) > 1 && !slices.Contains(readOnly, words[1]) && !strings.HasPrefix(words[1], "__") {
		return errkind.New(errkind.Refused, "%s is what a rehearsal of site %s left: its nodes were simulated, and %s would act on those that the files name", a.dir, k.Site, strings.Join(words[:2], " ")).
			Do("Go to the folder of the site itself. Here " + strings.Join(readOnly[:len(readOnly)-1], ", ") + " and why work.")
	}
	if ask := c.Flags().Lookup("ask"); ask != nil && ask.Changed {
		return errkind.New(errkind.Refused, "the BMCs of a rehearsal are gone with it").Do("Leave --ask out.")
	}
	if len(a.vars) == 0 {
		a.vars = k.Variables
	}
	return nil
}

// keptFolder is the state folder of a rehearsal that is kept; empty where none is.
func keptFolder(to string) string {
	if to == "" {
		return ""
	}
	return filepath.Join(to, provision.StateFolder)
}

// keepRest adds the site to what a rehearsal left, and says what can be done with it.
func (a *app) keepRest(to string) error {
	if _, err := os.Stat(filepath.Join(keptFolder(to), rehearsal.KeptFile)); to == "" || errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was planned, so that nothing is kept
	}
	if err := a.keepSite(to); err != nil {
		return err
	}
	a.sayf("")
	a.sayf("Kept in %s. To look at it:", to)
	for _, what := range []string{"serve", "status", "why", "report --format html > report.html", "events"} {
		a.sayf("  %s", fmt.Sprintf("ironrail -C %s %s", to, what))
	}
	return nil
}
