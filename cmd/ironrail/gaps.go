// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/gaps"
)

// gapsOf lists what a site's files ask for and do not get, as a plan of it does. Where
// the state folder cannot be read it says so, and lists nothing.
func (a *app) gapsOf(inv *inventory.Inventory) gaps.List {
	site, err := a.openSite(inv, provision.Options{Look: true})
	if err != nil {
		a.sayf("warning: what of the site is built is not known: %v", err)
		return nil
	}
	list, err := site.Gaps()
	if err != nil {
		a.sayf("warning: what of the site is built is not known: %v", err)
	}
	return list
}

// gaps adds a list of gaps. check, plan and rehearse write it alike.
func (p *wrapped) gaps(list gaps.List) {
	if len(list) == 0 {
		return
	}
	p.writeWrapped("", list.Title())
	for _, l := range list.Lines() {
		p.writeWrapped("  ", l)
	}
}

// showGaps prints a list of gaps.
func showGaps(w io.Writer, list gaps.List) {
	var p wrapped
	p.width, _ = terminalSize(w)
	p.gaps(list)
	p.to(w)
}

// withoutGaps are findings without those that a list of gaps says as well.
func withoutGaps(diags inventory.Diagnostics) inventory.Diagnostics {
	return slices.DeleteFunc(slices.Clone(diags), func(d inventory.Diagnostic) bool {
		return d.Check == provision.UnimplementedCheck && d.Severity != diag.Error
	})
}

// withoutGapWarnings is a plan without the warnings that a list of gaps says as well.
func withoutGapWarnings(p *plan.Plan, list gaps.List) *plan.Plan {
	lines, short := list.Lines(), *p
	short.Warnings = slices.DeleteFunc(slices.Clone(p.Warnings), func(w string) bool { return slices.Contains(lines, w) })
	return &short
}
