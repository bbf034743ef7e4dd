// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver/usage"
	"github.com/ironrail/ironrail/inventory"
)

// checkGPUs compares the driver and its module with the GPUs of one chassis.
func (c *check) checkGPUs(u *usage.Usage) {
	if len(u.GPUs("nvidia")) == 0 && len(u.Hardware.GPUs) > 0 {
		g := u.Hardware.GPUs[0]
		c.gpu(c.add("driver.gpu", "version", "NVIDIA driver for other GPUs", "Driver %q is NVIDIA's, and the GPUs of hardware %q (%s) are from %q. Take it out of the drivers of %s, and give them a driver \"rocm\".",
			c.block.Name, u.Hardware.Name, g.Model, g.Vendor, u.On()), g, u)
		return
	}
	for _, g := range u.GPUs("nvidia") {
		a, ok := architectureOf(g.Model)
		if !ok {
			continue
		}
		switch {
		case c.number < a.first:
			c.gpu(c.add("driver.gpu", "version", "Driver older than the GPUs", "Driver %s does not know %s GPUs (%s, hardware %q): the first branch that does is R%d. Take R%d.", c.version, a.name, g.Model, u.Hardware.Name, a.first, bestBranch(a.first)), g, u)
		case a.last > 0 && c.number > a.last:
			c.gpu(c.add("driver.gpu", "version", "Driver without these GPUs", "Driver %s does not know %s GPUs (%s, hardware %q) any more: R%d is the last branch that does.", c.version, a.name, g.Model, u.Hardware.Name, a.last), g, u)
		default:
			c.checkModule(u, g, a)
		}
	}
}

// checkModule compares the flavour of the kernel module with one kind of GPUs.
func (c *check) checkModule(u *usage.Usage, g inventory.GPU, a architecture) {
	add := func(summary, format string, args ...any) {
		d := c.found.Add("driver.module", c.place("module"), summary, fmt.Sprintf(format, args...)).In(c.block.Decl)
		c.gpu(d, g, u)
	}
	switch {
	case c.module == "open" && !a.open:
		add("Open module without these GPUs", "The open kernel module needs the GPU System Processor, which %s GPUs (%s, hardware %q) do not have. Write module = \"proprietary\".", a.name, g.Model, u.Hardware.Name)
	case c.module == "proprietary" && !a.closed:
		add("Proprietary module without these GPUs", "%s GPUs (%s, hardware %q) are driven by the open kernel module only. Write module = \"open\".", a.name, g.Model, u.Hardware.Name)
	case c.module == "open" && c.number < openSince:
		add("Driver without an open module", "There is no open kernel module before R%d, and this block installs %s. Take a later driver, or module = \"proprietary\".", openSince, c.version)
	}
}

// checkFabricManager asks for the fabric manager where NVSwitches are in the
// chassis, and only there.
func (c *check) checkFabricManager() {
	on := c.block.True("fabric_manager")
	type place struct {
		h    *inventory.Hardware
		tray bool
	}
	for _, u := range usage.GroupBy(c.usages, func(u *usage.Usage) place { return place{u.Hardware, u.Tray} }) {
		for _, g := range u.GPUs("nvidia") {
			c.judgeFabricManager(u, g, on, u.Tray || isTray(g.Model))
		}
	}
	c.checkFollowers()
}

func (c *check) judgeFabricManager(u *usage.Usage, g inventory.GPU, on, tray bool) {
	add := func(summary, format string, args ...any) {
		d := c.found.Add("driver.fabric-manager", c.place("fabric_manager"), summary, fmt.Sprintf(format, args...)).In(c.block.Decl)
		c.gpu(d, g, u)
	}
	switch {
	case tray && on:
		add("Fabric manager on a tray", "The NVSwitches of hardware %q (%s) are in switch trays, where NVOS runs the fabric manager; on the node it does not start. Remove fabric_manager.", u.Hardware.Name, g.Model)
	case tray:
	case g.Interconnect == "nvswitch" && !on:
		add("No fabric manager for NVSwitch", "The GPUs of hardware %q (%s) are joined by NVSwitches: until the fabric manager has set them up, CUDA starts on none (error 802, system not yet initialized). Write fabric_manager = true.", u.Hardware.Name, g.Model)
	case g.Interconnect != "nvswitch" && on:
		add("Fabric manager without NVSwitch", "Hardware %q (%s) has no NVSwitch (interconnect is %q), and the fabric manager's service fails where there is none. Remove fabric_manager, or give such nodes a driver block of their own.", u.Hardware.Name, g.Model, g.Interconnect)
	}
}

// checkFollowers compares packages that are named with a version of their own.
func (c *check) checkFollowers() {
	d := c.driver()
	if d == nil {
		return
	}
	for _, p := range d.Packages {
		name, version, pinned := strings.Cut(p, "=")
		for _, f := range followers {
			rest, ok := strings.CutPrefix(name, f)
			if !ok {
				continue
			}
			number := strings.TrimPrefix(rest, "-")
			switch _, err := strconv.Atoi(number); {
			case err == nil && number != strconv.Itoa(c.number):
				c.add("driver.fabric-manager", "packages", "Package of another driver branch", "Package %q is of branch R%s, and the driver is %s; the two must have one version.", name, number, c.version)
			case pinned && !sameVersion(version, c.version):
				c.add("driver.fabric-manager", "packages", "Package of another driver version", "Package %q is pinned to %s, and the driver is %s; the two must have one version. Remove the pin: ironrail installs the driver's.", name, version, c.version)
			}
			break
		}
	}
}

// driver is the model's own copy of the block; nil when no node has it.
func (c *check) driver() *inventory.Driver {
	for _, u := range c.usages {
		for _, d := range u.Drivers {
			if d.Kind == Name && d.Name == c.block.Name {
				return d
			}
		}
	}
	return nil
}

// sameVersion compares a package's version, such as 580.126.16-1, with a driver's.
func sameVersion(pkg, driver string) bool {
	pkg, _, _ = strings.Cut(pkg, "-")
	return pkg == driver || strings.HasPrefix(pkg, driver+".")
}

// checkSystems compares the driver with the distributions and kernels of images.
func (c *check) checkSystems() {
	for _, u := range usage.GroupBy(c.usages, func(u *usage.Usage) *inventory.Image { return u.Image }) {
		c.checkDistribution(u)
		c.checkKernel(u)
	}
	for _, u := range usage.GroupBy(c.usages, func(u *usage.Usage) *inventory.HostSettings { return u.Host }) {
		c.checkHold(u)
	}
}

// checkHold refuses a module for one kernel on nodes whose kernel may be upgraded: DKMS would build
// another for the new one, and a module that the vendor built is not there at the next boot.
func (c *check) checkHold(u *usage.Usage) {
	d := c.driver()
	if d == nil || !d.True("precompiled") || u.Image.Diskless() || u.Host != nil && u.Host.HoldKernel {
		return
	}
	what := "has no host block"
	if u.Host != nil {
		what = fmt.Sprintf("has host %q without hold_kernel", u.Host.Name)
	}
	c.add("driver.kernel", "precompiled", "Module for a kernel that is not held", "A module that NVIDIA built is for one kernel, and the role of %s %s: an upgrade of the system brings a kernel that has no module, and the GPUs are gone at the next boot. Set hold_kernel = true in the host block of these nodes; or remove precompiled, and DKMS builds the module for each kernel.", u.On(), what).
		Of(u.Nodes...)
}

func (c *check) checkDistribution(u *usage.Usage) {
	have, ok := distribution.OfImage(u.Image)
	if !ok {
		return
	}
	add := func(format string, args ...any) {
		c.add("driver.distribution", "version", "Driver is not packaged for this system", format, args...).Also("the image", u.Image.Decl).Of(u.Nodes...).Warn()
	}
	i := slices.IndexFunc(distributions, func(d packaged) bool { return d.Release == have })
	switch {
	case i < 0:
		add("%s (image %q) is not among the systems that NVIDIA packages drivers for: Ubuntu 22.04 and 24.04, Debian 12 and 13, RHEL 8, 9 and 10.", have, u.Image.Name)
	case c.number < distributions[i].first:
		add("%s (image %q) is served from R%d on, and this block installs %s. Take R580.", have, u.Image.Name, distributions[i].first, c.version)
	case distributions[i].last > 0 && c.number > distributions[i].last:
		add("%s (image %q) is served up to R%d, and this block installs %s. Take a later image, such as Ubuntu 24.04 or Debian 12.", have, u.Image.Name, distributions[i].last, c.version)
	}
}

// checkKernel looks for pairs of module and kernel that are known not to build.
func (c *check) checkKernel(u *usage.Usage) {
	for _, b := range brokenKernels {
		if b.matches(u.Image.Kernel, c.version, c.module) {
			c.add("driver.kernel", "version", "Module does not build for this kernel", "The %s module %s does not build for %s (image %q): %s. What goes together: %s.", b.module, b.version, u.Image.Kernel, u.Image.Name, b.why, b.good).
				Also("the image", u.Image.Decl).Of(u.Nodes...)
		}
	}
}

// matches reports whether a module is known not to build for a kernel package.
func (b broken) matches(kernel, version, module string) bool {
	rest, ok := strings.CutPrefix(kernel, b.kernel)
	if !ok || version != b.version || module != b.module {
		return false
	}
	number, _, _ := strings.Cut(rest, "-")
	n, err := strconv.Atoi(number)
	return err == nil && n >= b.since
}

// checkPairs reports other stacks that this one does not stand beside.
func (c *check) checkPairs() {
	reported := usage.Reported{}
	for _, u := range c.usages {
		for _, d := range u.Kind(Name) {
			if d.Name > c.block.Name && reported.First(d.Name, u) { // once for each pair
				c.add("driver.pair", "version", "Two NVIDIA drivers on one node", "Driver %q (%s) and driver %q (%s) are both given to %s; a kernel has one. Keep one of them.", c.block.Name, c.version, d.Name, d.Version, u.On()).
					Also("the other one", d.Decl).Of(u.Nodes...)
			}
		}
	}
}
