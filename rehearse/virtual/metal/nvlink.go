// SPDX-License-Identifier: Apache-2.0

package metal

// AllNVLinks is the number of links that stands for all that a GPU has.
const AllNVLinks = -1

// DarkenNVLinks takes the signal off so many NVLinks of the GPU at an address, or
// off AllNVLinks. It is false if there is no such GPU.
func (n *Node) DarkenNVLinks(address string, links int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.function(address)
	if i < 0 || !isGPU(n.shape.functions[i]) {
		return false
	}
	if n.dark == nil {
		n.dark = map[int]int{}
	}
	n.dark[i] = links
	return true
}

// DarkNVLinks is how many NVLinks of the GPU at an address have no signal;
// AllNVLinks: none has.
func (k *Kernel) DarkNVLinks(address string) int {
	k.node.mu.Lock()
	defer k.node.mu.Unlock()
	if i := k.node.function(address); i >= 0 {
		return k.node.dark[i]
	}
	return 0
}
