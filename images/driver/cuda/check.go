// SPDX-License-Identifier: Apache-2.0

// Package cuda is the driver kind "cuda": NVIDIA's driver, its kernel module, the
// CUDA toolkit and the fabric manager. It owns what goes together with what, as
// tables with their sources, and the checks that hold a site against them. It is
// pure and safe for concurrent use.
package cuda

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images/driver/usage"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Name is the kind's name in the language.
const Name = "cuda"

// versionForm is a driver: the branch alone, or the whole version.
var versionForm = lazyregexp.New(`^[0-9]{3}(\.[0-9]+){0,2}$`)

// toolkitForm is a CUDA toolkit such as 13.0 or 12.8.1.
var toolkitForm = lazyregexp.New(`^[0-9]{1,2}\.[0-9]{1,2}(\.[0-9]+)?$`)

// Check returns the check of one block. now decides which branches have ended;
// zero takes the day of the tables.
func Check(now time.Time) func(*inventory.Inventory, inventory.Block) diag.List {
	if now.IsZero() {
		now = Dated
	}
	return func(inv *inventory.Inventory, b inventory.Block) diag.List {
		c := &check{block: b, version: b.Text("version"), module: b.Text("module"), usages: usage.Of(inv, b)}
		if !versionForm.MatchString(c.version) {
			c.found.Add("driver.version", b.Place("version"), "Not an NVIDIA driver version",
				fmt.Sprintf("%q is no driver version. Write the whole version, such as \"580.126.16\", or the branch, such as \"580\".", c.version)).In(b.Decl)
			return c.found
		}
		number, _, _ := strings.Cut(c.version, ".")
		c.number, _ = strconv.Atoi(number) // three digits
		c.branch, c.known = branchOf(c.number)
		c.checkBranch(now)
		c.checkToolkit()
		for _, u := range usage.GroupBy(c.usages, func(u *usage.Usage) *inventory.Hardware { return u.Hardware }) {
			c.checkGPUs(u)
		}
		c.checkFabricManager()
		c.checkSystems()
		c.checkPairs()
		return c.found
	}
}

// check is the work on one block.
type check struct {
	found   diag.List
	block   inventory.Block
	version string
	module  string
	number  int // of the branch
	branch  branch
	known   bool // branch is a row of the table
	usages  []*usage.Usage
}

// add reports an error at an attribute of the block.
func (c *check) add(name, attribute, summary, format string, args ...any) *diag.Diagnostic {
	return c.found.Add(name, c.block.Place(attribute), summary, fmt.Sprintf(format, args...)).In(c.block.Decl)
}

// checkBranch judges the branch by itself.
func (c *check) checkBranch(now time.Time) {
	newest := branches[len(branches)-1].number
	switch {
	case !c.known && c.number > newest:
		c.add("driver.version", "version", "Driver branch that is not known yet",
			"Driver %s is of branch R%d; the tables, of %s, know branches up to R%d. What goes together with it is not checked.", c.version, c.number, Dated.Format(time.DateOnly), newest).Warn()
	case !c.known:
		c.add("driver.version", "version", "Not a branch for data centers",
			"Driver %s is of branch R%d, which is none of NVIDIA's data center branches. Take one of R580, which is supported until June 2028.", c.version, c.number).Warn()
	case !now.Before(c.branch.end):
		c.add("driver.version", "version", "Driver branch without support",
			"Driver %s is of branch R%d (%s), which gets no fixes since %s. %s", c.version, c.number, c.branch.kind, lastMonth(c.branch.end), c.successor(now)).Warn()
	}
}

// successor says where to go from a branch that has ended.
func (c *check) successor(now time.Time) string {
	next, ok := branchOf(c.branch.next)
	if !ok || !now.Before(next.end) {
		return fmt.Sprintf("Take a branch that is supported; the tables, of %s, know none.", Dated.Format(time.DateOnly))
	}
	return fmt.Sprintf("Go to R%d, which is supported until %s.", next.number, lastMonth(next.end))
}

// lastMonth is the last month before t.
func lastMonth(t time.Time) string { return t.AddDate(0, 0, -1).Format("January 2006") }

// checkToolkit compares the CUDA toolkit with the driver.
func (c *check) checkToolkit() {
	text := c.block.Text("cuda")
	if text == "" {
		return
	}
	if !toolkitForm.MatchString(text) {
		c.add("driver.cuda", "cuda", "Not a CUDA toolkit version", "%q is no version of the CUDA toolkit such as \"13.0\".", text)
		return
	}
	t := usage.ParseRelease(text)
	least, ok := minimums[t.Major()]
	switch {
	case !ok:
		c.add("driver.cuda", "cuda", "CUDA toolkit that is not known", "CUDA %s is not in the tables of %s, which know CUDA 11 to 13; whether driver %s runs it is not checked.", text, Dated.Format(time.DateOnly), c.version).Warn()
	case c.number < least:
		c.add("driver.cuda", "cuda", "Driver too old for this CUDA", "CUDA %s needs driver %d or later, and this block installs %s. Take driver %d, or CUDA %s.", text, least, c.version, bestBranch(least), c.newest())
	case c.known && t.Major() == c.branch.Major() && t.Minor() > c.branch.Minor():
		c.add("driver.cuda", "cuda", "CUDA newer than its driver", "Driver R%d was made for CUDA %s. Programs of CUDA %s run on it, but for what %s has new and for code that is compiled at start (PTX). Take CUDA %s, or a later driver.", c.number, c.newest(), text, text, c.newest()).Warn()
	}
	for _, u := range usage.GroupBy(c.usages, func(u *usage.Usage) *inventory.Hardware { return u.Hardware }) {
		c.checkCode(u, t, text)
	}
}

// checkCode asks whether the toolkit makes code for the GPUs.
func (c *check) checkCode(u *usage.Usage, t toolkit, text string) {
	for _, g := range u.GPUs("nvidia") {
		a, ok := architectureOf(g.Model)
		switch {
		case !ok:
		case a.lastToolkit > 0 && t.Major() > a.lastToolkit:
			c.gpu(c.add("driver.cuda", "cuda", "CUDA without these GPUs", "CUDA %s makes no code for %s GPUs (%s, hardware %q); CUDA %d is the last that does.", text, a.name, g.Model, u.Hardware.Name, a.lastToolkit), g, u)
		case t.Before(a.toolkit):
			c.gpu(c.add("driver.cuda", "cuda", "CUDA older than the GPUs", "CUDA %s makes no code for %s GPUs (%s, hardware %q): libraries run only what is compiled at start. Take CUDA %s or later.", text, a.name, g.Model, u.Hardware.Name, a.toolkit).Warn(), g, u)
		}
	}
}

// gpu says on which GPUs and nodes a finding is.
func (c *check) gpu(d *diag.Diagnostic, g inventory.GPU, u *usage.Usage) {
	d.Also("the GPUs", g.Decl).Of(u.Nodes...)
}

// newest is the toolkit that the branch was made for.
func (c *check) newest() string {
	switch {
	case !c.known:
		return "of an older major version"
	case c.branch.Minor() == anyMinor:
		return strconv.Itoa(c.branch.Major())
	}
	return c.branch.toolkit.String()
}

// bestBranch returns the driver to recommend where at least least is needed: the branch
// with long support.
func bestBranch(least int) int { return max(least, 580) }

// place is an attribute's, or for a default the version's.
func (c *check) place(attribute string) hcl.Range {
	if _, given := c.block.Ranges[attribute]; !given {
		attribute = "version"
	}
	return c.block.Place(attribute)
}
