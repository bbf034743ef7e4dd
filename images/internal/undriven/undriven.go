// SPDX-License-Identifier: Apache-2.0

// Package undriven looks at what nodes ask for of systems that no driver stack is installed on.
package undriven

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// systemCheck is the check of what the system of an image does not get.
const systemCheck = "image.system"

// Check refuses nodes of an image whose system gets no driver stacks, since it is a disk that
// somebody else made, and have some: the first node. It warns of tests whose programs have to be
// in the image then.
func Check(inv *inventory.Inventory, i *inventory.Image, found *diag.List) {
	f, ok := distribution.FamilyOf(i)
	if !ok || f.Disk == nil || f.Disk.Drivers {
		return
	}
	at := i.Place("os")
	if i.OS == "" {
		at = i.Place("release") // its kind says what it is
	}
	add := func(n *inventory.Node, summary, what string) {
		found.Add(systemCheck, at, summary, fmt.Sprintf("Image %q is of %s, and node %q, which it is for, %s. Take an image of %s for it, or put what it needs into the image.", i.Name, f.Title, n.Name, what, withDrivers())).
			Also("the node", n.Decl).In(i.Decl).Of(n.Name)
	}
	drivers, tests := false, false
	for _, n := range inv.Nodes {
		if n.Image != i {
			continue
		}
		if len(n.Drivers) > 0 && !drivers && i.Kind != f.Name {
			drivers = true
			add(n, "Drivers that are not installed on this system", fmt.Sprintf("has driver.%s: driver stacks are not installed on it by this version", n.Drivers[0].Name))
		}
		if v := n.Validation; lacksPrograms(n, i.Kind == f.Name) && !tests {
			tests = true
			found.Add(systemCheck, at, "Programs of tests that the image has to bring", fmt.Sprintf("Validation %q of node %q has tests between nodes, and nothing is installed on %s for them: what they run has to be in image %q. That is perftest (ib_write_bw) for pair, and Open MPI with mpi4py, or with the tests of NCCL or RCCL, for all_reduce.", v.Name, n.Name, f.Title, i.Name)).
				Also("the validation", v.Decl).In(i.Decl).Of(n.Name).Warn()
		}
	}
}

// lacksPrograms reports whether a node has tests between nodes, whose programs nobody is known to
// bring. Of a system that is made here it is known what it has, and what its drivers bring.
func lacksPrograms(n *inventory.Node, made bool) bool {
	v := n.Validation
	return v != nil && (v.Pair != nil || v.AllReduce != nil) && !made
}

// withDrivers are the systems of disk images that driver stacks are installed on.
func withDrivers() string {
	var list []string
	for _, f := range distribution.OfDisks() {
		if f.Disk.Drivers {
			list = append(list, f.Title)
		}
	}
	return strings.Join(list, " or ")
}
