// SPDX-License-Identifier: Apache-2.0

// Package stack installs driver stacks whose kernel modules are built on the
// node: what the kinds doca, cuda and rocm have in common. What a stack consists
// of is a Set, data that a kind computes; this package brings it to a node in the
// order that a kernel needs, holds it there, and looks whether it is what runs.
package stack

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
)

// Base is the system that a stack is installed on.
type Base struct {
	System distribution.Release
	Kernel string // release, such as 6.1.0-56-amd64; "": not known before the image is built
}

// BaseOf is what an image block says of its system.
func BaseOf(i *inventory.Image) Base {
	system, _ := distribution.OfImage(i)
	return Base{System: system, Kernel: kernelOf(i)}
}

// Set is what one node needs of a stack.
type Set struct {
	Packages  []string   // to install; what they depend on comes with them
	Pins      []repo.Pin // versions, of these and of what comes with them
	Holds     []string   // patterns of what is held beside the packages and what pins name
	Module    Module     // the one that makes the stack
	Others    []string   // further modules, loaded after it
	Clashing  []string   // modules that must not be loaded, such as nouveau
	Options   []string   // lines of modprobe.d(5)
	Services  []string   // units that run
	Groups    []string   // of users that may use the devices
	Libraries []string   // names that the dynamic linker must know, such as libcuda.so.1
	Devices   []Device   // what the modules make
	Stays     bool       // a running module is never taken out: the node may need it for its network
	Toolkit   *Toolkit   // what programs for it are compiled with; nil: it brings none
}

// Toolkit is what a stack has to compile programs with.
type Toolkit struct {
	Packages []string // of its repository
	Home     string   // folder of the compiler
	Library  string   // folder of the library of collectives, with include and lib
	Targets  []string // code for its GPUs, as the compiler calls it: 90, gfx942
}

// Module is a kernel module.
type Module struct {
	Name    string // in /sys/module
	File    string // as modinfo knows it; "": as Name
	Version string // its version, or the start of it with a dot at the end; "": any
	Package string // that builds it; "": it comes with the kernel
	Signed  bool   // it comes built, and signed with the site's key: see Signed
}

func (m Module) file() string {
	if m.File != "" {
		return m.File
	}
	return m.Name
}

// Device is a number of files in a folder below /dev.
type Device struct {
	Dir, Prefix string // "nvidia" with digits behind it
	Count       int
	Of          string // what they are, in words: GPUs
}

// Recipe computes what a node needs. It is pure. Its error is about a combination
// that cannot work, and says which would.
type Recipe func(t driver.Target, b Base) (Set, error)

// Stack is one kind of stack. It implements driver.Kind, driver.Fitter, driver.Signing and
// driver.Starter, and is safe for concurrent use. Its zero value is not useful.
type Stack struct {
	recipe Recipe
	nodes  onnode.Nodes
	repos  manager.Repositories
}

// New returns a kind of stack.
func New(recipe Recipe, nodes onnode.Nodes, repos manager.Repositories) *Stack {
	return &Stack{recipe, nodes, repos}
}

// Check implements driver.Kind. What is wrong with a block by itself is found when
// the site is loaded.
func (s *Stack) Check(*inventory.Driver) hcl.Diagnostics { return nil }

// Fits implements driver.Fitter.
func (s *Stack) Fits(t driver.Target) hcl.Diagnostics {
	system, ok := distribution.OfImage(t.Node.Image)
	switch {
	case !ok:
		return notYet(t, fmt.Sprintf("Image %q is of kind %q, and nobody knows the names of its packages. Take an image of kind debian or ubuntu, or bring the driver in the image.", t.Node.Image.Name, t.Node.Image.Kind))
	case !packagesServed(t.Node.Image):
		return notYet(t, fmt.Sprintf("Image %q is a disk of %s that somebody else made, and nobody knows what its packages are resolved by. Take an image of kind rhel, debian or ubuntu.", t.Node.Image.Name, system))
	case !HasRepository(t.Driver) && !HasOwnArchive(t.Node.Image):
		return hcl.Diagnostics{newDiagnostic(t, "Driver does not go with its system", fmt.Sprintf("The archive of %s itself is not what driver %q of kind %q is installed from.", system, t.Driver.Name, t.Driver.Kind),
			`Name the repository that has it in the block, best a mirror inside the site: repository { url = "http://mirror.example/FOLDER/" key = file("KEY.asc") }.`)}
	}
	_, err := s.recipe(t, BaseOf(t.Node.Image))
	if err != nil {
		return hcl.Diagnostics{newDiagnostic(t, "Driver does not go with its system", err.Error()+".", errkind.Action(err))}
	}
	return nil
}

func notYet(t driver.Target, detail string) hcl.Diagnostics {
	return hcl.Diagnostics{newDiagnostic(t, "System without driver packages", fmt.Sprintf("Driver %q is given to node %s.", t.Driver.Name, t.Node.Name), detail)}
}

func newDiagnostic(t driver.Target, summary, detail, action string) *hcl.Diagnostic {
	if action != "" {
		detail += " " + action
	}
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: t.Driver.Place("version").Ptr()}
}

// Prepare implements driver.Kind.
func (s *Stack) Prepare(ctx context.Context, d *inventory.Driver, image string, say func(string)) error {
	_, err := s.repos.Ensure(ctx, d, image, say)
	if err != nil {
		return fmt.Errorf("repository of driver %s for image %s: %w", d.Name, image, err)
	}
	return nil
}

// Prepared implements driver.Kind.
func (s *Stack) Prepared(ctx context.Context, d *inventory.Driver, image string) (stage.Observation, error) {
	r, ok, err := s.repos.Find(ctx, d, image)
	if err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	if !ok {
		return stage.Observation{State: stage.Differs, Evidence: "there is no whole repository yet"}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: fmt.Sprintf("%d packages in the repository", len(r.Packages))}, nil
}

// work is the stack on one node.
type work struct {
	driver.Target
	on      manager.On
	manager manager.Manager
	family  distribution.Family
	repo    manager.Repository
	set     Set
}

// begin finds out what a node needs of a repository.
func (s *Stack) begin(run stage.Run, t driver.Target, r manager.Repository) (work, error) {
	w := work{Target: t, repo: r, on: manager.On{Nodes: s.nodes, Run: run, Node: t.Node.Name, Source: t.Driver.Name}}
	system, _ := distribution.OfImage(t.Node.Image)
	var err error
	if w.manager, err = manager.For(system, w.on); err != nil {
		return w, err
	}
	kernel := r.Kernel
	if kernel == "" {
		kernel = kernelOf(t.Node.Image)
	}
	if w.set, err = s.recipe(t, Base{System: system, Kernel: kernel}); err != nil {
		return w, err
	}
	w.family, _ = distribution.Find(system.Family)
	w.set.Packages = append(w.set.Packages, w.family.Holds...)
	return w, nil
}

// Selection is what the repository of a stack for the nodes of an image is made
// of.
type Selection struct {
	Packages   []string
	Pins       []repo.Pin
	Sources    []repo.Source
	Components []string
	Made       repo.Made
}

// Signer is the key that signs the modules of nodes with Secure Boot, where a site has such.
type Signer func() (*modsign.Key, error)

// Select joins what all nodes with an image need of a stack. kernel is the release
// of the image's kernel; "" when nobody knows it. signer is asked where a node needs signed
// modules.
func Select(recipe Recipe, inv *inventory.Inventory, d *inventory.Driver, image *inventory.Image, kernel string, signer Signer) (Selection, error) {
	out, signs := Selection{Sources: ListSources(d)}, false
	system, _ := distribution.OfImage(image)
	if kernel == "" {
		kernel = kernelOf(image)
	}
	f, _ := distribution.Find(system.Family)
	if len(out.Sources) == 0 {
		out.Components = f.Components
	}
	out.Packages = append(out.Packages, f.Holds...)
	type chassis struct {
		h    *inventory.Hardware
		tray bool
		all  string
	}
	seen := map[chassis]bool{}
	for _, n := range inv.Nodes {
		c := chassis{n.Hardware, n.Domain != "", driverNames(n.Drivers)}
		if n.Image == nil || n.Image.Name != image.Name || !slices.ContainsFunc(n.Drivers, func(o *inventory.Driver) bool { return o.Name == d.Name }) || seen[c] {
			continue
		}
		seen[c] = true
		set, err := recipe(driver.Target{Node: n, Driver: d}, Base{system, kernel})
		if err != nil {
			return out, err
		}
		out.Packages, signs = append(out.Packages, set.Packages...), signs || set.Module.Signed
		for _, p := range set.Pins {
			if !slices.ContainsFunc(out.Pins, func(o repo.Pin) bool { return o.Version == p.Version && slices.Equal(o.Packages, p.Packages) }) {
				out.Pins = append(out.Pins, p)
			}
		}
	}
	slices.Sort(out.Packages)
	out.Packages = slices.Compact(out.Packages)
	if !signs {
		return out, nil
	}
	return out, out.sign(d, image, Base{system, kernel}, signer)
}

// driverNames tells lists of drivers apart.
func driverNames(list []*inventory.Driver) string {
	all := ""
	for _, d := range list {
		all += d.Name + "\x00"
	}
	return all
}
