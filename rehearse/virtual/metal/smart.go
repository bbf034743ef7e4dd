// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// Wear is what an NVMe disk has gone through.
type Wear struct {
	Critical    byte // bits of its critical warning
	Used        byte // percent of its life
	MediaErrors uint64
}

// factoryHours is for how long a new disk has run.
const factoryHours = 2

// WearDisk changes what the disk with a name of the kernel's, such as nvme0n1, has
// gone through; false if there is none.
func (n *Node) WearDisk(name string, w Wear) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.disks {
		if d.slot.name == name {
			if n.wear == nil {
				n.wear = map[string]Wear{}
			}
			n.wear[name] = w
			return true
		}
	}
	return false
}

// SMART is the SMART log page of an NVMe disk such as /dev/nvme0 (NVM Express Base
// Specification 2.0, figure 207).
func (k *Kernel) SMART(device string) ([]byte, error) {
	for _, d := range k.node.disks {
		if d.slot.kind != "nvme" || path.Join("/dev", strings.TrimSuffix(d.slot.name, "n1")) != device || k.node.missing(d.slot.function) {
			continue
		}
		k.node.mu.Lock()
		defer k.node.mu.Unlock()
		w := k.node.wear[d.slot.name]
		page := make([]byte, 512)
		at := k.node.shape.functions[d.slot.function].address
		of := func(name quantity.Name, n int64) byte { return byte(k.node.scales.Whole(name, at, n)) }
		page[0], page[3], page[4], page[5] = w.Critical, of(quantity.DiskSpare, 100), of(quantity.DiskSpareLeast, 10), w.Used
		binary.LittleEndian.PutUint16(page[1:], 311)                                                                 // kelvin
		binary.LittleEndian.PutUint64(page[128:], uint64(k.node.scales.Whole(quantity.DiskHours, at, factoryHours))) // hours, in the factory
		binary.LittleEndian.PutUint64(page[160:], w.MediaErrors)
		return page, nil
	}
	return nil, fmt.Errorf("%s: %w", device, fs.ErrNotExist)
}
