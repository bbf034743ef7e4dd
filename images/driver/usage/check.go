// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// stacks are the kinds of drivers by the vendor of the GPUs that they are for.
var stacks = map[string]string{"nvidia": "cuda", "amd": "rocm"}

// Missing warns of nodes that have GPUs and no driver stack for them. It is a
// check of the whole site, for such nodes may have no driver block at all.
func Missing(inv *inventory.Inventory) diag.List {
	var found diag.List
	type place struct {
		h     *inventory.Hardware
		image *inventory.Image
	}
	var bare []*Usage
	for _, u := range All(inv) {
		for _, g := range u.Hardware.GPUs {
			if kind := stacks[g.Vendor]; kind != "" && len(u.Kind(kind)) == 0 {
				bare = append(bare, u)
				break
			}
		}
	}
	for _, u := range GroupBy(bare, func(u *Usage) place { return place{u.Hardware, u.Image} }) {
		if _, ok := distribution.OfImage(u.Image); !ok {
			continue // an image of the site's own may have the driver in it
		}
		if d := distribution.OfDisk(u.Image); d != nil && !d.Drivers {
			continue // it has to: none is installed on it
		}
		g := u.Hardware.GPUs[0]
		found.Add("driver.gpu", g.Decl, "GPUs without a driver", fmt.Sprintf(
			"Hardware %q has GPUs (%s), and %s list no driver of kind %q: nothing can use them. Add one to the drivers of the role.", u.Hardware.Name, g.Model, u.On(), stacks[g.Vendor])).
			In(u.Hardware.Decl).Of(u.Nodes...).Warn()
	}
	return found
}

// Unsigned finds packages with sources of kernel modules, as DKMS builds them on the node, on
// hardware that boots with Secure Boot: those of the stacks cuda and rocm are built and signed
// on the controller for systems of dpkg, and others by nobody. It is a check of the whole site.
func Unsigned(inv *inventory.Inventory) (found diag.List) {
	var with []*Usage
	reported := Reported{}
	for _, u := range All(inv) {
		if u.Hardware.SecureBoot {
			with = append(with, u)
			notBuilt(&found, u, reported)
		}
	}
	for _, u := range GroupBy(with, func(u *Usage) *inventory.Image { return u.Image }) {
		if p := dkmsPackage(u.Image.Packages); p != "" {
			unsigned(&found, u.Image.Place("packages"), "image", u.Image.Block, p, u)
		}
	}
	type pair struct {
		d *inventory.Driver
		h *inventory.Hardware
	}
	seen := map[pair]bool{}
	for _, u := range with {
		for _, d := range u.Drivers {
			p := dkmsPackage(d.Packages)
			if p == "" || d.Kind == stacks["nvidia"] || d.Kind == stacks["amd"] || seen[pair{d, u.Hardware}] {
				continue
			}
			seen[pair{d, u.Hardware}] = true
			unsigned(&found, d.Place("packages"), "driver", d.Block, p, u)
		}
	}
	return found
}

// notBuilt finds stacks whose modules are built on the node: for systems of dnf and for arm64 none are
// built and signed on the controller.
func notBuilt(found *diag.List, u *Usage, reported Reported) {
	f, ok := distribution.FamilyOf(u.Image)
	if (!ok || f.Manager != distribution.Dnf) && u.Hardware.Arch != inventory.ARM64 {
		return
	}
	for _, kind := range slices.Sorted(maps.Values(stacks)) {
		for _, d := range u.Kind(kind) {
			if !reported.First(d.Name+"/"+u.Image.Name+"/"+u.Hardware.Name, u) {
				continue
			}
			found.Add("driver.secure-boot", d.Decl, "Module that nobody signs", fmt.Sprintf(
				"Hardware %q boots with Secure Boot, and on image %q of kind %q for %s the kernel modules of driver %q are built on the node, signed by no key that the node trusts: modules are built and signed on the controller for images of Debian and Ubuntu for %s. Give these nodes such an image, or set secure_boot = false in the hardware and switch Secure Boot off in the firmware.", u.Hardware.Name, u.Image.Name, u.Image.Kind, cmp.Or(u.Hardware.Arch, inventory.AMD64), d.Name, inventory.AMD64)).
				In(d.Decl).Also("the hardware", u.Hardware.Decl).Of(u.Nodes...)
		}
	}
}

// dkmsPackage is the first of the packages, as NAME or NAME=VERSION, whose name says that DKMS
// builds modules of it; "": none.
func dkmsPackage(packages []string) string {
	for _, p := range packages {
		if name, _, _ := strings.Cut(p, "="); strings.HasSuffix(name, "-dkms") {
			return name
		}
	}
	return ""
}

func unsigned(to *diag.List, at hcl.Range, block string, b inventory.Block, pkg string, u *Usage) {
	to.Add("driver.secure-boot", at, "Module that nobody signs", fmt.Sprintf(
		"Hardware %q boots with Secure Boot, and package %s of %s %q has DKMS build a kernel module on the node, signed by no key that the node trusts: its kernel refuses it. Take the package away; or bring it as packages of a driver of kind cuda or rocm, whose modules are signed on the controller; or set secure_boot = false in the hardware and switch Secure Boot off in the firmware.", u.Hardware.Name, pkg, block, b.Name)).
		In(b.Decl).Also("the hardware", u.Hardware.Decl).Of(u.Nodes...)
}
