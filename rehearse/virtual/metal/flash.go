// SPDX-License-Identifier: Apache-2.0

package metal

// FlashNIC puts another firmware into the flash of the PCI function at an address;
// false when the function is not there. It runs at once.
func (n *Node) FlashNIC(address, version string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.function(address)
	if i < 0 {
		return false
	}
	if n.flashes == nil {
		n.flashes = map[int]string{}
	}
	n.flashes[i] = version
	return true
}

// firmwareOf is the firmware that a function's NIC runs.
func (n *Node) firmwareOf(function int) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if v, other := n.flashes[function]; other {
		return v
	}
	return n.hcaVersion()
}
