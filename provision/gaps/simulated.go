// SPDX-License-Identifier: Apache-2.0

package gaps

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/inventory"
)

// Simulated is one thing of a site that a rehearsal does not have as a run of the same
// plan would. The plan is the same; the names of the fields in JSON are stable.
type Simulated struct {
	What  string `json:"what"` // "image", "packages", "hook" or "protect"
	Block string `json:"block"`
	Name  string `json:"name"`            // of the block; of a hook its time and stage
	Image string `json:"image,omitempty"` // of packages: that they are for
	Place Place  `json:"place"`
	Nodes int    `json:"nodes"` // that it concerns
	How   string `json:"how"`   // what there is instead
}

// String is the thing in words, such as "packages of driver r580 for image hpc".
func (s Simulated) String() string {
	switch s.What {
	case "packages":
		return fmt.Sprintf("packages of driver %s for image %s", s.Name, s.Image)
	case "protect":
		return "protect of role " + s.Name
	}
	return s.Block + " " + s.Name
}

// Packages says where the packages of a driver stack for the nodes of an image come from in
// a rehearsal, in words.
type Packages func(*inventory.Driver, *inventory.Image) string

// OfRehearsal lists what a rehearsal of a site simulates: each image that nodes are
// installed with, the packages of each driver stack on it, hooks and protection. It is
// computed from the files; hardware and networks are always simulated, and are not listed.
func OfRehearsal(inv *inventory.Inventory, packages Packages) []Simulated {
	list := []Simulated{}
	add := func(what, block, name, image string, at hcl.Range, nodes int, how string) {
		if nodes > 0 {
			list = append(list, Simulated{what, block, name, image, placeOf(at), nodes, how})
		}
	}
	for _, i := range inv.Images {
		add("image", "image", i.Name, "", i.Decl, count(inv, func(n *inventory.Node) bool { return n.Image == i }), describeImage(i))
	}
	for _, d := range inv.Drivers {
		for _, i := range inv.Images {
			users := func(n *inventory.Node) bool { return n.Image == i && slices.Contains(n.Drivers, d) }
			if n := count(inv, users); n > 0 {
				add("packages", "driver", d.Name, i.Name, d.Decl, n, packages(d, i))
			}
		}
	}
	for _, r := range inv.Roles {
		add("protect", "role", r.Name, "", r.Decl, count(inv, func(n *inventory.Node) bool { return n.Role == r && n.Protect && n.Image != nil }),
			"lifted: there is nothing to lose")
	}
	installed := count(inv, func(n *inventory.Node) bool { return n.Image != nil })
	for _, h := range inv.Hooks {
		add("hook", "hook", h.When+" "+h.Stage, "", h.Decl, installed, "its program is not run, and taken to have ended well")
	}
	return list
}

// describeImage says what nodes find instead of an image.
func describeImage(i *inventory.Image) string {
	system, ok := distribution.OfImage(i)
	if !ok {
		return "a small disk that says to be a system of kind " + i.Kind
	}
	return fmt.Sprintf("a small disk that says to be %s for %s", system, i.Arch)
}
