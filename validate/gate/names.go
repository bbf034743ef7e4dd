package gate

import "github.com/ironrail/ironrail/inventory"

// Names are what the parts of a node are called in findings, by PCI address: those
// that a program gave a number to.
func Names(h *inventory.Hardware, s Seen) map[string]string {
	j := &judge{hardware: h, seen: s, names: map[string]string{}, at: map[string]int{}}
	j.name()
	return j.names
}
