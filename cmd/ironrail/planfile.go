// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
)

// openRegular opens a file that the operator named. Nothing but a regular file is
// opened: a pipe would be waited for without end.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errkind.New(errkind.Refused, "%s is no regular file", path).Do("Name a file, not a folder, pipe or device.")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// planPlace refuses to save a plan over a file that is none, such as one of the
// site's.
func planPlace(path string) error {
	info, err := os.Stat(path)
	if path == "" || err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil // what is wrong with the place is said when it is written to
	}
	f, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if plan.IsSaved(f) {
		return nil
	}
	return errkind.New(errkind.Refused, "%s is there already and is no saved plan: it is not overwritten", path).Do("Name another file with --out.")
}

// savePlan saves a plan, whole or not at all, sealed with the site's key where it has
// one.
func (a *app) savePlan(site *provision.Site, p *plan.Plan, out string) error {
	err := replaceWith(out, func(w io.Writer) error { return plan.Save(w, p, site.Keys.Plan) })
	if err != nil {
		return fmt.Errorf("the plan is not saved: %w", err)
	}
	switch n := len(p.Refusals); {
	case n > 0:
		a.sayf("Saved to %s, to look at: apply refuses a plan with %d refused %s.", out, n, pluralOf(n, "step", "steps"))
	case p.Empty():
		a.sayf("Saved to %s: it has no steps.", out)
	case len(site.Keys.Plan) == 0:
		a.sayf("Saved to %s without a seal, since this site has no keys yet: `ironrail apply %s` plans anew with its options, and asks.", out, out)
	default:
		a.sayf("Saved to %s: `ironrail apply %s` does exactly this.", out, out)
	}
	return nil
}

// readPlan reads a saved plan. problem says why its seal is not valid under the key;
// "" for a valid one.
func readPlan(path string, k plan.Key) (p *plan.Plan, problem string, err error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	p, problem, err = plan.Open(f, k)
	if old, ok := errors.AsType[*plan.FormatError](err); ok {
		return nil, "", errkind.New(errkind.Unsupported, "%s: %w", path, old).
			Do("Plan again with `ironrail plan --out`: what is to be done is said by the site's files and by --target and --replace.")
	}
	if err != nil {
		return nil, "", errkind.New(errkind.Invalid, "%s is not a saved plan: %w", path, err).Do("Plan again with `ironrail plan --out`.")
	}
	return p, problem, nil
}

// savedPlan is what may be applied of a saved plan. One without a valid seal is not
// applied: a new plan with its options takes its place, and a person has to type the
// approval of that.
func (a *app) savedPlan(ctx context.Context, site *provision.Site, files inventory.Files, o ownership, f applyFlags) (*plan.Plan, error) {
	p, problem, err := readPlan(f.file, site.Keys.Plan)
	if err != nil {
		return nil, err
	}
	if problem == "" {
		if err := bindLineage(ctx, p, o.store); err != nil {
			return nil, err
		}
		return site.Admit(ctx, o.store, o.fence, p, func(text string) { a.sayf("%s", text) })
	}
	if f.approve || f.counted {
		return nil, errkind.New(errkind.Refused, "%s is not applied as it is: %s", f.file, problem).
			Do(fmt.Sprintf("`ironrail show plan %s` shows it. `ironrail apply %s` on a terminal, without --auto-approve and --erase, plans anew with its options and asks; or plan again with --out.", f.file, f.file))
	}
	if p.Site != site.Inv.Site.Name {
		return nil, errkind.New(errkind.Refused, "%s is for site %s, and this is site %s", f.file, p.Site, site.Inv.Site.Name).Do("Apply it in the folder of its site: `ironrail -C DIR apply FILE`.")
	}
	return a.planAnew(ctx, site, files, o, p, fmt.Sprintf("%s is not applied as it is: %s.", f.file, problem))
}

// planAnew plans with the options of a saved plan, and says how the two differ.
func (a *app) planAnew(ctx context.Context, site *provision.Site, files inventory.Files, o ownership, was *plan.Plan, problem string) (*plan.Plan, error) {
	a.sayf("%s", problem)
	options := provision.PlanOptions{Now: a.now(), Say: func(text string) { a.sayf("%s", text) }}
	if x := was.Request; x != nil {
		options.Replace, options.Targets, options.Decommission, options.Refresh, options.Trust = x.Replace, x.Targets, x.Decommission, x.Refresh, x.Trust
	}
	now, err := a.makePlan(ctx, site, files, o.store, options)
	if err != nil {
		return nil, err
	}
	differs, err := was.Differs(now)
	if err != nil {
		return nil, err
	}
	switch more := len(now.Steps) - len(was.Steps); {
	case differs != "":
		a.sayf("What follows is a new plan with its options, which is another one: %s.", differs)
	case more > 0:
		a.sayf("What follows is a new plan with its options, which has %d more %s.", more, pluralOf(more, "step", "steps"))
	default:
		a.sayf("What follows is a new plan with its options. It has the same steps.")
	}
	return now, nil
}

// replaceWith writes a file whole, or leaves what is there as it is.
func replaceWith(name string, write func(io.Writer) error) error {
	return replaceAs(name, 0o644, write)
}

// replaceAs is replaceWith that gives a file that is new a mode. It never has another one that lets
// more people read it.
func replaceAs(name string, mode fs.FileMode, write func(io.Writer) error) error {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	switch info, err := os.Stat(name); {
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return durable.WriteFrom(name, mode, write)
}
