// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
)

// pciVendors are the vendors of GPUs as PCI numbers them.
var pciVendors = map[string]string{"nvidia": "10de", "amd": "1002"}

// Sockets returns the socket of each of a node's GPUs, in the order of the bus, which is
// that of their device files. It is nil where the inspection did not find it of every
// GPU.
func Sockets(vendor string, gpus int, hw wire.Hardware) []int {
	list := slices.DeleteFunc(slices.Clone(hw.PCI), func(f wire.PCI) bool {
		return f.Vendor != pciVendors[vendor] || !strings.HasPrefix(f.Class, "03") && !strings.HasPrefix(f.Class, "12")
	})
	if len(list) != gpus {
		return nil
	}
	slices.SortFunc(list, func(a, b wire.PCI) int { return strings.Compare(a.Address, b.Address) })
	sockets := make([]int, len(list))
	for i, f := range list {
		if f.Socket == nil || *f.Socket < 0 || *f.Socket >= hw.CPU.Sockets {
			return nil
		}
		sockets[i] = *f.Socket
	}
	return sockets
}
