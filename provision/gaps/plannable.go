// SPDX-License-Identifier: Apache-2.0

package gaps

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/kinds"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/validate"
)

// Kinds are the kinds of typed blocks that can be planned, by name, and reach nothing.
type Kinds struct {
	Drivers   map[string]driver.Kind
	Fabrics   map[string]fabric.Kind
	Handovers map[string]handover.Kind
}

// LeftOut is one thing that a rehearsal replaces or leaves out.
type LeftOut struct {
	Block string `json:"block"` // "driver", "fabric", "validation", "handover", "image", "disk_layout", "hook", "role": its protect, or "setting"
	Name  string `json:"name"`
	Kind  string `json:"kind,omitempty"` // of a typed block
	Why   string `json:"why"`            // what is missing, or done instead
	Nodes int    `json:"nodes"`          // that ask for it
}

// String is the thing in words, such as `driver r580 (kind cuda)`.
func (l LeftOut) String() string {
	if l.Kind == "" {
		return l.Block + " " + l.Name
	}
	return fmt.Sprintf("%s %s (kind %s)", l.Block, l.Name, l.Kind)
}

// Plannable returns the site without what this ironrail cannot plan yet, and what
// was left out of it, in the order of the stages. The inventory is not changed;
// what is returned shares with it all that is the same, and is itself when
// nothing is left out. What is wrong, and not only missing here, stays in: a plan
// refuses it. It is pure. Plans of real runs are never made from it.
func Plannable(inv *inventory.Inventory, k Kinds) (*inventory.Inventory, []LeftOut) {
	c := cutOf(inv, k)
	if len(c.left) == 0 {
		return inv, nil
	}
	left := make([]LeftOut, len(c.left))
	for i, o := range c.left {
		left[i] = o.LeftOut
	}
	return c.apply(inv), left
}

// omission is what is left out, with the place of its block or setting.
type omission struct {
	LeftOut
	at hcl.Range
}

// omissions are what a rehearsal of a site leaves out.
func omissions(inv *inventory.Inventory, k Kinds) []omission { return cutOf(inv, k).left }

// cutOf finds what has to be left out of a site.
func cutOf(inv *inventory.Inventory, k Kinds) *cut {
	c := &cut{kinds: k, drivers: map[*inventory.Driver]bool{}, fabrics: map[*inventory.Fabric]bool{}, handovers: map[*inventory.Handover]bool{},
		validations: map[*inventory.Validation]*inventory.Validation{}, images: map[*inventory.Image]*inventory.Image{},
		layouts: map[*inventory.DiskLayout]*inventory.DiskLayout{}}
	c.cutImages(inv)
	c.cutDrivers(inv)
	c.cutFabrics(inv)
	c.cutValidations(inv)
	c.cutHandovers(inv)
	c.cutProtect(inv)
	c.cutHooks(inv)
	c.cutSettings(inv)
	return c
}

// leave adds what is left out.
func (c *cut) leave(l LeftOut, at hcl.Range) { c.left = append(c.left, omission{l, at}) }

// cut is what is left out, and what stands in its place.
type cut struct {
	kinds       Kinds
	left        []omission
	drivers     map[*inventory.Driver]bool
	fabrics     map[*inventory.Fabric]bool
	handovers   map[*inventory.Handover]bool
	validations map[*inventory.Validation]*inventory.Validation // nil: nothing of it is left
	images      map[*inventory.Image]*inventory.Image
	layouts     map[*inventory.DiskLayout]*inventory.DiskLayout
	bared       bool // protect is lifted
	unhooked    bool // the site's own programs are not run
}

// cutImages lets a small Debian disk stand for images and layouts of other kinds.
func (c *cut) cutImages(inv *inventory.Inventory) {
	for _, i := range inv.Images {
		n := count(inv, func(n *inventory.Node) bool { return n.Image == i })
		if n == 0 || kinds.Supported(i) {
			continue
		}
		stand, as := *i, "a stand-in of kind "+kinds.StandIn+" is written instead"
		stand.Kind, stand.StandsFor = kinds.StandIn, i.Kind
		if i.Arch == inventory.ARM64 {
			stand.Arch, as = inventory.AMD64, "a stand-in of kind "+kinds.StandIn+", of amd64, is written instead"
		}
		c.images[i] = &stand
		c.leave(LeftOut{"image", i.Name, i.Kind, as, n}, i.Decl)
	}
	for _, l := range inv.DiskLayouts {
		n := count(inv, func(n *inventory.Node) bool { return n.Disks == l && n.Image != nil })
		if n == 0 || install.LayoutSupported(l) {
			continue
		}
		c.layouts[l] = &inventory.DiskLayout{Name: l.Name, On: l.On, Standin: l.RAID >= 0, RAID: -1, Root: inventory.FileSystem{Name: "root", Size: l.Root.Size, Decl: l.Root.Decl}, Decl: l.Decl}
		c.leave(LeftOut{Block: "disk_layout", Name: l.Name, Why: "one ext4 root on one disk is written instead", Nodes: n}, l.Decl)
	}
}

// cutDrivers leaves out the stacks of kinds that cannot be applied.
func (c *cut) cutDrivers(inv *inventory.Inventory) {
	kinds := c.kinds.Drivers
	for _, d := range inv.Drivers {
		n := count(inv, func(n *inventory.Node) bool { return slices.Contains(n.Drivers, d) })
		if n == 0 {
			continue
		}
		why := ""
		switch k := kinds[d.Kind]; {
		case k == nil || stage.HasOnlyNotImplemented(k.Check(d)):
			why = "its kind is not planned yet"
		default:
			why = c.unfit(inv, k, d)
		}
		if why != "" {
			c.drivers[d] = true
			c.leave(LeftOut{"driver", d.Name, d.Kind, why, n}, d.Decl)
		}
	}
}

// unfit says why a stack cannot be brought to the systems of its nodes yet; "" when
// it can. Images are those that stand in.
func (c *cut) unfit(inv *inventory.Inventory, k driver.Kind, d *inventory.Driver) string {
	type system struct {
		i *inventory.Image
		h *inventory.Hardware
	}
	seen := map[system]bool{}
	for _, n := range inv.Nodes {
		s := system{n.Image, n.Hardware}
		if n.Image == nil || seen[s] || !slices.Contains(n.Drivers, d) {
			continue
		}
		seen[s] = true
		there := *n
		if stand := c.images[n.Image]; stand != nil {
			there.Image = stand
		}
		if found := driver.Fit(k, driver.Target{Node: &there, Driver: d}); stage.HasOnlyNotImplemented(found) {
			return because(found)
		}
	}
	return ""
}

// bare reports whether all the drivers of a node are left out.
func (c *cut) bare(n *inventory.Node) bool {
	return len(n.Drivers) > 0 && !slices.ContainsFunc(n.Drivers, func(d *inventory.Driver) bool { return !c.drivers[d] })
}

// cutFabrics leaves out fabrics that cannot be brought up, or not without the
// drivers that are left out.
func (c *cut) cutFabrics(inv *inventory.Inventory) {
	kinds := c.kinds.Fabrics
	members := map[*inventory.Fabric][]*inventory.Node{}
	for _, n := range inv.Nodes {
		for _, f := range fabric.Of(n) {
			members[f] = append(members[f], n)
		}
	}
	for _, f := range inv.Fabrics {
		nodes := members[f]
		if len(nodes) == 0 {
			continue
		}
		why := ""
		switch k := kinds[f.Kind]; {
		case k == nil:
			why = "its kind is not planned yet"
		case slices.ContainsFunc(nodes, c.bare):
			why = "the drivers of its nodes are left out"
		default:
			if found := k.Check(f, nodes); stage.HasOnlyNotImplemented(found) {
				why = because(found)
			}
		}
		if why != "" {
			c.fabrics[f] = true
			c.leave(LeftOut{"fabric", f.Name, f.Kind, why, len(nodes)}, f.Decl)
		}
	}
}

// railless reports whether a node lacks what tests between nodes need: one of its
// fabrics, or its drivers.
func (c *cut) railless(n *inventory.Node) bool {
	return c.bare(n) || slices.ContainsFunc(fabric.Of(n), func(f *inventory.Fabric) bool { return c.fabrics[f] })
}

// cutValidations leaves out tests that there are not yet, and those that lack
// their rails.
func (c *cut) cutValidations(inv *inventory.Inventory) {
	for _, v := range inv.Validations {
		nodes := slices.DeleteFunc(slices.Clone(inv.Nodes), func(n *inventory.Node) bool { return n.Validation != v })
		if len(nodes) == 0 {
			continue
		}
		rest, left := validate.Plannable(inv, v, nodes, !slices.ContainsFunc(nodes, c.railless))
		if len(left) == 0 {
			continue
		}
		if rest.Pair == nil && rest.AllReduce == nil && rest.BurnIn == 0 {
			rest = nil
		}
		c.validations[v] = rest
		c.leave(LeftOut{Block: "validation", Name: v.Name, Why: "without " + strings.Join(left, ", "), Nodes: len(nodes)}, v.Decl)
	}
}

// cutHandovers leaves out schedulers that nodes cannot be given to yet.
func (c *cut) cutHandovers(inv *inventory.Inventory) {
	kinds := c.kinds.Handovers
	for _, h := range inv.Handovers {
		nodes := slices.DeleteFunc(slices.Clone(inv.Nodes), func(n *inventory.Node) bool { return n.Handover != h })
		if len(nodes) == 0 {
			continue
		}
		why := ""
		if k := kinds[h.Kind]; k == nil {
			why = "its kind is not planned yet"
		} else if found := k.Check(h, nodes); stage.HasOnlyNotImplemented(found) {
			why = because(found)
		}
		if why != "" {
			c.handovers[h] = true
			c.leave(LeftOut{"handover", h.Name, h.Kind, why, len(nodes)}, h.Decl)
		}
	}
}

// cutProtect lifts the protection of nodes: on a rack where nothing is there to
// lose, a plan that refuses them would be all that is seen.
func (c *cut) cutProtect(inv *inventory.Inventory) {
	for _, r := range inv.Roles {
		n := count(inv, func(n *inventory.Node) bool { return n.Role == r && n.Protect && n.Image != nil })
		if n > 0 {
			c.bared = true
			c.leave(LeftOut{Block: "role", Name: r.Name, Why: "protect is lifted: there is nothing to lose", Nodes: n}, r.Decl)
		}
	}
}

// cutHooks leaves out the site's own programs: they reach the real world, and what
// they find there says nothing about a rack that is not there.
func (c *cut) cutHooks(inv *inventory.Inventory) {
	installed := count(inv, func(n *inventory.Node) bool { return n.Image != nil })
	for _, h := range inv.Hooks {
		c.unhooked = true
		c.leave(LeftOut{Block: "hook", Name: h.When + " " + h.Stage, Why: "a program of the site's own is not run: it would reach the real world", Nodes: installed}, h.Decl)
	}
}

// cutSettings leaves out the settings that a plan refuses since nothing is done with
// them. Nothing reads them, so that it is enough not to refuse them.
func (c *cut) cutSettings(inv *inventory.Inventory) {
	for _, g := range OfSettings(inv).Of(Refused) {
		c.leave(LeftOut{Block: "setting", Name: g.phrase, Why: "it is not implemented in this version", Nodes: g.Nodes}, g.at)
	}
}

// because is the summaries of errors as the end of a sentence.
func because(found hcl.Diagnostics) string {
	var all []string
	for _, d := range found {
		if s := strings.ToLower(d.Summary[:1]) + d.Summary[1:]; d.Severity == hcl.DiagError && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return strings.Join(all, ", ")
}

// apply copies the inventory without what is left out.
func (c *cut) apply(inv *inventory.Inventory) *inventory.Inventory {
	out := inv.Copy()
	out.Rehearsed = true
	if c.unhooked {
		out.Hooks = nil
	}
	hardware := map[*inventory.Hardware]*inventory.Hardware{}
	for _, n := range out.Nodes {
		c.cutNode(n, hardware)
	}
	out.Images = replaced(inv.Images, c.images)
	out.DiskLayouts = replaced(inv.DiskLayouts, c.layouts)
	out.Validations = slices.DeleteFunc(replaced(inv.Validations, c.validations), func(v *inventory.Validation) bool { return v == nil })
	out.Hardware = replaced(inv.Hardware, hardware)
	out.Drivers = slices.DeleteFunc(slices.Clone(inv.Drivers), func(d *inventory.Driver) bool { return c.drivers[d] })
	out.Handovers = slices.DeleteFunc(slices.Clone(inv.Handovers), func(h *inventory.Handover) bool { return c.handovers[h] })
	return out
}

// cutNode takes from a node what is left out. Its NICs stay, without the fabric:
// that they are there is looked at all the same.
func (c *cut) cutNode(n *inventory.Node, hardware map[*inventory.Hardware]*inventory.Hardware) {
	n.Protect = n.Protect && !c.bared
	n.Drivers = slices.DeleteFunc(slices.Clone(n.Drivers), func(d *inventory.Driver) bool { return c.drivers[d] })
	if c.handovers[n.Handover] {
		n.Handover = nil
	}
	if v, ok := c.validations[n.Validation]; ok {
		n.Validation = v
	}
	if i, ok := c.images[n.Image]; ok {
		n.Image = i
	}
	if l, ok := c.layouts[n.Disks]; ok {
		n.Disks = l
	}
	was := n.Hardware
	if was == nil {
		return
	}
	if hardware[was] == nil {
		h := *was
		h.NICs = slices.Clone(was.NICs)
		for i := range h.NICs {
			if c.fabrics[h.NICs[i].Fabric] {
				h.NICs[i].Fabric = nil
			}
		}
		hardware[was] = &h
	}
	n.Hardware = hardware[was]
}

// replaced is a list with some of its things replaced.
func replaced[T any](list []*T, by map[*T]*T) []*T {
	out := slices.Clone(list)
	for i, v := range out {
		if s, ok := by[v]; ok {
			out[i] = s
		}
	}
	return out
}

// MissingKind is a kind of typed block that the language has and no plan can hold.
type MissingKind struct{ Block, Kind string }

// Missing returns the kinds of the language that cannot be planned, by block and name.
func (k Kinds) Missing(all inventory.Kinds) (list []MissingKind) {
	add := func(block string, of map[string]inventory.KindSpec, has func(string) bool) {
		for _, kind := range slices.Sorted(maps.Keys(of)) {
			if !has(kind) {
				list = append(list, MissingKind{block, kind})
			}
		}
	}
	add("image", all.Image, func(kind string) bool { return slices.Contains(kinds.Names(), kind) })
	add("driver", all.Driver, func(kind string) bool { return k.Drivers[kind] != nil })
	add("fabric", all.Fabric, func(kind string) bool { return k.Fabrics[kind] != nil })
	add("handover", all.Handover, func(kind string) bool { return k.Handovers[kind] != nil })
	return list
}
