// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"

	"github.com/ironrail/ironrail/engine/stage"
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

// Sweeping is a Kind that can compare the cables of a fabric with the site at any time.
type Sweeping interface {
	Kind
	// Resweep returns what is wrong with the cables of a fabric and was not yet when it was
	// brought up, by what steps of the run have learned. before: cables were compared then, also
	// where the error says that they cannot be now. It may block.
	Resweep(ctx context.Context, run stage.Run, f *inventory.Fabric) (found []stage.Finding, before bool, err error)
}

// Verifying is a Kind that can compare a node's ports with their settings at any time.
type Verifying interface {
	Kind
	// Verify returns what is not as Apply has set it on a node, and changes nothing. It may block,
	// and is safe for concurrent use.
	Verify(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node) ([]stage.Finding, error)
}
