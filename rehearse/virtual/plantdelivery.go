// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// What is delivered in the place of something else.
const (
	otherCPU    = "Intel(R) Xeon(R) Gold 6548N"
	otherDisk   = "KIOXIA KCD81RUG3T84"
	missingHBM  = 0.2
	splitSocket = 4    // NUMA nodes of each socket
	slowModule  = 4400 // MT/s
	shortMTU    = 1400 // bytes
	otherModule = "FTCE4717E1PCB"
)

// otherGPUs and otherNICs are models by those in whose places they are delivered, each the
// first that fits.
var (
	otherGPUs = [][2]string{{"gb200", "B200"}, {"b200", "H200"}, {"h200", "H100"}, {"h100", "H200"}, {"a100", "H100"}, {"mi300", "MI325X"}, {"mi325", "MI300X"}}
	otherNICs = [][2]string{{"connectx-8", "ConnectX-7"}, {"connectx-7", "ConnectX-8"}, {"bluefield", "ConnectX-7"}, {"bcm57608", "BCM57508"}, {"thor2", "BCM57508"}, {"", "ConnectX-6 Dx"}}
)

// otherModel finds what is delivered in the place of a model.
func otherModel(rows [][2]string, name string) string {
	for _, r := range rows {
		if strings.Contains(strings.ToLower(name), r[0]) {
			return r[1]
		}
	}
	return rows[len(rows)-1][1]
}

func (n *Node) exchangeGPU(f fault.Fault) error {
	at, err := n.gpu(f)
	if err != nil {
		return err
	}
	for _, g := range n.inv.Hardware.GPUs {
		if n.metal.ReplacePCI(at, otherModel(otherGPUs, g.Model)) {
			return nil
		}
	}
	return errkind.New(errkind.NotFound, "no GPU of %s can be exchanged", n.inv.Name)
}

func (n *Node) slowGPU(f fault.Fault) error {
	at, err := n.gpu(f)
	if err == nil && !n.metal.SlowPCI(at) {
		err = errkind.New(errkind.NotFound, "the GPU at %s of %s has no PCIe link", at, n.inv.Name)
	}
	return err
}

// shrinkDIMM exchanges modules so that the sum is what it was: only their sizes tell.
func (n *Node) shrinkDIMM(fault.Fault) error {
	half := n.metal.DIMMSize(emptySlot) / 2
	if !n.metal.ReplaceDIMM(emptySlot, half, 0) || !n.metal.ReplaceDIMM(emptySlot-1, n.metal.DIMMSize(emptySlot-1)+half, 0) {
		return errkind.New(errkind.NotFound, "%s has less than %d DIMMs", n.inv.Name, emptySlot+1)
	}
	return nil
}

func (n *Node) slowDIMM(fault.Fault) error {
	if !n.metal.ReplaceDIMM(emptySlot, 0, slowModule) {
		return errkind.New(errkind.NotFound, "%s has less than %d DIMMs", n.inv.Name, emptySlot+1)
	}
	return nil
}

// portAddress is the PCI address of the port that a fault names.
func (n *Node) portAddress(f fault.Fault) (address, model string, err error) {
	nic, i, err := fault.PortOf(n.inv, f.Port)
	if err != nil {
		return "", "", err
	}
	id := portID(n.inv, nic, i)
	for _, p := range n.metal.Ports() {
		if p.NIC == id.NIC && p.Index == id.Index {
			return p.PCI, nic.Model, nil
		}
	}
	return "", "", errkind.New(errkind.NotFound, "%s has no PCI function for %s", n.inv.Name, id)
}

func (n *Node) exchangeNIC(f fault.Fault) error {
	at, model, err := n.portAddress(f)
	if err == nil && !n.metal.ReplacePCI(at, otherModel(otherNICs, model)) {
		err = errkind.New(errkind.NotFound, "the NIC at %s of %s cannot be exchanged", at, n.inv.Name)
	}
	return err
}

func (n *Node) shortenFrames(f fault.Fault) error {
	at, _, err := n.portAddress(f)
	if err == nil && !n.metal.FixMTU(at, shortMTU) {
		err = errkind.New(errkind.NotFound, "%s has no interface at %s", n.inv.Name, at)
	}
	return err
}

func (n *Node) exchangeDisk(fault.Fault) error {
	if last := len(n.metal.Disks()) - 1; !n.metal.SetDiskModel(last, otherDisk) {
		return errkind.New(errkind.NotFound, "%s has no disk", n.inv.Name)
	}
	return nil
}

// What a host does less than it should.
const (
	cappedClock   = 0.75
	throttledDisk = 1.0 / 3
	heldNetwork   = 0.6
)

func (n *Node) slowNetwork(f fault.Fault) error {
	if f.End == fault.EndSwitch {
		n.metal.SlowNetwork(0, heldNetwork)
	} else {
		n.metal.SlowNetwork(heldNetwork, 0)
	}
	return nil
}

func (n *Node) throttleDisk(fault.Fault) error {
	if last := len(n.metal.Disks()) - 1; !n.metal.ThrottleDisk(last, throttledDisk) {
		return errkind.New(errkind.NotFound, "%s has no disk", n.inv.Name)
	}
	return nil
}

func (n *Node) exchangeModule(f fault.Fault) error {
	at, _, err := n.portAddress(f)
	if err == nil && !n.metal.PlugModule(at, otherModule) {
		err = errkind.New(errkind.NotFound, "the driver of the port at %s of %s tells nothing of its transceiver", at, n.inv.Name)
	}
	return err
}
