// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/repo/mirror"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory/lock"
)

// Mirrored is a copy of the repository of a driver, of what the nodes of an image need.
type Mirrored struct {
	Driver   string   `json:"driver"`
	Image    string   `json:"image"`
	URL      string   `json:"url"`
	Folder   string   `json:"folder"`
	Packages int      `json:"packages"`
	Size     int64    `json:"size"`               // bytes of packages
	Fetched  int      `json:"fetched"`            // packages that were not there yet
	Absent   []string `json:"absent,omitempty"`   // asked for, and not in this repository
	Unsigned bool     `json:"unsigned,omitempty"` // its index has no signature; each package has to have one
}

// chosenStacks are the stacks of the named drivers, of all when none is named.
func (a Artifacts) chosenStacks(drivers []string) (list []driverStack, err error) {
	var names []string
	for _, d := range a.inv.Drivers {
		names = append(names, d.Name)
	}
	for _, d := range drivers {
		if !slices.Contains(names, d) {
			slices.Sort(names)
			return nil, errkind.New(errkind.Refused, "%q is no driver of this site", d).Do("Name one of " + strings.Join(names, ", ") + ", or none for all.")
		}
	}
	for _, st := range driverStacks(a.inv) {
		if len(drivers) == 0 || slices.Contains(drivers, st.driver.Name) {
			list = append(list, st)
		}
	}
	return list, nil
}

// MirrorSources copies what the named drivers need of the repositories that their blocks name,
// of all drivers when none is named, into a folder. from is a URL that the one driver's is
// copied from; "": the one of its block. Neither images nor their packages have to be there.
func (a Artifacts) MirrorSources(ctx context.Context, to, from string, drivers []string, say func(string)) (done []Mirrored, err error) {
	stacks, err := a.chosenStacks(drivers)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, st := range stacks {
		sources := stack.ListSources(st.driver)
		if len(sources) == 0 && len(drivers) > 0 {
			errs = append(errs, errkind.New(errkind.Refused, "driver %s names no repository: its packages come from those of image %s", st.driver.Name, st.image.Name).
				Do("Mirror those of the distribution with its own programs, such as reposync or apt-mirror."))
		}
		for _, s := range sources {
			m, err := a.mirrorSource(ctx, st, s, to, from, say)
			if err != nil {
				errs = append(errs, errkind.New(errkind.Of(err), "driver %s for image %s: %w", st.driver.Name, st.image.Name, err).Do(errkind.Action(err)))
				continue
			}
			done = append(done, m)
		}
	}
	return done, errors.Join(errs...)
}

// mirrorSource copies one repository.
func (a Artifacts) mirrorSource(ctx context.Context, st driverStack, s repo.Source, to, from string, say func(string)) (Mirrored, error) {
	w := mirror.Want{Source: s, From: from, Release: dnfRelease(st.image), Arch: string(st.image.Arch), Packages: st.driver.Packages}
	w.Dnf = w.Release != ""
	if choose := a.selectorOf(st.driver.Kind); choose != nil {
		sel, err := choose(a.inv, st.driver, st.image, "")
		if err != nil {
			return Mirrored{}, err
		}
		w.Packages, w.Pins = sel.Packages, sel.Pins
	}
	c, err := mirror.Make(ctx, w, to, func(text string) { say(st.driver.Name + ": " + text) })
	if err != nil {
		return Mirrored{}, err
	}
	return Mirrored{st.driver.Name, st.image.Name, s.URL, c.Folder, c.Packages, c.Bytes, c.Fetched, c.Absent, c.Unsigned}, nil
}

// RepositoryState is how the repository of a stack stands.
type RepositoryState string

// The states.
const (
	RepositoryLocked   RepositoryState = "locked"     // whole, and as the lock file has it
	RepositoryUnlocked RepositoryState = "not locked" // whole, and not in the lock file as the files ask for it
	RepositoryOther    RepositoryState = "other"      // whole, with other packages than the lock file has
	RepositoryDamaged  RepositoryState = "damaged"
	RepositoryMissing  RepositoryState = "missing"
)

// RepositoryCheck is the verdict on the repository of a stack for the nodes of an image.
type RepositoryCheck struct {
	Driver   string          `json:"driver"`
	Image    string          `json:"image"`
	State    RepositoryState `json:"state"`
	Packages int             `json:"packages,omitempty"`
	Size     int64           `json:"size,omitempty"`    // bytes of packages
	Problem  string          `json:"problem,omitempty"` // what is wrong
	Action   string          `json:"action,omitempty"`  // what to do about it
}

// Bad reports whether nodes cannot install from it.
func (c RepositoryCheck) Bad() bool {
	return c.State == RepositoryDamaged || c.State == RepositoryMissing || c.State == RepositoryOther
}

// VerifyRepositories reads the controller's repositories of the named drivers whole, of all
// when none is named: the signature of each index, each package by the index, and all by the
// lock file. each is called with a verdict as it is found. It writes nothing.
func (a Artifacts) VerifyRepositories(ctx context.Context, drivers []string, each func(RepositoryCheck)) (list []RepositoryCheck, err error) {
	stacks, err := a.chosenStacks(drivers)
	if err != nil {
		return nil, err
	}
	for _, st := range stacks {
		c, err := a.verifyRepository(ctx, st)
		if err != nil {
			return list, err
		}
		each(c)
		list = append(list, c)
	}
	return list, nil
}

// verifyRepository is the verdict on one. An error is none about the repository.
func (a Artifacts) verifyRepository(ctx context.Context, st driverStack) (RepositoryCheck, error) {
	c := RepositoryCheck{Driver: st.driver.Name, Image: st.image.Name}
	missing := func(format string, args ...any) RepositoryCheck {
		c.State, c.Problem, c.Action = RepositoryMissing, fmt.Sprintf(format, args...), fmt.Sprintf("Build it where package mirrors can be reached: `ironrail image build %s`.", c.Image)
		return c
	}
	if a.Images == nil {
		return missing("image %s is not built", c.Image), nil
	}
	digest, err := a.Digest(st.image)
	if err != nil {
		return c, err
	}
	if digest == "" || !a.Images.Has(digest) {
		return missing("image %s is not built", c.Image), nil
	}
	if _, err := os.Stat(a.path("keys", "repo.asc")); errors.Is(err, fs.ErrNotExist) { // reading it would make it
		return missing("no repository was made on this controller"), nil
	}
	o, err := a.repositoryOptions(st.driver, c.Image, digest)
	if err != nil {
		return c, err
	}
	r, found, err := repo.Find(o)
	if err != nil {
		return c, err
	}
	if !found {
		return missing("no repository was made of what the files ask for"), nil
	}
	c.Packages, c.Size = len(r.Packages), r.Size
	if err := r.Verify(ctx, o.Key); err != nil {
		if ctx.Err() != nil {
			return c, context.Cause(ctx)
		}
		c.State, c.Problem, c.Action = RepositoryDamaged, err.Error(), errkind.Action(err)
		return c, nil
	}
	return a.compareLocked(st, o, r, c)
}

// compareLocked compares a repository that is whole with the lock file.
func (a Artifacts) compareLocked(st driverStack, o repo.Options, r repo.Repo, c RepositoryCheck) (RepositoryCheck, error) {
	was, locked := lock.Closure{}, false
	if a.inv.Lock != nil {
		was, locked = a.inv.Lock.Closure(c.Driver, c.Image)
	}
	c.State = RepositoryLocked
	switch {
	case !locked:
		c.State, c.Problem, c.Action = RepositoryUnlocked, lock.File+" has no packages of it", "Write them there: `ironrail lock`."
		return c, nil
	case was.Inputs != closureInputs(o):
		c.State, c.Problem = RepositoryUnlocked, "the files, or the image, ask for other packages than when "+lock.File+" was written"
		c.Action = fmt.Sprintf("Write the new ones there: `ironrail lock --upgrade %s`.", c.Driver)
		return c, nil
	}
	if err := a.refuseUnlocked(st.driver, c.Image, o, r); err != nil {
		if errkind.Of(err) != errkind.Mismatch {
			return c, err
		}
		c.State, c.Problem, c.Action = RepositoryOther, err.Error(), errkind.Action(err)
	}
	return c, nil
}
