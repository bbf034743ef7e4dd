// SPDX-License-Identifier: Apache-2.0

package nics

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/mlxconfig"
)

// option is one attribute of a hardware block that is about the flash of NICs.
type option struct {
	block     string // hca.rail
	attribute string // link_type
	value     string // infiniband
	model     mlxconfig.Model
	known     bool     // the model is
	name      string   // of the model, as the block has it
	pci       []string // of the ports or cards
	split     int      // ports that each card is split into; 0: as delivered
	at        hcl.Range
}

// title is the option in words.
func (o option) title() string {
	kind, name, _ := strings.Cut(o.block, ".")
	return fmt.Sprintf("%s of %s %q", o.attribute, kind, name)
}

// optionsOf lists what a hardware block gives, acted on or not, in its order.
func optionsOf(h *inventory.Hardware) (list []option) {
	for i := range h.NICs {
		n := &h.NICs[i]
		o := option{block: kindOf(n) + "." + n.Name, name: n.Model, split: n.Split}
		o.model, o.known = mlxconfig.FindModel(n.Model)
		for _, p := range n.Ports {
			o.pci = append(o.pci, p.PCI)
		}
		if n.LinkType != "" && o.model.VPI { // the ports of others have one type, which the gates compare
			list = append(list, o.with("link_type", n.LinkType, n.Ranges, n.Decl))
		}
		if n.Split > 0 {
			list = append(list, o.with("split", strconv.Itoa(n.Split), n.Ranges, n.Decl))
		}
		if n.OptionROM != nil {
			list = append(list, o.with("option_rom", strconv.FormatBool(*n.OptionROM), n.Ranges, n.Decl))
		}
	}
	for _, d := range h.DPUs {
		if _, given := d.Ranges["mode"]; given {
			o := option{block: "dpu." + d.Name, name: d.Model, pci: d.PCI}
			o.model, o.known = mlxconfig.FindModel(d.Model)
			list = append(list, o.with("mode", d.Mode, d.Ranges, d.Decl))
		}
	}
	return list
}

func (o option) with(attribute, value string, ranges map[string]hcl.Range, decl hcl.Range) option {
	o.attribute, o.value, o.at = attribute, value, inventory.PlaceOf(ranges, attribute, decl)
	return o
}

func kindOf(n *inventory.NIC) string {
	if n.HCA {
		return "hca"
	}
	return "nic"
}

// words says what a hardware block asks for: "link_type infiniband of 8 ports of hca.rail".
func words(h *inventory.Hardware) (list []string) {
	for _, o := range optionsOf(h) {
		list = append(list, fmt.Sprintf("%s %s of %s", o.attribute, o.value, o.block))
	}
	return list
}

// want is one setting that the site asks for of a card, or several elements of an array that
// follow each other.
type want struct {
	name   string // LINK_TYPE_P1, MODULE_SPLIT_M0[0..3]
	value  int
	word   string // of the value: IB; empty: it has none
	must   bool   // a card that does not know it cannot be as asked; else it is so by itself
	option string // whose: link_type of hca "rail"
	array  string // MODULE_SPLIT_M0; empty: the setting is none of an array
	low    int    // the first of the elements
	high   int    // the last of them
}

// asked is the value with its word.
func (w want) asked() string {
	if w.word == "" {
		return strconv.Itoa(w.value)
	}
	return fmt.Sprintf("%s(%d)", w.word, w.value)
}

// argument is the setting as the program takes it. Elements without a port are written as
// NVIDIA's guides write them.
func (w want) argument() string {
	if w.array != "" && w.value == mlxconfig.Unused {
		return w.name + "=" + w.word
	}
	return fmt.Sprintf("%s=%d", w.name, w.value)
}

// card is one card of a node that has settings to be in force.
type card struct {
	pci   string // of its first function
	model mlxconfig.Model
	part  string // as findings name it: NIC at 0000:18:00.0
	wants []want
	split int      // ports that its cage is split into; 0: as delivered
	later []string // functions of the site that it shows once it is split
}

// cardsOf are the cards of a hardware block that something is asked of, by address.
func cardsOf(h *inventory.Hardware) (list []card) {
	for _, o := range optionsOf(h) {
		for _, pci := range o.pci {
			if !o.known || pci == "" {
				continue
			}
			first, function := splitFunction(pci)
			i := slices.IndexFunc(list, func(c card) bool { return c.pci == first })
			if i < 0 {
				i = len(list)
				list = append(list, card{pci: first, model: o.model, part: "NIC at " + pci})
			}
			if o.attribute == "split" {
				list[i].split = o.split
				if function > 0 {
					list[i].later = append(list[i].later, strings.ToLower(pci))
				}
			}
			for _, w := range o.wants(h, function) {
				if !slices.ContainsFunc(list[i].wants, func(x want) bool { return x.name == w.name }) {
					list[i].wants = append(list[i].wants, w)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b card) int { return cmp.Compare(a.pci, b.pci) })
	return list
}

// splitFunction returns the first function of the device that an address is of, and which
// one of its functions that is: ConnectX gives each port a function, in their order.
func splitFunction(pci string) (first string, function int) {
	device, text, _ := strings.Cut(pci, ".")
	function, _ = strconv.Atoi(text) // the language has checked its form
	return strings.ToLower(device) + ".0", function
}

// The option ROMs of a card: the one for legacy PXE, and UEFI's by the architecture of the
// host (mlxconfig's own description of EXP_ROM_*).
const (
	romPXE = "EXP_ROM_PXE_ENABLE"
	romX86 = "EXP_ROM_UEFI_x86_ENABLE"
	romARM = "EXP_ROM_UEFI_ARM_ENABLE"
)

// wants are the settings of a card that an option comes to, at one of its functions.
func (o option) wants(h *inventory.Hardware, function int) (list []want) {
	add := func(name string, value int, word string, must bool) {
		list = append(list, want{name: name, value: value, word: word, must: must, option: o.title()})
	}
	if o.attribute == "split" {
		return o.splitWants()
	}
	switch o.attribute + " " + o.value {
	case "link_type infiniband": // of a cage that is split that of port 1 is the one that is sure to be there
		add(fmt.Sprintf("LINK_TYPE_P%d", function+1), 1, "IB", o.split == 0 || function == 0)
	case "link_type ethernet": // cards of Ethernet alone do not have the setting
		add(fmt.Sprintf("LINK_TYPE_P%d", function+1), 2, "ETH", false)
	case "option_rom false": // what a card does not have is off
		for _, name := range []string{romPXE, romX86, romARM} {
			add(name, 0, "False", false)
		}
	case "option_rom true":
		add(romPXE, 1, "True", false)
		add(map[inventory.Arch]string{inventory.AMD64: romX86, inventory.ARM64: romARM}[h.Arch], 1, "True", true)
	case "mode nic":
		for _, name := range o.model.DPU {
			add(name, 1, map[bool]string{true: "DISABLED", false: "EXT_HOST_PF"}[strings.HasSuffix(name, "ENGINE")], true)
		}
	case "mode dpu":
		for _, name := range o.model.DPU {
			add(name, 0, map[bool]string{true: "ENABLED", false: "ECPF"}[strings.HasSuffix(name, "ENGINE")], true)
		}
	}
	return list
}

// splitWants are the settings that share the cage of a card out to several ports.
func (o option) splitWants() (list []want) {
	if o.model.Split.Functions {
		list = append(list, want{name: mlxconfig.NumOfPlanes, option: o.title()}, // a card that has no planes is without them
			want{name: mlxconfig.NumOfPF, value: o.split, must: true, option: o.title()})
	}
	ports := o.model.Split.Ports(o.split)
	for low := 0; low < len(ports); {
		high := low
		for high+1 < len(ports) && ports[high+1] == ports[low] {
			high++
		}
		w := want{value: ports[low], must: true, option: o.title(), array: mlxconfig.ModuleSplit, low: low, high: high}
		if w.name = fmt.Sprintf("%s[%d..%d]", w.array, low, high); low == high {
			w.name = fmt.Sprintf("%s[%d]", w.array, low)
		}
		if w.value == mlxconfig.Unused {
			w.word = "FF"
		}
		list = append(list, w)
		low = high + 1
	}
	return list
}
