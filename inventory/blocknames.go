// SPDX-License-Identifier: Apache-2.0

package inventory

// BlockNames are the names of the blocks that a node is made of. Empty: it has none.
type BlockNames struct {
	Rack, Role, Hardware, Network, Image, Handover string
}

// BlockNames names the blocks of a node. The image is the block that the node gets,
// which for a pinned node is a copy with a name of its own.
func (n *Node) BlockNames() (b BlockNames) {
	if n.Rack != nil {
		b.Rack = n.Rack.Name
	}
	if n.Role != nil {
		b.Role = n.Role.Name
	}
	if n.Hardware != nil {
		b.Hardware = n.Hardware.Name
	}
	if n.BootNetwork != nil {
		b.Network = n.BootNetwork.Name
	}
	if n.Image != nil {
		b.Image = n.Image.Name
	}
	if n.Handover != nil {
		b.Handover = n.Handover.Name
	}
	return b
}
