// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// olderFirmware is older than what NICs of the rack are delivered with.
const olderFirmware = "28.39.1002"

// flashOlder puts an older firmware into one NIC.
func (n *Node) flashOlder(f fault.Fault) error {
	id, err := n.port(f.Port)
	if err != nil {
		return err
	}
	for _, p := range n.metal.Ports() {
		if p.NIC == id.NIC && p.Index == id.Index && n.metal.FlashNIC(p.PCI, olderFirmware) {
			return nil
		}
	}
	return errkind.New(errkind.NotFound, "%s has no PCI function for %s", n.inv.Name, id)
}

// deliveredVersion returns the version of a firmware that the hardware block asks for; nil
// where it asks for none.
func deliveredVersion(limit unit.VersionLimit) func() string {
	if limit.IsZero() {
		return nil
	}
	return func() string { return limit.Version }
}
