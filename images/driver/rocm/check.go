// SPDX-License-Identifier: Apache-2.0

// Package rocm is the driver kind "rocm": AMD's kernel driver (amdgpu) and the
// ROCm user space. It owns what goes together with what, as tables with their
// sources, and the checks that hold a site against them. It is pure and safe for
// concurrent use.
package rocm

import (
	"fmt"
	"slices"
	"time"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver/usage"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Name is the kind's name in the language.
const Name = "rocm"

// versionForm is a version of ROCm or of amdgpu: 7.2, 6.4.4, 30.30.3.
var versionForm = lazyregexp.New(`^[0-9]{1,2}\.[0-9]{1,2}(\.[0-9]+)?$`)

// Check looks at one block in its site.
func Check(inv *inventory.Inventory, b inventory.Block) diag.List {
	c := &check{block: b, version: b.Text("version"), usages: usage.Of(inv, b)}
	if !versionForm.MatchString(c.version) {
		c.add("driver.version", "version", "Not a ROCm version", "%q is no version of ROCm such as \"7.2\" or \"6.4.4\".", c.version)
		return c.found
	}
	c.release = usage.ParseRelease(c.version)
	if newest := releases[len(releases)-1]; newest.Before(c.release) {
		c.add("driver.version", "version", "ROCm that is not known yet", "ROCm %s is newer than the tables, of %s, which know it up to %s. What goes together with it is not checked.",
			c.version, Dated.Format(time.DateOnly), newest).Warn()
	}
	c.checkKernelDriver()
	for _, u := range usage.GroupBy(c.usages, func(u *usage.Usage) *inventory.Hardware { return u.Hardware }) {
		c.checkGPUs(u)
	}
	for _, u := range usage.GroupBy(c.usages, func(u *usage.Usage) *inventory.Image { return u.Image }) {
		c.checkDistribution(u)
	}
	c.checkPairs()
	return c.found
}

// check is the work on one block.
type check struct {
	found   diag.List
	block   inventory.Block
	version string
	release release
	usages  []*usage.Usage
}

func (c *check) add(name, attribute, summary, format string, args ...any) *diag.Diagnostic {
	return c.found.Add(name, c.block.Place(attribute), summary, fmt.Sprintf(format, args...)).In(c.block.Decl)
}

// checkKernelDriver compares the amdgpu driver with the user space.
func (c *check) checkKernelDriver() {
	text := c.block.Text("amdgpu")
	if text == "" || !slices.Contains(releases, c.release) {
		return
	}
	if !versionForm.MatchString(text) {
		c.add("driver.rocm", "amdgpu", "Not an amdgpu version", "%q is no version of the amdgpu driver such as \"30.30.3\", or \"6.4.4\" for drivers before ROCm 7.", text)
		return
	}
	r := usage.ParseRelease(text)
	i := slices.IndexFunc(kernelDrivers, func(k kernelDriver) bool { return k.driver == r })
	switch {
	case i < 0 && r.Major() == 7:
		c.add("driver.rocm", "amdgpu", "amdgpu has its own numbers", "There is no amdgpu %s: since ROCm 7.0 the driver is numbered apart. ROCm %s comes with amdgpu %s.", text, c.version, c.bundled())
	case i < 0:
		c.add("driver.rocm", "amdgpu", "amdgpu that is not known", "amdgpu %s is not in the tables of %s; whether it serves ROCm %s is not checked. ROCm %s comes with amdgpu %s.", text, Dated.Format(time.DateOnly), c.version, c.version, c.bundled()).Warn()
	case c.release.Before(kernelDrivers[i].first), kernelDrivers[i].last.Before(c.release):
		k := kernelDrivers[i]
		c.add("driver.rocm", "amdgpu", "amdgpu and ROCm do not fit", "amdgpu %s serves ROCm %s to %s, and this block installs %s. Take amdgpu %s.", text, k.first, k.last, c.version, c.bundled())
	}
}

// bundled is the kernel driver that comes with the release.
func (c *check) bundled() string {
	if s, ok := bundled[c.release]; ok {
		return s
	}
	return c.release.String()
}

// checkGPUs compares ROCm with the GPUs of one chassis.
func (c *check) checkGPUs(u *usage.Usage) {
	list := u.GPUs("amd")
	if len(list) == 0 && len(u.Hardware.GPUs) > 0 {
		g := u.Hardware.GPUs[0]
		c.add("driver.gpu", "version", "AMD driver for other GPUs", "Driver %q is AMD's, and the GPUs of hardware %q (%s) are from %q. Take it out of the drivers of %s, and give them a driver \"cuda\".", c.block.Name, u.Hardware.Name, g.Model, g.Vendor, u.On()).
			Also("the GPUs", g.Decl).Of(u.Nodes...)
	}
	for _, g := range list {
		if gen, ok := generationOf(g.Model); ok && c.release.Before(gen.first) {
			c.add("driver.gpu", "version", "ROCm older than the GPUs", "ROCm %s does not know %s GPUs (%s, hardware %q): the first that does is %s. Take ROCm 7.2.", c.version, gen.name, g.Model, u.Hardware.Name, gen.first).
				Also("the GPUs", g.Decl).Of(u.Nodes...)
		}
	}
}

func (c *check) checkDistribution(u *usage.Usage) {
	have, ok := distribution.OfImage(u.Image)
	if !ok {
		return
	}
	add := func(format string, args ...any) {
		c.add("driver.distribution", "version", "ROCm is not packaged for this system", format, args...).Also("the image", u.Image.Decl).Of(u.Nodes...).Warn()
	}
	i := slices.IndexFunc(systems, func(s system) bool { return s.Release == have })
	switch {
	case i < 0:
		add("%s (image %q) is not among the systems of ROCm: Ubuntu 22.04 and 24.04, Debian 12 and 13, RHEL 8, 9 and 10.", have, u.Image.Name)
	case c.release.Before(systems[i].first):
		add("%s (image %q) is served from ROCm %s on, and this block installs %s. Take a later ROCm, or an older system.", have, u.Image.Name, systems[i].first, c.version)
	case systems[i].last != release{} && systems[i].last.Before(c.release):
		add("%s (image %q) is served up to ROCm %s, and this block installs %s. Take a later image, such as Ubuntu 24.04.", have, u.Image.Name, systems[i].last, c.version)
	}
}

// checkPairs reports other stacks that this one does not stand beside. The clash
// over ucx is that of ROCm 6.4's mivisionx, whose libucx0 replaces DOCA's ucx.
func (c *check) checkPairs() {
	reported := usage.Reported{}
	for _, u := range c.usages {
		for _, d := range u.Kind(Name) {
			if d.Name > c.block.Name && reported.First(d.Name, u) { // once for each pair
				c.add("driver.pair", "version", "Two ROCm stacks on one node", "Driver %q (%s) and driver %q (%s) are both given to %s. Keep one of them.", c.block.Name, c.version, d.Name, d.Version, u.On()).
					Also("the other one", d.Decl).Of(u.Nodes...)
			}
		}
		for _, d := range u.Kind("doca") {
			if !c.release.Before(release{6, 4}) && c.release.Before(release{7, 0}) && reported.First("doca/"+d.Name, u) {
				c.add("driver.pair", "version", "ROCm and DOCA both bring ucx", "ROCm %s (by mivisionx) wants the distribution's libucx0, which does not stand beside the ucx of DOCA %s on %s. List DOCA first and hold its ucx, or take ROCm 7.", c.version, d.Version, u.On()).
					Also("the other stack", d.Decl).Of(u.Nodes...).Warn()
			}
		}
	}
}
