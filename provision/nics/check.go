// SPDX-License-Identifier: Apache-2.0

package nics

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/tool/mlxconfig"
)

// The names of the checks.
const (
	checkLinkType = "nic.link-type"
	checkSettings = "nic.settings"
)

// Check finds settings that a card does not have, that would take a node's way to boot, or
// that nothing on a node can write. It is pure.
func Check(inv *inventory.Inventory) (found diag.List) {
	for _, h := range inv.Hardware {
		c := checker{&found, h}
		for i := range h.NICs {
			c.checkLinkType(&h.NICs[i])
		}
		for _, o := range optionsOf(h) {
			c.checkOption(o)
		}
		c.checkSplits()
		c.checkModes()
		c.checkROMs()
	}
	checkPrograms(inv, &found)
	checkDiskless(inv, &found)
	return found
}

// checkDiskless refuses settings of nodes that keep their system in memory: they are in force after a
// power cycle, of which nothing in memory is left.
func checkDiskless(inv *inventory.Inventory, found *diag.List) {
	for _, h := range inv.Hardware {
		i := slices.IndexFunc(inv.Nodes, func(n *inventory.Node) bool { return n.Hardware == h && n.Diskless() && Gives(n) })
		if i < 0 {
			continue
		}
		n := inv.Nodes[i]
		found.Add("image.diskless", optionsOf(h)[0].at, "NIC settings of a system in memory", fmt.Sprintf("Node %q keeps image %q in memory, and settings of NICs are in force after a power cycle. Install it to disk once, with this hardware block; then take the settings out, and give it this image.", n.Name, n.Image.Name)).Also("the image, which is kept in memory", n.Image.Decl).In(h.Decl)
	}
}

// checker is the work on one hardware block.
type checker struct {
	found *diag.List
	h     *inventory.Hardware
}

func (c checker) add(o option, summary, format string, args ...any) {
	c.found.Add(checkSettings, o.at, summary, fmt.Sprintf(format, args...)).In(c.h.Decl)
}

// checkLinkType refuses InfiniBand of a card that has Ethernet alone.
func (c checker) checkLinkType(n *inventory.NIC) {
	m, known := mlxconfig.FindModel(n.Model)
	if !known || m.VPI || n.LinkType != "infiniband" {
		return
	}
	vpi := mlxconfig.ModelNames(func(m mlxconfig.Model) bool { return m.VPI })
	c.found.Add(checkLinkType, inventory.PlaceOf(n.Ranges, "link_type", n.Decl), "Link type that the card has not", fmt.Sprintf("%s %q of hardware %q is a %s, whose ports are Ethernet alone. Cards that can be InfiniBand are %s. Correct model or link_type.",
		kindOf(n), n.Name, c.h.Name, m.Name, diag.Quoted(vpi))).In(n.Decl)
}

// checkOption refuses what a model does not know, and cards that nobody finds.
func (c checker) checkOption(o option) {
	switch {
	case o.attribute == "mode" && (!o.known || len(o.model.DPU) == 0):
		c.add(o, "Mode of a card that has none", "%s of hardware %q: %q has no mode that can be set. Models with one are %s.", o.title(), c.h.Name, o.name, diag.Quoted(mlxconfig.ModelNames(func(m mlxconfig.Model) bool { return len(m.DPU) > 0 })))
	case !o.known && o.name == "":
		c.add(o, "Setting of an unknown card", "%s of hardware %q is set by the vendor's program, and the block does not say which card it is. Give model, one of %s.", o.title(), c.h.Name, diag.Quoted(mlxconfig.ModelNames(nil)))
	case !o.known:
		c.add(o, "Setting of another vendor's card", "%s of hardware %q can be set on NVIDIA's cards alone (%s), and the model is %q. Remove %s, and set it in the firmware's setup.", o.title(), c.h.Name, diag.Quoted(mlxconfig.ModelNames(nil)), o.name, o.attribute)
	case len(o.pci) == 0 || slices.Contains(o.pci, ""):
		c.add(o, "Setting of a card without an address", "%s of hardware %q is set on the card at a PCI address. Give pci = [\"0000:18:00.0\"], or pci in each of the ports.", o.title(), c.h.Name)
	}
}

// checkSplits refuses a split that nobody published for the model, one of the card that nodes
// boot from, and cards of which not each port is written, or more than there are.
func (c checker) checkSplits() {
	functions := map[string][]int{} // those that are written, by card
	for i := range c.h.NICs {
		for _, p := range c.h.NICs[i].Ports {
			if p.PCI != "" {
				first, function := splitFunction(p.PCI)
				functions[first] = append(functions[first], function)
			}
		}
	}
	boot, _ := c.h.BootNIC()
	for _, o := range optionsOf(c.h) {
		if o.attribute != "split" || !o.known {
			continue
		}
		if o.model.Split.Ports(o.split) == nil {
			c.add(o, "Split that the model has not", "%s of hardware %q: %s. Models with a split that is published are %s.", o.title(), c.h.Name, splitsOf(o.model), diag.Quoted(mlxconfig.ModelNames(func(m mlxconfig.Model) bool { return len(m.Split.Into) > 0 })))
			continue
		}
		for _, pci := range o.pci {
			if problem := splitProblem(o, pci, functions, boot); problem != "" {
				c.add(o, "Split that does not fit the ports", "%s of hardware %q: %s", o.title(), c.h.Name, problem)
				break
			}
		}
	}
}

// splitsOf says into how many ports the cage of a model can be split.
func splitsOf(m mlxconfig.Model) string {
	if len(m.Split.Into) == 0 {
		return "no split of a " + m.Name + " is published"
	}
	var list []string
	for _, n := range m.Split.Into {
		list = append(list, strconv.Itoa(n))
	}
	return "the cage of a " + m.Name + " is split into " + strings.Join(list, " or ") + " ports"
}

// splitProblem says why the card at an address cannot be split as it is written; empty: it can.
func splitProblem(o option, pci string, functions map[string][]int, boot *inventory.NIC) string {
	if pci == "" {
		return "" // checkOption says so
	}
	card, _ := splitFunction(pci)
	device := strings.TrimSuffix(card, "0")
	for i := range o.split {
		if !slices.Contains(functions[card], i) {
			return fmt.Sprintf("each port is a function of the card, and the one at %s%d is in no block. Write all %d of the card at %s, each with its rail.", device, i, o.split, card)
		}
	}
	if most := slices.Max(functions[card]); most >= o.split {
		return fmt.Sprintf("the card at %s has %d ports then, and a block has one at %s%d. Remove it, or correct split.", card, o.split, device, most)
	}
	if boot != nil && slices.ContainsFunc(boot.Ports, func(p inventory.NICPort) bool { first, _ := splitFunction(p.PCI); return p.PCI != "" && first == card }) {
		return fmt.Sprintf("nodes boot from the card at %s (nic %q), whose ports must be there before it is set. Split it by hand, and remove split.", card, boot.Name)
	}
	return ""
}

// checkModes compares the number of DPUs with their addresses, and refuses two blocks that
// ask different things of one card.
func (c checker) checkModes() {
	for _, d := range c.h.DPUs {
		if at, given := d.Ranges["count"]; given && len(d.PCI) > 0 && d.Count != len(d.PCI) {
			c.found.Add(checkSettings, at, "Count and addresses that differ", fmt.Sprintf("dpu %q of hardware %q has count = %d and %d PCI addresses. Leave count out, or give one address for each.", d.Name, c.h.Name, d.Count, len(d.PCI))).In(d.Decl)
		}
	}
	type asked struct {
		o    option
		want want
	}
	first := map[string]asked{}
	for _, o := range optionsOf(c.h) {
		for _, pci := range o.pci {
			card, function := splitFunction(pci)
			for _, w := range o.wants(c.h, function) {
				key := card + " " + w.name
				if x, again := first[key]; again && x.want.value != w.value {
					c.found.Add(checkSettings, o.at, "Two settings of one card", fmt.Sprintf("%s asks for %s = %s of the card at %s, and %s for %s. It is one setting of the whole card: write the same in both.", o.title(), w.name, w.word, card, x.o.title(), x.want.word)).Also("the other one", x.o.at).In(c.h.Decl)
					return
				} else if !again {
					first[key] = asked{o, w}
				}
			}
		}
	}
}

// checkROMs keeps the option ROM of the card that nodes boot from.
func (c checker) checkROMs() {
	boot, booting := c.h.BootNIC()
	for _, o := range optionsOf(c.h) {
		if o.attribute != "option_rom" || o.value != "false" {
			continue
		}
		if !booting {
			c.add(o, "Option ROM off without a boot NIC", "%s of hardware %q: no nic block says boot = true, so that nobody knows which card needs its option ROM. Write boot = true into the one that nodes boot from.", o.title(), c.h.Name)
			continue
		}
		for _, p := range boot.Ports {
			if card, _ := splitFunction(p.PCI); p.PCI != "" && slices.ContainsFunc(o.pci, func(pci string) bool { own, _ := splitFunction(pci); return own == card }) {
				c.found.Add(checkSettings, o.at, "Option ROM of the boot NIC", fmt.Sprintf("%s of hardware %q would switch off the option ROM of the card at %s, from which nodes boot (nic %q). Option ROMs are those of a whole card. Remove it.", o.title(), c.h.Name, card, boot.Name)).Also("the boot NIC", boot.Decl).In(c.h.Decl)
				break
			}
		}
	}
}

// checkPrograms finds nodes on which nothing can write the settings: an image that is built
// of packages here has none of those that bring it.
func checkPrograms(inv *inventory.Inventory, found *diag.List) {
	type pair struct {
		h *inventory.Hardware
		r *inventory.Role
	}
	seen := map[pair]bool{}
	for _, n := range inv.Nodes {
		p := pair{n.Hardware, n.Role}
		if !Gives(n) || seen[p] || bringsProgram(n) {
			continue
		}
		seen[p] = true
		o := optionsOf(n.Hardware)[0]
		found.Add(checkSettings, o.at, "Program for NIC settings is missing", fmt.Sprintf("%s of hardware %q is set on nodes such as %q by mlxconfig or mstconfig, and neither image %q nor a driver brings one. Add package \"mstflint\" to the image or to a driver \"inbox\", give the role a driver \"doca\", or remove %s.",
			o.title(), n.Hardware.Name, n.Name, n.Image.Name, o.attribute)).In(n.Hardware.Decl).Of(n.Name)
	}
}

// bringsProgram reports whether a node will have the program, or may have it: what is in an
// image that is not built here is seen when it runs.
func bringsProgram(n *inventory.Node) bool {
	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { name, _, _ := strings.Cut(p, "="); return name == "mstflint" || name == "mft" })
	}
	for _, d := range n.Drivers {
		if d.Kind == "doca" || has(d.Packages) {
			return true
		}
	}
	f, ok := distribution.FamilyOf(n.Image)
	return !ok || f.Manager != distribution.Apt || n.Image.Source != "" || has(n.Image.Packages)
}
