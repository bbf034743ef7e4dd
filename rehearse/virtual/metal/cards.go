// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/mlxconfig"
)

// CardSetting is one setting in the flash of a NIC of NVIDIA's.
type CardSetting struct {
	Name                   string
	Default, Current, Next int
}

// flashSetting is what a flash has, and what the card has loaded from it when it got power.
type flashSetting struct{ factory, next, current int }

// Values of LINK_TYPE.
const (
	typeInfiniBand = 1
	typeEthernet   = 2
)

// cardAt is the place of a card in its node: a PCI address without the function.
func cardAt(address string) string {
	device, _, _ := strings.Cut(address, ".")
	return device
}

// cardModel is the family of the card at a place; false where none of NVIDIA's is. The
// caller holds mu.
func (n *Node) cardModel(at string) (m mlxconfig.Model, ok bool) {
	for i, f := range n.shape.functions {
		if cardAt(f.address) != at || n.removed[i] || f.driver != "mlx5_core" {
			continue
		}
		part := f.vendor + ":" + f.device
		if other, exchanged := n.delivered.models[i]; exchanged {
			part = other.vendor + ":" + other.device
		}
		for _, row := range nicModels {
			if row.vendor+":"+row.device == part {
				return mlxconfig.FindModel(row.match)
			}
		}
	}
	return m, false
}

// flash is the settings of a card by name, as it was delivered until somebody set one: the
// link type of its block, every option ROM on that its host can use, a BlueField as a DPU.
// The caller holds mu.
func (n *Node) flash(at string) map[string]*flashSetting {
	if n.settings[at] != nil {
		return n.settings[at]
	}
	list := map[string]*flashSetting{}
	set := func(name string, v int) { list[name] = &flashSetting{v, v, v} }
	m, _ := n.cardModel(at)
	for i, p := range n.shape.ports {
		address := n.shape.functions[p.function].address
		if _, function, _ := strings.Cut(address, "."); m.VPI && cardAt(address) == at && !n.shape.hardware.AppearsLater(address) {
			kind := typeEthernet
			if n.shape.ports[i].ib {
				kind = typeInfiniBand
			}
			set("LINK_TYPE_P"+nextDigit(function), kind)
		}
	}
	if n.shape.splits(at) {
		for i := range mlxconfig.SplitLanes {
			port := 1
			if i >= m.Split.Lanes {
				port = mlxconfig.Unused
			}
			set(moduleSplit(i), port)
		}
		if m.Split.Functions {
			set(mlxconfig.NumOfPF, 1)
			set(mlxconfig.NumOfPlanes, 0)
		}
	}
	arm := n.shape.hardware.Arch == inventory.ARM64
	set("EXP_ROM_PXE_ENABLE", 1)
	set("EXP_ROM_UEFI_x86_ENABLE", boolNumber(!arm))
	set("EXP_ROM_UEFI_ARM_ENABLE", boolNumber(arm))
	for _, name := range m.DPU {
		set(name, 0)
	}
	if n.settings == nil {
		n.settings = map[string]map[string]*flashSetting{}
	}
	n.settings[at] = list
	return list
}

// moduleSplit is the name of an element of MODULE_SPLIT_M0.
func moduleSplit(i int) string { return fmt.Sprintf("%s[%d]", mlxconfig.ModuleSplit, i) }

// splits reports whether the site has the cage of the card at a place split into ports.
func (s *shape) splits(at string) bool {
	return slices.ContainsFunc(s.functions, func(f function) bool { return cardAt(f.address) == at && s.hardware.AppearsLater(f.address) })
}

// shows reports whether a card shows a function that it has once its cage is split. The caller
// holds mu.
func (n *Node) shows(address string) bool {
	if !n.shape.hardware.AppearsLater(address) {
		return true
	}
	most := 1
	card := n.settings[cardAt(address)]
	for i := range mlxconfig.SplitLanes {
		if s := card[moduleSplit(i)]; s != nil && s.current != mlxconfig.Unused {
			most = max(most, s.current)
		}
	}
	if s := card[mlxconfig.NumOfPF]; s != nil {
		most = min(most, s.current)
	}
	_, text, _ := strings.Cut(address, ".")
	function, err := strconv.Atoi(text)
	return err == nil && function < most
}

// nextDigit is the port of a function: 0 is port 1.
func nextDigit(function string) string {
	if function == "1" {
		return "2"
	}
	return "1"
}

func boolNumber(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// Card is the settings of the card at an address, and its family; false where none of
// NVIDIA's is.
func (k *Kernel) Card(address string) (device string, list []CardSetting, ok bool) {
	n, at := k.node, cardAt(address)
	n.mu.Lock()
	defer n.mu.Unlock()
	m, ok := n.cardModel(at)
	if !ok {
		return "", nil, false
	}
	for name, s := range n.flash(at) {
		list = append(list, CardSetting{name, s.factory, s.current, s.next})
	}
	return m.Device, list, true
}

// SetCard writes a setting into the flash of a card: it is in force from the next time on
// that the card gets power. One whose flash is worn out says yes and keeps nothing.
func (k *Kernel) SetCard(address, name string, value int) error {
	n, at := k.node, cardAt(address)
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.flash(at)[name]
	if s == nil {
		return errkind.New(errkind.Unsupported, "the device does not support %s", name)
	}
	if !n.volatile[at] {
		s.next = value
	}
	return nil
}

// PowerUp lets every card load its settings, as it does when the chassis gets power.
func (n *Node) PowerUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, card := range n.settings {
		for _, s := range card {
			s.current = s.next
		}
	}
	n.findMisfits()
}

// linkType begins the names of the settings of link types, which end with the port's number.
const linkType = "LINK_TYPE_P"

// linkTypeOf is the name of the setting of the port at an address. The ports of one cage have
// one.
func (s *shape) linkTypeOf(address string) string {
	_, digit, _ := strings.Cut(address, ".")
	if s.hardware.AppearsLater(address) {
		digit = "0"
	}
	return linkType + nextDigit(digit)
}

// FlipLinkType delivers the card of the port at an address with the other link type than
// its block says, on all of its ports but one that the node boots from: that one has worked
// before. False where it has no such setting.
func (n *Node) FlipLinkType(address string) (done bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	keep := ""
	for _, p := range n.shape.ports {
		if at := n.shape.functions[p.function].address; p.boot && cardAt(at) == cardAt(address) {
			keep = n.shape.linkTypeOf(at)
		}
	}
	for name, s := range n.flash(cardAt(address)) {
		if strings.HasPrefix(name, linkType) && name != keep {
			v := typeInfiniBand + typeEthernet - s.next
			*s, done = flashSetting{v, v, v}, true
		}
	}
	n.findMisfits()
	return done
}

// LoseSettings lets the flash of the card at an address keep nothing that is written.
func (n *Node) LoseSettings(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.volatile == nil {
		n.volatile = map[string]bool{}
	}
	n.volatile[cardAt(address)] = true
}

// OtherType reports whether a port runs as the other link type than its block says, or is not
// there before its cage is split: its interface is then none of those that the system knows,
// and no switch answers it.
func (n *Node) OtherType(address string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.function(address)
	return i >= 0 && n.misfits[i]
}

// findMisfits notes which ports run as the other link type than their block says, or are not
// there before their cage is split. The caller holds mu.
func (n *Node) findMisfits() {
	n.misfits, n.hidden = nil, nil
	for _, p := range n.shape.ports {
		address := n.shape.functions[p.function].address
		s := n.settings[cardAt(address)][n.shape.linkTypeOf(address)]
		hidden := !n.shows(address)
		if hidden {
			n.hidden = withMember(n.hidden, p.function)
		}
		if hidden || s != nil && p.ib != (s.current == typeInfiniBand) {
			n.misfits = withMember(n.misfits, p.function)
		}
	}
}

// withMember adds a function to a set, which may be nil.
func withMember(all map[int]bool, function int) map[int]bool {
	if all == nil {
		all = map[int]bool{}
	}
	all[function] = true
	return all
}

// isMisfit is OtherType of a function.
func (n *Node) isMisfit(function int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.misfits[function]
}

// hasNetdev reports whether the network interface of a function is there: it is not where
// the function is off the bus, or runs as the other link type.
func hasNetdev(function int) func(*Kernel) bool {
	return func(k *Kernel) bool {
		k.node.mu.Lock()
		defer k.node.mu.Unlock()
		return !k.node.removed[function] && !k.node.misfits[function] // those that are hidden are among these
	}
}

// linkLayer is what an RDMA port is by what its card has loaded.
func (k *Kernel) linkLayer(i int) string {
	p := k.node.shape.ports[i]
	return chooseText(p.ib != k.node.isMisfit(p.function), "InfiniBand", "Ethernet")
}

// vitalData is the vital product data of a card (PCI 3.0, appendix I): its part number and
// its serial number.
func (k *Kernel) vitalData(function int) string {
	const part = "IRN0001"
	serial := serialOf(k.node.made, "NIC "+cardAt(k.node.shape.functions[function].address))
	body := fmt.Sprintf("PN%c%sSN%c%s", len(part), part, len(serial), serial)
	return fmt.Sprintf("\x82\x03\x00NIC\x90%c%c%s\x78", len(body)&0xff, len(body)>>8, body)
}
