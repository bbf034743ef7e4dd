// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/agent/disk"
)

// AddDisk puts one more disk into a node, blank, that its hardware block does not
// name: at a PCI address before those of its other disks, or after them. The kernel
// then names the disks anew. The node must be without power.
func (n *Node) AddDisk(d inventory.Disk, before bool) (*Disk, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.removed)+len(n.lanes)+len(n.pauses)+len(n.dark)+len(n.flashes) > 0 {
		return nil, errkind.New(errkind.Conflict, "%s has faults that are known by the numbers of its functions, which another disk changes", n.name)
	}
	h := *n.shape.hardware
	d.Count = 1
	if d.Bay == "" { // those of the others stay
		taken := map[string]bool{}
		for _, s := range n.shape.disks {
			taken[s.place.bay] = true
		}
		d.Bay = takeLowest(taken, "", 0)
	}
	h.Disks = append(slices.Clone(h.Disks), d)
	at := len(n.disks)
	if before {
		h.Disks, at = append([]inventory.Disk{d}, n.shape.hardware.Disks...), 0
	}
	n.shape = newShape(&h)
	fresh := newDisk(n, n.shape.disks[at])
	if d.Serial == "" && d.WWN == "" {
		fresh.serial, fresh.wwn = serialOf(n.made, "added "+d.Name), wwnOf(n.made, "added "+d.Name)
	}
	n.disks = slices.Insert(slices.Clone(n.disks), at, fresh)
	for i, is := range n.disks {
		is.mu.Lock()
		is.slot = n.shape.disks[i]
		is.mu.Unlock()
	}
	return fresh, nil
}

// ReplaceDisk puts a blank disk of another serial number into a bay; the same seed
// brings the same disk. The node must be without power.
func (n *Node) ReplaceDisk(bay int, seed string) error {
	if bay < 0 || bay >= len(n.disks) {
		return errkind.New(errkind.NotFound, "%s has no bay %d", n.name, bay)
	}
	n.disks[bay].replace(n.origin() + "\x00" + seed)
	return nil
}

// ExchangeBays swaps the disks of two bays of a node, with content, defects and
// serial number. They must be of one size. The node must be without power.
func (n *Node) ExchangeBays(i, j int) error {
	if i < 0 || j < 0 || i >= len(n.disks) || j >= len(n.disks) || n.disks[i].slot.size != n.disks[j].slot.size {
		return errkind.New(errkind.Mismatch, "%s has no disks of one size in the bays %d and %d", n.name, i, j)
	}
	if i != j {
		exchangeDisks(n.disks[min(i, j)], n.disks[max(i, j)])
	}
	return nil
}

// exchangeDisks swaps two disks; where they are of one node, x is that of the lower bay.
func exchangeDisks(x, y *Disk) {
	x.mu.Lock()
	defer x.mu.Unlock()
	y.mu.Lock()
	defer y.mu.Unlock()
	x.serial, y.serial = y.serial, x.serial
	x.wwn, y.wwn = y.wwn, x.wwn
	x.content, y.content = y.content, x.content
	x.root, y.root = y.root, x.root
	x.bad, y.bad = y.bad, x.bad
	x.counters, y.counters = y.counters, x.counters
}

// Sum is the SHA-256 of everything on the disk that is not zero, and where it is:
// equal exactly when the bytes are.
func (d *Disk) Sum() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := sha256.New()
	for _, i := range slices.Sorted(maps.Keys(d.content.segments)) {
		for j, b := range d.content.segments[i] {
			if b == nil || disk.AllZero(b[:]) {
				continue
			}
			at := uint64(i)*uint64(len(d.content.segments[i])) + uint64(j)
			for shift := range 8 {
				_, _ = sum.Write([]byte{byte(at >> (8 * shift))}) // never fails
			}
			_, _ = sum.Write(b[:])
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
