// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/lock"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/virtual/twin"
)

// simulatePackages puts a repository of a driver stack for the nodes of an image into the
// state folder of the site: with the packages of the lock file where it has them, else
// with those that apt solves by recorded indexes, else with those that the driver's tables
// name.
func simulatePackages(ctx context.Context, s *provision.Site, d *inventory.Driver, i *inventory.Image, indexes repo.Recorded) error {
	o, err := s.Artifacts.RepositoryOptions(d, i.Name)
	if err != nil {
		return err
	}
	known := lockedPackages(s.Inv, d, i, o)
	if known == nil && solvable(i, indexes) && len(o.Packages) > 0 {
		if known, err = indexes.Solve(ctx, o); err != nil {
			return err
		}
		withNeeds(known, o)
	}
	_, err = repo.SimulateKnown(ctx, o, known)
	return err
}

// solvable reports whether the packages of an image can be solved by recorded indexes.
func solvable(i *inventory.Image, indexes repo.Recorded) bool {
	f, ok := distribution.FamilyOf(i)
	return indexes != "" && ok && f.Manager == distribution.Apt
}

// solveSystem is what the packages of an image would be by recorded indexes: those that
// every system has, its kernel, and those that the site's files name.
func solveSystem(ctx context.Context, i *inventory.Image, is twin.Twin, indexes repo.Recorded) (repo.System, error) {
	packages := slices.Clone(i.Packages)
	if kernel := cmp.Or(i.Kernel, is.Leading); kernel != "" {
		packages = append(packages, kernel)
	}
	return indexes.System(ctx, is.Codename, is.PackageArch(), packages)
}

// lockedPackages are the packages that the lock file has for a stack; none where it has
// none, or where they are not what the stack asks for today.
func lockedPackages(inv *inventory.Inventory, d *inventory.Driver, i *inventory.Image, o repo.Options) []repo.Known {
	locked, ok := inv.Lock.Closure(d.Name, i.Name)
	if !ok || !covers(locked, o) {
		return nil
	}
	var all []repo.Known
	for _, p := range locked.Packages {
		all = append(all, repo.Known{Name: p.Name, Version: p.Version, Arch: p.Arch})
	}
	withNeeds(all, o)
	return all
}

// withNeeds has one of the packages that are asked for bring all that are not: which of
// them needs which is not known.
func withNeeds(all []repo.Known, o repo.Options) {
	var rest []string
	for _, k := range all {
		if !slices.Contains(o.Packages, k.Name) {
			rest = append(rest, k.Name)
		}
	}
	if first := slices.IndexFunc(all, func(k repo.Known) bool { return slices.Contains(o.Packages, k.Name) }); first >= 0 {
		all[first].Needs = rest
	}
}

// covers reports whether locked packages are what a stack asks for: each by its name, at a
// version that the pins take.
func covers(locked lock.Closure, o repo.Options) bool {
	return !slices.ContainsFunc(o.Packages, func(name string) bool {
		return !slices.ContainsFunc(locked.Packages, func(p lock.Package) bool { return p.Name == name && o.Takes(name, p.Version) })
	})
}

// describePackages says where the packages of a stack are from.
func describePackages(inv *inventory.Inventory, indexes repo.Recorded) func(*inventory.Driver, *inventory.Image) string {
	return func(d *inventory.Driver, i *inventory.Image) string {
		if locked, ok := inv.Lock.Closure(d.Name, i.Name); ok {
			return fmt.Sprintf("empty, by the names and versions of %s in %s", diag.Count(len(locked.Packages), "package", "packages"), lock.File)
		}
		if solvable(i, indexes) {
			return fmt.Sprintf("empty, by the names and versions that apt solves from the indexes in %s", indexes)
		}
		return "empty, by the names that the driver asks for; what they need is not known"
	}
}

// systemOf is what the simulated disk of an image says to be, and its packages: with the
// kernel that the locked packages of its drivers are for, else with that of the recorded
// indexes.
func systemOf(ctx context.Context, inv *inventory.Inventory, i *inventory.Image, indexes repo.Recorded) (twin.Twin, repo.System, error) {
	is := twin.Of(i)
	locked := lockedKernel(inv, i)
	if locked != "" {
		is.Kernel = locked
	}
	if !solvable(i, indexes) {
		return is, repo.System{Status: []byte(is.Status(i.Packages))}, nil
	}
	system, err := solveSystem(ctx, i, is, indexes)
	if err != nil || locked != "" {
		return is, system, err
	}
	kernel, err := distribution.NewestKernel(bytes.NewReader(system.Status))
	is.Kernel = cmp.Or(kernel, is.Kernel)
	return is, system, err
}

// lockedKernel is the release of the kernel that the locked packages of an image's
// drivers are for; "" where they name none.
func lockedKernel(inv *inventory.Inventory, i *inventory.Image) (kernel string) {
	f, ok := distribution.FamilyOf(i)
	if !ok || inv.Lock == nil {
		return ""
	}
	for _, c := range inv.Lock.Closures {
		for _, p := range c.Packages {
			if release, found := strings.CutPrefix(p.Name, "linux-headers-"); found && c.Image == i.Name && f.KernelRelease("linux-image-"+release) == release {
				kernel = release
			}
			if f.StandBeside(p.Name) && c.Image == i.Name {
				kernel = p.Version + "." + p.Arch
			}
		}
	}
	return kernel
}
