// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// ArchOf is the architecture of a node's processors.
func ArchOf(n *inventory.Node) inventory.Arch {
	if n.Hardware == nil {
		return inventory.AMD64 // as without a word
	}
	return cmp.Or(n.Hardware.Arch, inventory.AMD64)
}

// RamdiskImages are the images whose ramdisk a node may boot: its own, or, of one that gets none, those
// of its architecture; with Secure Boot those that are made for it, of one distribution, whose
// shim the node is given.
func RamdiskImages(inv *inventory.Inventory, n *inventory.Node) (list []*inventory.Image) {
	if n.Image != nil {
		return []*inventory.Image{n.Image}
	}
	secure := n.Hardware != nil && n.Hardware.SecureBoot
	for _, i := range inv.Images {
		if i.Arch == ArchOf(n) && (!secure || i.SecureBoot && (len(list) == 0 || SignerOf(i) == SignerOf(list[0]))) {
			list = append(list, i)
		}
	}
	return list
}

// SignerOf is the distribution whose signed loaders start an image; "" where its kind does not say one.
func SignerOf(i *inventory.Image) string {
	f, _ := distribution.FamilyOf(i)
	return f.Name
}

// SignedFor is the distribution whose signed loaders a node is given, as loader.In takes it.
func SignedFor(inv *inventory.Inventory, n *inventory.Node) string {
	for _, i := range RamdiskImages(inv, n) {
		return SignerOf(i)
	}
	return loader.Debian
}
