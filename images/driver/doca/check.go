// SPDX-License-Identifier: Apache-2.0

// Package doca is the driver kind "doca": NVIDIA's DOCA-Host, the RDMA stack of
// ConnectX and BlueField. It owns what goes together with what, as tables with
// their sources, and the checks that hold a site against them. It is pure and
// safe for concurrent use.
package doca

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver/usage"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Name is the kind's name in the language.
const Name = "doca"

// Dated is the day on which the tables of this package were compared with their
// sources. What came out later is a warning, never an error.
var Dated = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// release is major and minor of DOCA.
type release = usage.Release

// known are the releases of DOCA-Host with documents of their own
// (docs.nvidia.com/doca/archive); 2.5, 2.9 and 3.2 have long support.
var known = []release{{2, 5}, {2, 6}, {2, 7}, {2, 8}, {2, 9}, {2, 10}, {3, 0}, {3, 1}, {3, 2}, {3, 3}}

// cards are the NICs of which the releases that know them are bounded. DOCA 2.9.4,
// "Changes and New Features": 2.9 is the last with ConnectX-4, and does not
// support ConnectX-8.
var cards = []struct {
	name        string
	first, last release // zero: not bounded
}{
	{"ConnectX-4", release{}, release{2, 9}},
	{"ConnectX-8", release{3, 0}, release{}},
}

// systems are the distributions of DOCA-Host (DOCA 3.2.1 documentation, "General
// Support", and release notes of 2.5 and 2.9).
var systems = []distribution.Release{
	{Family: distribution.Ubuntu, Version: "20.04"}, {Family: distribution.Ubuntu, Version: "22.04"}, {Family: distribution.Ubuntu, Version: "24.04"},
	{Family: distribution.Debian, Version: "11"}, {Family: distribution.Debian, Version: "12"}, {Family: distribution.Debian, Version: "13"},
	{Family: distribution.RHEL, Version: "8"}, {Family: distribution.RHEL, Version: "9"}, {Family: distribution.RHEL, Version: "10"},
}

// versionForm is a version such as 3.2.1.
var versionForm = lazyregexp.New(`^[0-9]\.[0-9]{1,2}(\.[0-9]+)?(-[0-9.]+)?$`)

// Check looks at one block in its site.
func Check(inv *inventory.Inventory, b inventory.Block) diag.List {
	c := &check{block: b, version: b.Text("version"), usages: usage.Of(inv, b)}
	if !versionForm.MatchString(c.version) {
		c.add("driver.version", "version", "Not a DOCA version", "%q is no version of DOCA-Host such as \"3.2.1\". (Versions such as 24.10 are MLNX_OFED's, which DOCA-Host replaces.)", c.version)
		return c.found
	}
	c.release = usage.ParseRelease(c.version)
	if !slices.Contains(known, c.release) {
		c.add("driver.version", "version", "DOCA that is not known", "DOCA %s is not among the releases of the tables, of %s: %s to %s. What goes together with it is not checked.", c.version, Dated.Format(time.DateOnly), known[0], known[len(known)-1]).Warn()
	}
	for _, u := range usage.GroupBy(c.usages, func(u *usage.Usage) *inventory.Hardware { return u.Hardware }) {
		c.checkCards(u)
		c.checkSecureBoot(u)
	}
	for _, u := range usage.GroupBy(c.usages, func(u *usage.Usage) *inventory.Image { return u.Image }) {
		c.checkSystem(u)
	}
	c.checkOrder()
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

// checkCards compares the release and its profile with the NICs of one chassis.
func (c *check) checkCards(u *usage.Usage) {
	mine, others := 0, ""
	for _, n := range u.Hardware.NICs {
		switch {
		case !n.HCA:
		case n.Model == "":
			mine++ // not said: it may be one
		case isOurs(n.Model):
			mine++
			c.checkCard(u, n)
		default:
			others = n.Model
		}
	}
	if mine == 0 && others != "" {
		c.add("driver.doca", "version", "DOCA without its NICs", "No HCA of hardware %q is a ConnectX or a BlueField (%s), and DOCA drives no others. Give %s a driver \"inbox\" with the packages of that vendor.", u.Hardware.Name, others, u.On()).
			Also("the hardware", u.Hardware.Decl).Of(u.Nodes...).Warn()
	}
}

// isOurs reports whether DOCA drives a model.
func isOurs(model string) bool {
	m := strings.ToLower(model)
	return strings.Contains(m, "connectx") || strings.Contains(m, "bluefield") || strings.HasPrefix(m, "cx") || strings.HasPrefix(m, "bf")
}

func (c *check) checkCard(u *usage.Usage, n inventory.NIC) {
	for _, card := range cards {
		if !strings.EqualFold(n.Model, card.name) && !strings.HasPrefix(strings.ToLower(n.Model), strings.ToLower(card.name)+" ") {
			continue
		}
		switch {
		case c.release.Before(card.first):
			c.add("driver.doca", "version", "DOCA older than the NICs", "DOCA %s does not know %s (hardware %q, hca %q): the first that does is %s. Take DOCA 3.2.", c.version, n.Model, u.Hardware.Name, n.Name, card.first).
				Also("the NICs", n.Decl).Of(u.Nodes...)
		case card.last != release{} && card.last.Before(c.release):
			c.add("driver.doca", "version", "DOCA without these NICs", "DOCA %s does not know %s any more (hardware %q, hca %q): %s is the last release that does.", c.version, n.Model, u.Hardware.Name, n.Name, card.last).
				Also("the NICs", n.Decl).Of(u.Nodes...)
		}
	}
	if c.block.Text("profile") == "doca-roce" && (n.LinkType == "infiniband" || n.Fabric != nil && n.Fabric.Kind == "infiniband") {
		c.add("driver.doca", "profile", "Profile without InfiniBand", "Profile \"doca-roce\" is for Ethernet alone, and hca %q of hardware %q is on InfiniBand. Write profile = \"doca-ofed\".", n.Name, u.Hardware.Name).
			Also("the NICs", n.Decl).Of(u.Nodes...).Warn()
	}
}

// clashingRHEL is the minor release of RHEL 9 whose own rdma-core does not stand
// beside DOCA's (azhpc-images: its packages are excluded from BaseOS there).
const clashingRHEL = "9.8"

func (c *check) checkSystem(u *usage.Usage) {
	if u.Image.Kind == distribution.RHEL && u.Image.Release == clashingRHEL {
		c.add("driver.distribution", "version", "System whose RDMA packages clash", "RHEL %s (image %q) brings an rdma-core that does not stand beside that of DOCA %s. Take release 9.6, or keep rdma-core of BaseOS away: baseos.excludepkgs=rdma-core*.", clashingRHEL, u.Image.Name, c.version).
			Also("the image", u.Image.Decl).Of(u.Nodes...).Warn()
	}
	have, ok := distribution.OfImage(u.Image)
	if ok && !slices.Contains(systems, have) {
		c.add("driver.distribution", "version", "DOCA is not packaged for this system", "%s (image %q) is not among the systems of DOCA-Host: Ubuntu 20.04 to 24.04, Debian 11 to 13, RHEL 8 to 10.", have, u.Image.Name).
			Also("the image", u.Image.Decl).Of(u.Nodes...).Warn()
	}
}

// checkOrder asks that DOCA comes before NVIDIA's driver: nvidia-peermem is built
// with the symbols of the ib_core that is there, and loads beside no other.
func (c *check) checkOrder() {
	reported := usage.Reported{}
	for _, u := range c.usages {
		for _, d := range u.Before(c.block, "cuda") {
			if !reported.First(d.Name, u) {
				continue
			}
			c.add("driver.order", "", "DOCA after the GPU driver", "Driver %q is installed before DOCA %q on %s: nvidia-peermem is then built for the distribution's ib_core, and does not load beside DOCA's. List driver.%s before driver.%s in the role.",
				d.Name, c.block.Name, u.On(), c.block.Name, d.Name).Also("the GPU driver", d.Decl).Of(u.Nodes...)
		}
	}
}

// checkPairs reports other RDMA stacks on the same nodes.
func (c *check) checkPairs() {
	reported := usage.Reported{}
	for _, u := range c.usages {
		for _, d := range u.Drivers {
			same := d.Kind == Name && d.Name > c.block.Name
			if !same && d.Kind != "inbox" || !reported.First(d.Kind+"/"+d.Name, u) {
				continue
			}
			f := c.add("driver.pair", "version", "Two RDMA stacks on one node", "DOCA %q and driver %q (%s) both bring the RDMA core to %s, and the one that comes last wins. Keep one of them.", c.block.Name, d.Name, d.Kind, u.On()).
				Also("the other stack", d.Decl).Of(u.Nodes...)
			if !same {
				f.Warn()
			}
		}
	}
}

// checkSecureBoot refuses Secure Boot: the modules of one DOCA package are built against the
// installed ones of another, which the build on the controller, of each by itself, does not do.
func (c *check) checkSecureBoot(u *usage.Usage) {
	if !u.Hardware.SecureBoot {
		return
	}
	c.found.Add("driver.secure-boot", c.block.Place("version"), "DOCA with Secure Boot", fmt.Sprintf(
		"Hardware %q boots with Secure Boot. The kernel modules of DOCA are built one against another, which is not implemented for signed modules in this version: the kernel of the nodes would refuse them. Take the driver off these nodes (Debian's own kernel drives ConnectX cards), or set secure_boot = false in the hardware and switch Secure Boot off in the firmware.", u.Hardware.Name)).
		In(c.block.Decl).Also("the hardware", u.Hardware.Decl).Of(u.Nodes...)
}
