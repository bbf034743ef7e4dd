// SPDX-License-Identifier: Apache-2.0

package bought

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

// port is a port of a block with what the kernel shows at its PCI address.
type port struct {
	nic  *inventory.NIC
	name string // rail/3
	link wire.PCILink
}

func portsOf(j *judge.Node) (list []port) {
	for i := range j.Hardware.NICs {
		n := &j.Hardware.NICs[i]
		for k, p := range n.Ports {
			for _, l := range j.Seen.Health.PCI {
				if p.PCI != "" && strings.EqualFold(l.Address, p.PCI) {
					list = append(list, port{n, fmt.Sprintf("%s/%d", n.Name, k), l})
				}
			}
		}
	}
	return list
}

// CheckNIC holds the PCI id of each port against `model` of its block.
func CheckNIC(j *judge.Node) {
	for _, p := range portsOf(j) {
		id := p.link.Vendor + ":" + p.link.Device
		want, ids := familyOf(p.nic.Model)
		is := familyOfID(id)
		if want == "" || is == "" || want == is || slices.Contains(ids, id) {
			continue
		}
		j.Fail("NIC at "+p.link.Address, action("model of "+p.nic.Name, j.Hardware.Name, p.nic.Decl), "/sys/bus/pci/devices/"+p.link.Address+": "+id,
			"its PCI id %s is that of %s, and hardware.%s says %s", id, is, j.Hardware.Name, p.nic.Model)
	}
}

// NICCoverage is how many ports could be compared with their block.
func NICCoverage(j *judge.Node) judge.Coverage {
	n, declared := 0, false
	for _, p := range portsOf(j) {
		want, _ := familyOf(p.nic.Model)
		declared = declared || p.nic.Model != ""
		if want != "" && familyOfID(p.link.Vendor+":"+p.link.Device) != "" {
			n++
		}
	}
	switch {
	case !declared:
		return judge.Coverage{}
	case n == 0:
		return judge.Coverage{Missing: "no NIC has a PCI id or a block with a model that is in ironrail's table"}
	}
	return judge.Covered("PCI ids of %d network ports", n)
}

// CheckSpeed holds what ports on networks carry against `speed` of their block. One without a
// link says nothing; rails are judged with their ports.
func CheckSpeed(j *judge.Node) {
	for _, p := range portsOf(j) {
		if p.nic.Network == nil || p.nic.Speed == 0 || p.link.Bits == nil || *p.link.Bits >= int64(p.nic.Speed) {
			continue
		}
		j.Fail("nic "+p.name, "Look at the cable and the switch port: their speed and autonegotiation; or correct speed of "+p.nic.Name+".",
			fmt.Sprintf("/sys/bus/pci/devices/%s/net: speed %d Mb/s", p.link.Address, *p.link.Bits/1e6), "its link runs at %s, and hardware.%s says %s", unit.BitRate(*p.link.Bits), j.Hardware.Name, p.nic.Speed)
	}
}

// SpeedCoverage is how many ports on networks report their speed.
func SpeedCoverage(j *judge.Node) judge.Coverage {
	n, declared := 0, 0
	for _, p := range portsOf(j) {
		if p.nic.Network == nil || p.nic.Speed == 0 {
			continue
		}
		declared++
		if p.link.Bits != nil {
			n++
		}
	}
	switch {
	case declared == 0:
		return judge.Coverage{}
	case n == 0:
		return judge.Coverage{Missing: "no port on a network has a link that tells its speed"}
	}
	return judge.Covered("links of %d of %d ports on networks", n, declared)
}

// mtuOf is the MTU that a network or RoCE fabric declares for a port; 0: none.
func mtuOf(n *inventory.NIC) (mtu int, block string) {
	switch {
	case n.Network != nil:
		return n.Network.MTU, "network." + n.Network.Name
	case n.Fabric != nil && n.Fabric.Kind == "roce":
		return n.Fabric.MTU, "fabric." + n.Fabric.Name
	}
	return 0, ""
}

// CheckMTU holds the MTU of interfaces against that of their network or fabric.
func CheckMTU(j *judge.Node) {
	for _, p := range portsOf(j) {
		want, block := mtuOf(p.nic)
		if want == 0 || p.link.MTU == nil || *p.link.MTU == int64(want) || p.nic.Fabric != nil && !slices.Contains(j.Seen.Fabrics, p.nic.Fabric.Name) {
			continue
		}
		j.Fail("nic "+p.name, "Find out what set it on the node (networkd, udev, the image), and set it right; or correct mtu of "+block+".",
			fmt.Sprintf("/sys/bus/pci/devices/%s/net: mtu %d", p.link.Address, *p.link.MTU), "its MTU is %d, and %s says %d", *p.link.MTU, block, want)
	}
}

// MTUCoverage is how many interfaces report their MTU, where one is declared.
func MTUCoverage(j *judge.Node) judge.Coverage {
	n := 0
	for _, p := range portsOf(j) {
		if want, _ := mtuOf(p.nic); want > 0 && p.link.MTU != nil {
			n++
		}
	}
	if n == 0 {
		return judge.Coverage{}
	}
	return judge.Covered("MTU of %d interfaces", n)
}
