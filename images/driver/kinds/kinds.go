// SPDX-License-Identifier: Apache-2.0

// Package kinds lists the kinds of driver stacks, and says which programs they bring to
// nodes. It is pure: what installs a stack is made of it in package provision.
package kinds

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/cuda"
	"github.com/ironrail/ironrail/images/driver/doca"
	"github.com/ironrail/ironrail/images/driver/inbox"
	"github.com/ironrail/ironrail/images/driver/rocm"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/driver/tools"
	"github.com/ironrail/ironrail/internal/hostfile"
	"github.com/ironrail/ironrail/inventory"
)

// Recipes are the kinds of `driver` blocks whose modules are built on the node, or, for one
// with Secure Boot or with its system in memory, on the controller, by what they install.
func Recipes() map[string]stack.Recipe {
	return map[string]stack.Recipe{cuda.Name: stack.Signed(cuda.Recipe), doca.Name: doca.Recipe, rocm.Name: stack.Signed(rocm.Recipe)}
}

// NeedSigned reports whether a stack of a node has kernel modules whose signature with the site's key
// its kernel asks for.
func NeedSigned(n *inventory.Node) bool {
	return n.Hardware != nil && n.Hardware.SecureBoot && TakesSigned(n)
}

// TakesSigned reports whether a stack of a node has kernel modules that are built on the
// controller, and signed with the site's key.
func TakesSigned(n *inventory.Node) bool {
	return n.Image != nil && slices.ContainsFunc(n.Drivers, func(d *inventory.Driver) bool {
		recipe := Recipes()[d.Kind]
		if recipe == nil {
			return false
		}
		set, err := recipe(driver.Target{Node: n, Driver: d}, stack.BaseOf(n.Image))
		return err == nil && set.Module.Signed
	})
}

// KeptOut are the kernel modules that a node with its system in memory must not load by itself, sorted:
// those that its drivers bring, or exclude. A module of the kernel's own that is in use goes only
// with a restart, of which nothing in memory is left.
func KeptOut(n *inventory.Node) (modules []string) {
	if !n.Diskless() {
		return nil
	}
	for _, d := range n.Drivers {
		if recipe := Recipes()[d.Kind]; recipe != nil && d.Kind != doca.Name { // the node boots by the modules of doca
			if set, err := recipe(driver.Target{Node: n, Driver: d}, stack.BaseOf(n.Image)); err == nil {
				modules = append(append(modules, set.Clashing...), set.Module.Name)
			}
		}
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}

// Names are all kinds, sorted.
func Names() []string {
	names := []string{inbox.Name, tools.Name}
	for name := range Recipes() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Packages lists what a stack installs on a node, without what comes along with it.
func Packages(t driver.Target) []string {
	if t.Driver.Kind == tools.Name {
		return tools.Packages(t)
	}
	if recipe := Recipes()[t.Driver.Kind]; recipe != nil {
		if set, err := recipe(t, stack.BaseOf(t.Node.Image)); err == nil { // else the kind says what is wrong
			return set.Packages
		}
	}
	return t.Driver.Packages
}

// Program is a program that tests of nodes run.
type Program string

// The programs.
const (
	MPI         Program = "mpirun"
	MPI4Py      Program = "mpi4py"
	WriteBW     Program = "ib_write_bw"
	NCCLTests   Program = "nccl-tests"
	RCCLTests   Program = "rccl-tests"
	NVBandwidth Program = "nvbandwidth"
	DCGM        Program = "dcgmi"
	RVS         Program = "rvs"
	Checksum    Program = "ironrail_checksum"
)

// brought says which packages bring a program: their names, as patterns of path.Match.
// DOCA's profiles bring perftest (DOCA Profiles, "Supported Packages"); DCGM 4 has
// nvbandwidth among its plugins.
var brought = map[Program][]string{
	MPI:         {"openmpi-bin", "openmpi"},
	MPI4Py:      {"python3-mpi4py", "python3-mpi4py-openmpi"},
	WriteBW:     {"perftest", "doca-ofed", "doca-networking", "doca-all"},
	NCCLTests:   {"ironrail-nccl-tests"},
	RCCLTests:   {"ironrail-rccl-tests"},
	NVBandwidth: {"ironrail-nvbandwidth", "nvbandwidth", "datacenter-gpu-manager-4-cuda*"},
	DCGM:        {"datacenter-gpu-manager*"},
	RVS:         {"rocm-validation-suite"},
	Checksum:    {"ironrail-checksum"},
}

// Bring reports whether one of the packages, as NAME or NAME=VERSION, brings a program.
func Bring(packages []string, p Program) bool {
	return slices.ContainsFunc(packages, func(pkg string) bool {
		name, _, _ := strings.Cut(pkg, "=")
		return hostfile.Matches(name, brought[p])
	})
}

// Brought reports whether the image of a node, by the packages that are named of it, or
// one of its driver stacks brings a program.
func Brought(n *inventory.Node, p Program) bool {
	if n.Image == nil {
		return false
	}
	return Bring(n.Image.Packages, p) || slices.ContainsFunc(n.Drivers, func(d *inventory.Driver) bool {
		return Bring(d.Packages, p) || Bring(Packages(driver.Target{Node: n, Driver: d}), p)
	})
}

// Sealed reports whether all that an image has is known from its block: it is made of
// packages, and not of a file that somebody else made.
func Sealed(i *inventory.Image) bool { return i != nil && i.Source == "" }
