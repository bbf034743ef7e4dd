// SPDX-License-Identifier: Apache-2.0

package metal

import "cmp"

const (
	// tcpShare of a link's rate is what TCP carries: 1,448 of the 1,538 bytes that a frame takes
	// on the wire with an MTU of 1500.
	tcpShare = 1448.0 / 1538
	// plainLink is how fast a link is whose block says nothing, bits a second.
	plainLink = 10e9
)

// slowed is what is wrong with the boot network of a node, between its NIC and the others.
type slowed struct {
	sends, receives float64 // shares of what they should be; 0: all of it
	packet          int     // bytes of the largest that passes; 0: all do
}

// SlowNetwork holds what the boot NIC sends, and what it receives, to shares of what its link
// carries; 0 holds nothing.
func (n *Node) SlowNetwork(sends, receives float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slowed.sends, n.slowed.receives = sends, receives
}

// LimitPackets lets larger packets than that pass neither to the boot NIC nor from it.
func (n *Node) LimitPackets(bytes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slowed.packet = bytes
}

// BootNetwork is what the boot NIC carries by TCP: its interface, the bytes a second that it sends and
// receives, and the largest packet that passes; 0: all that the interface sends.
func (k *Kernel) BootNetwork() (netdev string, sends, receives float64, packet int) {
	n := k.node
	for i, p := range n.shape.ports {
		if !p.boot {
			continue
		}
		rate := cmp.Or(float64(n.rate(i)), plainLink) / 8 * tcpShare
		n.mu.Lock()
		defer n.mu.Unlock()
		share := func(s float64) float64 { return cmp.Or(s, 1) }
		return p.netdev, rate * n.differs("sends") * share(n.slowed.sends), rate * n.differs("receives") * share(n.slowed.receives), n.slowed.packet
	}
	return "", 0, 0, 0
}
