// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"

	"github.com/ironrail/ironrail/inventory"
)

// SwitchPort names a port of a switch as cables do, such as "net/leaf-1/33".
type SwitchPort = string

// SwitchCounters are what a port of a switch has counted since it was reset. Errors
// are of what arrived by its cable.
type SwitchCounters struct {
	Sent, Received uint64 // packets
	Errors         uint64 // packets that arrived damaged, and what else says that the cable is bad
}

// Counting is a Kind that can read what the switches of a fabric count.
type Counting interface {
	Kind
	// SwitchCounters reads the ports of the fabric's switches. A port that counted
	// nothing yet has zeros; one that is absent could not be read. It may block, and is
	// safe for concurrent use.
	SwitchCounters(ctx context.Context, f *inventory.Fabric) (map[SwitchPort]SwitchCounters, error)
}
