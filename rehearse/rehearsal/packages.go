// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
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
// with those that the driver's tables name.
func simulatePackages(ctx context.Context, s *provision.Site, d *inventory.Driver, i *inventory.Image) error {
	o, err := s.Artifacts.RepositoryOptions(d, i.Name)
	if err != nil {
		return err
	}
	_, err = repo.SimulateKnown(ctx, o, lockedPackages(s.Inv, d, i, o))
	return err
}

// lockedPackages are the packages that the lock file has for a stack; none where it has
// none, or where they are not what the stack asks for today.
func lockedPackages(inv *inventory.Inventory, d *inventory.Driver, i *inventory.Image, o repo.Options) []repo.Known {
	locked, ok := inv.Lock.Closure(d.Name, i.Name)
	if !ok || !covers(locked, o) {
		return nil
	}
	var all []repo.Known
	var rest []string // what comes with the packages that are asked for
	for _, p := range locked.Packages {
		all = append(all, repo.Known{Name: p.Name, Version: p.Version, Arch: p.Arch})
		if !slices.Contains(o.Packages, p.Name) {
			rest = append(rest, p.Name)
		}
	}
	first := slices.IndexFunc(all, func(k repo.Known) bool { return slices.Contains(o.Packages, k.Name) })
	all[first].Needs = rest // which of them needs which is not in the lock file
	return all
}

// covers reports whether locked packages are what a stack asks for: each by its name, at a
// version that the pins take.
func covers(locked lock.Closure, o repo.Options) bool {
	return !slices.ContainsFunc(o.Packages, func(name string) bool {
		return !slices.ContainsFunc(locked.Packages, func(p lock.Package) bool { return p.Name == name && o.Takes(name, p.Version) })
	})
}

// describePackages says where the packages of a stack are from.
func describePackages(inv *inventory.Inventory) func(*inventory.Driver, *inventory.Image) string {
	return func(d *inventory.Driver, i *inventory.Image) string {
		if locked, ok := inv.Lock.Closure(d.Name, i.Name); ok {
			return fmt.Sprintf("empty, by the names and versions of %s in %s", diag.Count(len(locked.Packages), "package", "packages"), lock.File)
		}
		return "empty, by the names that the driver asks for; what they need is not known"
	}
}

// systemOf is what the simulated disk of an image says to be: with the kernel that the
// locked packages of its drivers are for.
func systemOf(inv *inventory.Inventory, i *inventory.Image) twin.Twin {
	is := twin.Of(i)
	f, ok := distribution.FamilyOf(i)
	if !ok || inv.Lock == nil {
		return is
	}
	for _, c := range inv.Lock.Closures {
		for _, p := range c.Packages {
			if release, found := strings.CutPrefix(p.Name, "linux-headers-"); found && c.Image == i.Name && f.KernelRelease("linux-image-"+release) == release {
				is.Kernel = release
			}
		}
	}
	return is
}
