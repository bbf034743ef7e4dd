// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
)

// railWords is how findings name a rail of a node, with its fabric where a node is on
// several.
var railWords = lazyregexp.New(`^rail (\d+)(?: of ([^ ,]+))?(?:,| \(|$)`)

// Resolve finds the parts that a finding means by the name that it gives: those
// whose serial number or slot is in it, the NIC of a rail or of a port, else, for
// what has no serial number of its own, the chassis. None: the name is of no
// hardware, such as "identity" or "repository". n may be nil.
func Resolve(fits []Fit, part string, n *inventory.Node) []Fit {
	name := strings.ToLower(part)
	if name == "" {
		return nil
	}
	if out := pickFits(fits, func(f Fit) bool { return f.Kind != Chassis && strings.Contains(name, strings.ToLower(f.Serial)) }); len(out) > 0 {
		return out
	}
	word, rest, _ := strings.Cut(name, " ")
	switch word {
	case "disk":
		slot, _, _ := strings.Cut(rest, " ")
		return disksIn(fits, slot)
	case "dimm":
		if out := pickFits(fits, func(f Fit) bool { return f.Kind == DIMM && rest != "" && strings.ToLower(f.Slot) == rest }); len(out) > 0 {
			return out
		}
		return pickFits(fits, isChassis)
	case "nic", "rail":
		if pci := pciOf(n, part); pci != "" {
			return pickFits(fits, func(f Fit) bool { return f.Kind == NIC && f.Slot == pci })
		}
	case "memory", "gpu", "cpu", "chassis", "board":
		return pickFits(fits, isChassis)
	}
	return nil
}

// disksIn are the disks in a slot, else the only disk that there is.
func disksIn(fits []Fit, slot string) []Fit {
	disks := pickFits(fits, func(f Fit) bool { return f.Kind == Disk })
	if out := pickFits(disks, func(f Fit) bool { return strings.ToLower(f.Slot) == slot }); len(out) > 0 {
		return out
	}
	if len(disks) == 1 {
		return disks
	}
	return nil
}

func pickFits(fits []Fit, is func(Fit) bool) (out []Fit) {
	for _, f := range fits {
		if is(f) {
			out = append(out, f)
		}
	}
	return out
}

func isChassis(f Fit) bool { return f.Kind == Chassis }

// pciOf is the address of the port that a finding means by "nic rail/3", "rail 3,
// sending" or "rail 3 of compute"; "" when the hardware block does not say, or has that
// rail in several fabrics and the finding names none.
func pciOf(n *inventory.Node, part string) string {
	if n == nil || n.Hardware == nil {
		return ""
	}
	rail, fabric := -1, ""
	if m := railWords.FindStringSubmatch(part); m != nil {
		rail, _ = strconv.Atoi(m[1]) // digits
		fabric = m[2]
	}
	word, _, _ := strings.Cut(strings.TrimPrefix(part, "nic "), " ")
	found := ""
	for _, nic := range n.Hardware.NICs {
		for i, p := range nic.Ports {
			onRail := rail >= 0 && nic.Fabric != nil && p.Rail == rail && (fabric == "" || nic.Fabric.Name == fabric)
			if !onRail && word != fmt.Sprintf("%s/%d", nic.Name, i) {
				continue
			}
			if found != "" && found != p.PCI {
				return ""
			}
			found = p.PCI
		}
	}
	return found
}
