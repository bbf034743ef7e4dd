// SPDX-License-Identifier: Apache-2.0

// Package usage finds with what a driver block is used: the combinations of
// chassis, image and other driver stacks among its nodes. A stack is right or
// wrong only together with them, and thousands of nodes share a few of them. The
// kinds' checks are built on it. It is pure and safe for concurrent use.
package usage

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Usage is one combination in which nodes use a driver block.
type Usage struct {
	Hardware *inventory.Hardware
	Image    *inventory.Image
	Host     *inventory.HostSettings // may be nil
	Drivers  []*inventory.Driver     // all of these nodes, in the order of installation
	Nodes    []string                // sorted
	Tray     bool                    // they are trays of an NVLink domain

	// Override is that of nodes for which it lowers checks, else nil: what is
	// found about them is apart from what is found about the others, and lowers
	// nothing there.
	Override *inventory.Override
}

// key tells combinations apart while nodes are walked: the list of drivers by
// where it lies, so that nothing is allocated for a node.
type key struct {
	hardware *inventory.Hardware
	image    *inventory.Image
	host     *inventory.HostSettings
	first    **inventory.Driver
	count    int
	tray     bool
	override *inventory.Override
}

// allowingOverride returns the node's override when it lowers checks of drivers, else nil.
func allowingOverride(n *inventory.Node) *inventory.Override {
	if !n.Override.Lowers("driver.") {
		return nil
	}
	return n.Override
}

// All returns the combinations of a site in the order of their first nodes,
// those without drivers too. Nodes without hardware or image are left out.
func All(inv *inventory.Inventory) []*Usage {
	var list []*Usage
	seen := map[key]*Usage{}
	for _, n := range inv.Nodes {
		if n.Hardware == nil || n.Image == nil {
			continue
		}
		k := key{hardware: n.Hardware, image: n.Image, host: n.Host, count: len(n.Drivers), tray: n.Domain != "", override: allowingOverride(n)}
		if k.count > 0 {
			k.first = &n.Drivers[0]
		}
		u := seen[k]
		if u == nil {
			u = mergeUsage(&list, Usage{Hardware: n.Hardware, Image: n.Image, Host: n.Host, Drivers: n.Drivers, Tray: k.tray, Override: k.override})
			seen[k] = u
		}
		u.Nodes = append(u.Nodes, n.Name)
	}
	return list
}

// mergeUsage returns the usage of the list that is the same as u, or adds u: two
// overrides may list the same drivers.
func mergeUsage(list *[]*Usage, u Usage) *Usage {
	for _, have := range *list {
		if have.Hardware == u.Hardware && have.Image == u.Image && have.Host == u.Host && have.Tray == u.Tray && have.Override == u.Override && slices.Equal(have.Drivers, u.Drivers) {
			return have
		}
	}
	*list = append(*list, &u)
	return &u
}

// Of returns the combinations that have the driver block.
func Of(inv *inventory.Inventory, b inventory.Block) []*Usage {
	return slices.DeleteFunc(All(inv), func(u *Usage) bool { return u.index(b.Kind, b.Name) < 0 })
}

// index is the place of a block among the drivers; -1 when it is not there.
func (u *Usage) index(kind, name string) int {
	return slices.IndexFunc(u.Drivers, func(d *inventory.Driver) bool { return d.Kind == kind && d.Name == name })
}

// Kind returns the drivers of a kind, in their order.
func (u *Usage) Kind(kind string) (list []*inventory.Driver) {
	for _, d := range u.Drivers {
		if d.Kind == kind {
			list = append(list, d)
		}
	}
	return list
}

// Before returns the drivers of a kind that are installed before a block.
func (u *Usage) Before(b inventory.Block, kind string) []*inventory.Driver {
	return (&Usage{Drivers: u.Drivers[:max(0, u.index(b.Kind, b.Name))]}).Kind(kind)
}

// GPUs returns the chassis' GPUs of a vendor.
func (u *Usage) GPUs(vendor string) (list []inventory.GPU) {
	for _, g := range u.Hardware.GPUs {
		if g.Vendor == vendor {
			list = append(list, g)
		}
	}
	return list
}

// ModelWords cuts the name of a model into its words, in upper case: "H100 SXM5
// 80GB" is H100, SXM5 and 80GB.
func ModelWords(model string) []string {
	return strings.FieldsFunc(strings.ToUpper(model), func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// On says on which nodes something is, in words: of many the first ones and how
// many more there are.
func (u *Usage) On() string {
	switch n := len(u.Nodes); {
	case n == 1:
		return "node " + u.Nodes[0]
	case n <= diag.Shown:
		return "nodes " + strings.Join(u.Nodes[:n-1], ", ") + " and " + u.Nodes[n-1]
	default:
		return "nodes " + diag.Few(u.Nodes, n)
	}
}

// GroupBy joins combinations that are the same to a rule: those with one value of of,
// such as the hardware, and with one override. What else they differ in is that
// of the first.
func GroupBy[T comparable](list []*Usage, of func(*Usage) T) []*Usage {
	type same struct {
		value    T
		override *inventory.Override
	}
	var out []*Usage
	seen := map[same]*Usage{}
	for _, u := range list {
		k := same{of(u), u.Override}
		if have := seen[k]; have != nil {
			have.Nodes = append(have.Nodes, u.Nodes...)
			continue
		}
		c := *u
		c.Nodes = slices.Clone(u.Nodes)
		seen[k] = &c
		out = append(out, &c)
	}
	for _, u := range out {
		slices.Sort(u.Nodes)
	}
	return out
}

// Reported remembers what was found already, by a name and the override under which
// it was.
type Reported map[reported]bool

type reported struct {
	name     string
	override *inventory.Override
}

// First reports whether a finding of that name is the first for the nodes of u.
func (s Reported) First(name string, u *Usage) bool {
	k := reported{name, u.Override}
	if s[k] {
		return false
	}
	s[k] = true
	return true
}
