// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/lock"
)

// CheckLock compares the site with its lock file: what is missing in it, what is
// left over, what cannot be. What is not built is no finding of the site: a plan
// says it.
func CheckLock(inv *inventory.Inventory) diag.List {
	if inv.Lock == nil {
		return nil // it was said that it cannot be read
	}
	links := roce.Addresses(inv)
	found := roce.CheckLinks(inv, links)
	missing(links, &found)
	for _, l := range links {
		conflicts(l, &found)
	}
	stale(inv, links, &found)
	return found
}

// missing says in one warning how many addresses are not locked.
func missing(links []*roce.Links, to *diag.List) {
	var names, fabrics []string
	var at hcl.Range
	count := 0
	for _, l := range links {
		fresh := l.Allocation.Fresh
		if len(fresh) == 0 {
			continue
		}
		if count == 0 {
			at = l.Fabric.Place("addressing")
		}
		count += len(fresh)
		fabrics = append(fabrics, l.Fabric.Name)
		for _, i := range fresh[:min(len(fresh), diag.Shown-len(names))] {
			names = append(names, l.Wants[i].Owner)
		}
	}
	if count == 0 {
		return
	}
	to.Add("lock.missing", at, "Addresses that are not locked", fmt.Sprintf("%s of fabric %s %s no address in %s: %s. `ironrail lock` adds them; until then another order of the site could give others.",
		diag.Count(count, "port or switch", "ports and switches"), strings.Join(fabrics, ", "), verb(count), lock.File, diag.Few(names, count))).Warn()
}

// conflicts reports the entries of a fabric that cannot be, those of one reason
// in one finding.
func conflicts(l *roce.Links, to *diag.List) {
	var outside, taken []lock.Conflict
	for _, c := range l.Allocation.Replaced {
		if c.First.Owner == "" {
			outside = append(outside, c)
		} else {
			taken = append(taken, c)
		}
	}
	twice(l, taken, to)
	if len(outside) == 0 {
		return
	}
	first := outside[0]
	text := fmt.Sprintf("%s of %s in fabric %q %s", first.Entry.Prefix, first.Entry.Owner, l.Fabric.Name, first.Why)
	if n := len(outside) - 1; n > 0 {
		text += fmt.Sprintf(", and %s of this fabric cannot be either", diag.Count(n, "other entry", "other entries"))
	}
	to.Add("lock.conflict", first.Entry.At.Range(), "Locked address that cannot be", fmt.Sprintf("%s. Put back what was changed in the fabric, or run `ironrail lock --upgrade %s`, which gives other addresses.", text, l.Fabric.Name)).Also("the addresses of the fabric", l.Fabric.Place("cidr"))
}

// twice reports the entries whose address another entry has: a merge of two
// branches leaves as many as both have added.
func twice(l *roce.Links, taken []lock.Conflict, to *diag.List) {
	if len(taken) == 0 {
		return
	}
	c := taken[0]
	text := fmt.Sprintf("%s of %s in fabric %q %s", c.Entry.Prefix, c.Entry.Owner, l.Fabric.Name, c.Why)
	if n := len(taken) - 1; n > 0 {
		text += fmt.Sprintf(", and so it is with %s of this fabric", diag.Count(n, "other entry", "other entries"))
	}
	d := to.Add("lock.conflict", c.Entry.At.Range(), "Two owners of one address", fmt.Sprintf("%s. The first line keeps the address; `ironrail lock --upgrade %s` gives the second owner another.", text, l.Fabric.Name)).Also("the first one", c.First.At.Range())
	for _, c := range taken {
		d.Of(nodeOf(c.First.Owner), nodeOf(c.Entry.Owner))
	}
}

// nodeOf is the node that an owner's name begins with.
func nodeOf(owner string) string {
	name, _, _ := strings.Cut(owner, "/")
	return name
}

// stale says in one warning what is locked for things that are gone.
func stale(inv *inventory.Inventory, links []*roce.Links, to *diag.List) {
	var at hcl.Range
	var names []string
	count := 0
	add := func(p lock.Place, name string) {
		if count++; count == 1 {
			at = p.Range()
		}
		if len(names) < diag.Shown {
			names = append(names, name)
		}
	}
	allocated := map[string]bool{}
	for _, l := range links {
		allocated[l.Fabric.Name] = true
		for _, a := range l.Allocation.Stale {
			add(a.At, a.Owner)
		}
	}
	for _, a := range inv.Lock.Addresses {
		if !allocated[a.Fabric] {
			add(a.At, a.Owner)
		}
	}
	for _, i := range inv.Lock.Images {
		if imageGone(inv, i) {
			add(i.At, "image "+i.Name)
		}
	}
	if len(inv.Lock.Closures) > 0 {
		stacks := driverStacks(inv)
		for _, c := range inv.Lock.Closures {
			if closureGone(stacks, c) {
				add(c.At, "driver "+c.Driver)
			}
		}
	}
	if count > 0 {
		to.Add("lock.stale", at, "Entries of things that are gone", fmt.Sprintf("%s has %s that nothing in the site has a use for: %s. What they hold stays theirs, so that something that comes back is as it was; `ironrail lock --prune` gives it free.", lock.File, diag.Count(count, "entry", "entries"), diag.Few(names, count))).Warn()
	}
}

func verb(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}
