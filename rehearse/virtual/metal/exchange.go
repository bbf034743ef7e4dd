// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"fmt"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
)

// What a technician exchanges. The node must be without power: kernels read
// their hardware once.

// Replace puts other hardware of the same block in the node's place: another
// serial number, UUID, MACs and GUIDs, whole DIMMs, and blank disks. What it is is
// derived from seed, so that the same seed brings the same chassis.
func (n *Node) Replace(seed string) {
	made := n.name + "\x00" + seed
	n.mu.Lock()
	n.made, n.serial, n.uuid = made, serialOf(made, "chassis"), uuidOf(made)
	n.mac = addr.MAC{}
	for i, p := range n.shape.ports {
		n.ports[i].mac = macOf(made, p.nic, p.index)
		if p.boot || n.mac.IsZero() {
			n.mac = n.ports[i].mac
		}
	}
	n.modules, n.pulled, n.removed, n.flashes, n.hang = nil, nil, nil, nil, -1
	n.settings, n.volatile = nil, nil // NICs are as they are delivered
	n.delivered = delivered{}
	n.findMisfits()
	n.mu.Unlock()
	for _, d := range n.disks {
		d.replace(made)
	}
}

// replace puts a blank disk of another serial number into the bay.
func (d *Disk) replace(made string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serial, d.wwn, d.root, d.bad = serialOf(made, d.slot.name), wwnOf(made, d.slot.name), nil, nil
	d.counters = DiskCounters{}
	clear(d.content.segments)
}

// ExchangeChassis swaps two chassis with all that is in them; they must be of one
// hardware block.
func ExchangeChassis(a, b *Node) error {
	if a.shape != b.shape {
		return errkind.New(errkind.Mismatch, "%s and %s are not of one hardware block", a.name, b.name)
	}
	first, second := lockOrder(a, b)
	first.mu.Lock()
	second.mu.Lock()
	a.made, b.made = b.made, a.made
	a.serial, b.serial = b.serial, a.serial
	a.uuid, b.uuid = b.uuid, a.uuid
	a.mac, b.mac = b.mac, a.mac
	a.ports, b.ports = b.ports, a.ports
	a.modules, b.modules = b.modules, a.modules
	a.pulled, b.pulled = b.pulled, a.pulled
	a.removed, b.removed = b.removed, a.removed
	a.settings, b.settings = b.settings, a.settings
	a.volatile, b.volatile = b.volatile, a.volatile
	a.hang, b.hang = b.hang, a.hang
	a.delivered, b.delivered = b.delivered, a.delivered
	a.findMisfits()
	b.findMisfits()
	// A DIMM without a serial number of its own has one that follows from made.
	second.mu.Unlock()
	first.mu.Unlock()
	for i := range a.disks {
		if err := ExchangeDisks(a, b, i); err != nil {
			return err
		}
	}
	return nil
}

// ExchangeDisks swaps the disks of one bay between two nodes, with content,
// defects and serial number.
func ExchangeDisks(a, b *Node, bay int) error {
	if bay < 0 || bay >= len(a.disks) || bay >= len(b.disks) || a.disks[bay].slot.size != b.disks[bay].slot.size {
		return errkind.New(errkind.Mismatch, "%s and %s have no disks of one size in bay %d", a.name, b.name, bay)
	}
	if a == b {
		return nil
	}
	first, second := lockOrder(a, b)
	exchangeDisks(first.disks[bay], second.disks[bay])
	return nil
}

// PutDIMM puts a module as the block says into a slot; what was there is thrown away.
func (n *Node) PutDIMM(slot int, serial string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slot < 0 || slot >= len(n.shape.dimm) || serial == "" {
		return errkind.New(errkind.NotFound, "no DIMM goes into slot %d of %s", slot, n.name)
	}
	if n.modules == nil {
		n.modules = map[int]string{}
	}
	n.modules[slot] = serial
	delete(n.pulled, slot)
	delete(n.delivered.dimms, slot)
	return nil
}

// DIMM returns the serial number of the module of a slot, and whether it is seen;
// one that was taken out, or that is not seen, keeps its number. "": there is no
// such slot.
func (n *Node) DIMM(slot int) (serial string, there bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slot < 0 || slot >= len(n.shape.dimm) {
		return "", false
	}
	if serial = n.modules[slot]; serial == "" {
		serial = serialOf(n.made, fmt.Sprintf("DIMM%d", slot))
	}
	return serial, !n.pulled[slot]
}

// lockOrder locks two nodes in one order everywhere.
func lockOrder(a, b *Node) (first, second *Node) {
	if a.name > b.name {
		return b, a
	}
	return a, b
}

// origin is what the node's serial numbers are derived from.
func (n *Node) origin() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.made
}

// portMAC is the MAC of a port.
func (n *Node) portMAC(i int) addr.MAC {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ports[i].mac
}
