// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/compile"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// Packages lists what is installed on a node: the archive's, those that the block names,
// and those that are compiled. It is pure.
func Packages(t driver.Target) []string {
	family, _ := distribution.FamilyOf(t.Node.Image)
	list := archived(t, family.Tools())
	for _, p := range given(t.Driver) {
		list = append(list, p.pkg)
	}
	return list
}

// archived are the packages of the distribution's archive.
func archived(t driver.Target, tools distribution.Tools) []string {
	list := slices.Concat(tools.MPI, tools.Disks)
	if !bringsRDMA(t.Node) {
		list = append(list, tools.RDMA...)
	}
	for _, p := range t.Driver.Packages {
		name, _, _ := strings.Cut(p, "=")
		list = append(list, name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// bringsRDMA reports whether another stack of a node brings the programs of RDMA: DOCA
// has its own, and takes the place of the distribution's libraries.
func bringsRDMA(n *inventory.Node) bool {
	return slices.ContainsFunc(n.Drivers, func(d *inventory.Driver) bool { return d.Kind == "doca" && d.Text("profile") != "doca-roce" })
}

// compiler is what programs are compiled with for the GPUs of nodes: the toolkits of
// their stacks as one, with the repositories that it comes from.
type compiler struct {
	stack.Toolkit
	driver  string // that has it
	version string // of that
	pins    []repo.Pin
	sources []repo.Source
}

// Recipes are the kinds of stacks that may have a toolkit, by name.
type Recipes map[string]stack.Recipe

// toolkitOf finds the toolkit of a kind among the stacks of a node; false where it has none.
func (r Recipes) toolkitOf(n *inventory.Node, kind string, b stack.Base) (compiler, bool, error) {
	for _, d := range n.Drivers {
		if d.Kind != kind || r[kind] == nil {
			continue
		}
		set, err := r[kind](driver.Target{Node: n, Driver: d}, b)
		if err != nil || set.Toolkit == nil {
			return compiler{}, false, err
		}
		return compiler{Toolkit: *set.Toolkit, driver: d.Name, version: d.Version, pins: set.Pins, sources: stack.ListSources(d)}, true, nil
	}
	return compiler{}, false, nil
}

// merge adds the GPUs of other nodes. It reports false where their toolkit is another.
func (c *compiler) merge(o compiler) bool {
	same := slices.Equal(c.Toolkit.Packages, o.Toolkit.Packages) && c.Home == o.Home && c.version == o.version && fmt.Sprint(c.sources) == fmt.Sprint(o.sources)
	c.Targets = append(slices.Clone(c.Targets), o.Targets...)
	slices.Sort(c.Targets)
	c.Targets = slices.Compact(c.Targets)
	return same
}

// Select joins what all nodes with an image need of a block. site is the folder of the
// site's files, where paths of source archives start.
func Select(recipes Recipes, inv *inventory.Inventory, d *inventory.Driver, image *inventory.Image, kernel string) (stack.Selection, error) {
	var out stack.Selection
	base := stack.BaseOf(image)
	if kernel != "" {
		base.Kernel = kernel
	}
	family, _ := distribution.Find(base.System.Family)
	type chassis struct {
		h    *inventory.Hardware
		tray bool
		all  string
	}
	seen, kits := map[chassis]bool{}, map[string]*compiler{}
	for _, n := range inv.Nodes {
		c := chassis{n.Hardware, n.Domain != "", fmt.Sprint(n.Drivers)}
		if n.Image == nil || n.Image.Name != image.Name || !slices.ContainsFunc(n.Drivers, func(o *inventory.Driver) bool { return o.Name == d.Name }) || seen[c] {
			continue
		}
		seen[c] = true
		out.Packages = append(out.Packages, archived(driver.Target{Node: n, Driver: d}, family.Tools())...)
		for _, p := range given(d) {
			if err := recipes.join(kits, p, n, base); err != nil {
				return out, err
			}
		}
	}
	slices.Sort(out.Packages)
	out.Packages = slices.Compact(out.Packages)
	for _, p := range d.Packages {
		if name, version, pinned := strings.Cut(p, "="); pinned {
			out.Pins = append(out.Pins, repo.Pin{Packages: []string{name}, Version: version})
		}
	}
	if list := given(d); len(list) > 0 {
		out.Made = made(inv.Dir, d, image, family, list, kits)
	}
	return out, nil
}

// join adds the toolkit of a node's stack to those of the same kind.
func (r Recipes) join(kits map[string]*compiler, p program, n *inventory.Node, b stack.Base) error {
	if p.of == "" {
		return nil
	}
	kit, ok, err := r.toolkitOf(n, p.of, b)
	switch have := kits[p.of]; {
	case err != nil:
		return err
	case !ok:
		return errkind.New(errkind.NotFound, "node %s has no toolkit to compile %s for", n.Name, p.block).Do("Give its drivers a stack of kind " + p.of + " with one.")
	case have == nil:
		kits[p.of] = &kit
	case !have.merge(kit):
		return errkind.New(errkind.Conflict, "%s would be compiled with the toolkits of two drivers, %s and %s", p.block, have.driver, kit.driver).
			Do("Give the nodes of each a driver \"tools\" of their own.")
	}
	return nil
}

// made is how the packages of programs come to be.
func made(site string, d *inventory.Driver, image *inventory.Image, family distribution.Family, list []program, kits map[string]*compiler) repo.Made {
	release, _ := distribution.OfImage(image)
	sys := system{family: family, arch: image.Arch, jobs: min(runtime.NumCPU(), mostJobs)}
	if sys.arch == "" {
		sys.arch = inventory.AMD64
	}
	var words []string
	root := compile.Root{Arch: sys.arch}
	if root.Suite = family.Codename(release); root.Suite == "" {
		words = append(words, release.String())
	}
	var all []compile.Program
	var names []string
	for _, p := range list {
		kit := kits[p.of]
		if kit == nil {
			kit = &compiler{}
		}
		root.Packages = slices.Concat(root.Packages, p.compiledWith(family.Tools()), kit.Toolkit.Packages)
		for _, s := range kit.sources {
			if !slices.ContainsFunc(root.Sources, func(o repo.Source) bool { return fmt.Sprint(o) == fmt.Sprint(s) }) {
				root.Sources, root.Pins = append(root.Sources, s), append(root.Pins, kit.pins...)
			}
		}
		c := compile.Program{Package: p.pkg, About: p.about, Source: sourceOf(d, p), Steps: p.recipe(kit.Toolkit, sys), Files: p.files}
		if p.env != nil {
			c.Env = p.env(kit.Toolkit, sys)
		}
		if p.mpi {
			c.Depends = family.Tools().MPI[:1]
		}
		fixed := p.recipe(kit.Toolkit, system{family: family, arch: sys.arch, jobs: 1}) // the number of processors makes no other package
		words = append(words, fmt.Sprintf("%q %s %q %q", p.pkg, c.Source.Identity(), fixed, c.Env))
		names, all = append(names, p.pkg), append(all, c)
	}
	inputs := fmt.Sprintf("%q %q %q %q %q", words, root.Suite, root.Arch, root.Packages, root.Sources)
	return repo.Made{Packages: names, Inputs: inputs, Make: func(ctx context.Context, dir string, from repo.Image, _ []string, say func(string)) ([]string, error) {
		root.Image = from
		return compile.Build(ctx, dir, site, root, all, say)
	}}
}
