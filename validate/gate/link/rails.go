// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

const (
	doPort   = "Clean and reseat the cable of this rail, and look at its transceivers and at its switch port; then apply again."
	doDevice = "Read dmesg of the node for the driver of this NIC (mlx5_core, bnxt_re, irdma); power the node off and on, reseat the NIC, then have it replaced."
	doLayer  = "Give the block its link_type and its model, so that apply sets it; or set LINK_TYPE_P1 of this port with mlxconfig, and power the node off and on."
)

// rail is a port of the inventory on a fabric, whose RDMA device is in hardware.
type rail struct {
	nic  *inventory.NIC
	port inventory.NICPort
}

// listRails returns the ports on fabrics whose PCI address the inventory says.
func listRails(j *judge.Node) (list []rail) {
	for i := range j.Hardware.NICs {
		n := &j.Hardware.NICs[i]
		for _, p := range n.Ports {
			if n.Fabric != nil && n.SoftwareRDMA == "" && p.PCI != "" {
				list = append(list, rail{n, p})
			}
		}
	}
	return list
}

// computeRails are those of the one block that the GPUs speak over: the one with
// most ports, when it has one for every two GPUs.
func computeRails(j *judge.Node) (list []rail) {
	var most *inventory.NIC
	for _, r := range listRails(j) {
		if most == nil || len(r.nic.Ports) > len(most.Ports) {
			most = r.nic
		}
	}
	if most == nil || 2*len(most.Ports) < j.Hardware.GPUCount() {
		return nil
	}
	return slices.DeleteFunc(listRails(j), func(r rail) bool { return r.nic != most })
}

// nameOfRail returns what to call a rail.
func nameOfRail(j *judge.Node, r rail) string {
	device := "NIC"
	if p := rdmaPort(j, r); p != nil {
		device = p.Device
	}
	return fmt.Sprintf("rail %d of %s (%s at %s)", r.port.Rail, r.nic.Fabric.Name, device, r.port.PCI)
}

// rdmaPort returns the RDMA port of a rail; nil where the kernel shows none.
func rdmaPort(j *judge.Node, r rail) *wire.InfiniBandPort {
	for i, p := range j.Seen.Health.Ports {
		if strings.EqualFold(p.PCI, r.port.PCI) {
			return &j.Seen.Health.Ports[i]
		}
	}
	return nil
}

// linkAt returns a PCI function that is looked at; nil where there is none.
func linkAt(j *judge.Node, address string) *wire.PCILink {
	for i, l := range j.Seen.Health.PCI {
		if strings.EqualFold(l.Address, address) {
			return &j.Seen.Health.PCI[i]
		}
	}
	return nil
}

// CheckPorts holds the ports of rails against the inventory: state, layer and rate.
// Fabrics that were not brought up have no state yet.
func CheckPorts(j *judge.Node) {
	missingPorts(j)
	for _, r := range listRails(j) {
		p := rdmaPort(j, r)
		if p == nil || p.State == "" || !slices.Contains(j.Seen.Fabrics, r.nic.Fabric.Name) {
			continue
		}
		at := fmt.Sprintf("/sys/class/infiniband/%s/ports/%d", p.Device, p.Number)
		if want := linkLayer(r.nic); p.Layer != "" && p.Layer != want {
			j.Fail(nameOfRail(j, r), doLayer, at+"/link_layer: "+p.Layer, "its port is %s, and the inventory says %s", p.Layer, want)
			continue
		}
		if p.State != "ACTIVE" {
			why := ""
			if p.State == "INIT" {
				why = ": no subnet manager has set it up"
			}
			j.Fail(nameOfRail(j, r), doPort, fmt.Sprintf("%s: state %s, phys_state %s", at, p.State, p.Physical), "its port is %s%s", p.State, why)
			continue
		}
		have, source := carriedRate(j, r, p)
		if want := int64(r.nic.Speed); have > 0 && have < want {
			j.Fail(nameOfRail(j, r), doPort, source, "its link runs at %s, and the inventory says %s", formatGigabits(have), formatGigabits(want))
		}
	}
}

// missingPorts finds rails of fabrics that were brought up whose NIC is on the bus and of which the
// kernel shows no RDMA device, while it shows those of others. A NIC that is gone is found as such.
func missingPorts(j *judge.Node) {
	has := func(r rail) bool { return rdmaPort(j, r) != nil }
	all := railsRead(j)
	if !slices.ContainsFunc(all, has) {
		return
	}
	for _, r := range all {
		if !has(r) && linkAt(j, r.port.PCI) != nil {
			j.Fail(nameOfRail(j, r), doDevice, "/sys/class/infiniband: no device at "+r.port.PCI, "the kernel shows no RDMA device of it, and those of other rails")
		}
	}
}

// linkLayer returns the link layer that a block's ports must have.
func linkLayer(n *inventory.NIC) string {
	if n.LinkType == "infiniband" || n.LinkType == "" && n.Fabric.Kind == "infiniband" {
		return "InfiniBand"
	}
	return "Ethernet"
}

// carriedRate returns what a rail carries, bits a second, and where it stands; 0 when that is
// not known. Of Ethernet the network interface says it: the RDMA layer of kernels
// before 6.8 calls everything above 40 Gb/s 100 (ib_get_eth_speed).
func carriedRate(j *judge.Node, r rail, p *wire.InfiniBandPort) (bits int64, source string) {
	if p.Layer == "Ethernet" {
		l := linkAt(j, r.port.PCI)
		if l == nil || l.Bits == nil {
			return 0, ""
		}
		return *l.Bits, fmt.Sprintf("/sys/bus/pci/devices/%s/net: speed %d Mb/s", l.Address, *l.Bits/1e6)
	}
	number, _, _ := strings.Cut(p.Rate, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, ""
	}
	return int64(v * 1e9), fmt.Sprintf("/sys/class/infiniband/%s/ports/%d/rate: %s", p.Device, p.Number, p.Rate)
}

func formatGigabits(bits int64) string {
	return strconv.FormatFloat(float64(bits)/1e9, 'f', -1, 64) + " Gb/s"
}

// What a bring-up and the life of a node explain: the loading of drivers, resets of
// firmware, restarts of the switch and a cable that is plugged again take a link
// down a few times, and a day in service may do so once.
const (
	mostFlaps   = 10
	flapsPerDay = 1
	day         = 86400. // seconds
)

// CheckFlaps holds how often links went down against what is explained.
func CheckFlaps(j *judge.Node) {
	most := int64(mostFlaps + flapsPerDay*j.Seen.Health.Uptime/day)
	for _, r := range listRails(j) {
		if !slices.Contains(j.Seen.Fabrics, r.nic.Fabric.Name) {
			continue
		}
		var downs int64
		source := ""
		if l := linkAt(j, r.port.PCI); l != nil && l.Carriers != nil && *l.Carriers/2 > downs {
			downs, source = *l.Carriers/2, fmt.Sprintf("/sys/bus/pci/devices/%s/net: carrier_changes %d", l.Address, *l.Carriers)
		}
		if p := rdmaPort(j, r); p != nil && p.Downed != nil && *p.Downed > downs {
			downs, source = *p.Downed, fmt.Sprintf("/sys/class/infiniband/%s/ports/%d/counters/link_downed: %d", p.Device, p.Number, *p.Downed)
		}
		if downs > most {
			j.Fail(nameOfRail(j, r), doPort, source, "its link went down %d times, and a bring-up explains %d", downs, most)
		}
	}
}
