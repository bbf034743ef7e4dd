// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/inventory"
)

// SwitchPort names a port of a switch as cables do, such as "net/leaf-1/33".
type SwitchPort = string

// SwitchCounters are what a port of a switch has counted since it was reset. Errors
// are of what arrived by its cable.
type SwitchCounters struct {
	Sent, Received uint64 // packets
	Errors         uint64 // packets that arrived damaged, and what else says that the cable is bad
	Downed         uint64 // how often its link went down, which is among the errors; 0 where the switch does not count it
	Down           bool   // it has no link now; false where the switch does not report
}

// Counted is what the ports of a fabric's switches had counted at a time: of those that had counted
// an error, or had no link.
type Counted struct {
	At       time.Time             `json:"at"`
	Switches []string              `json:"switches"` // that ever answered in the run, sorted
	Errors   map[SwitchPort]uint64 `json:"errors,omitempty"`
	Downed   map[SwitchPort]uint64 `json:"downed,omitempty"`
	Down     []SwitchPort          `json:"down,omitempty"` // sorted
}

// CountedFact is the fact of what the switches of a fabric had counted when they were last read in a
// test, or when a node on it was accepted: what is later is kept. It belongs to the fabric.
const CountedFact = fact.Name[Counted]("fabric.counted")

// CountedOf keeps of a reading what a later one is compared with, but for the switches.
func CountedOf(ports map[SwitchPort]SwitchCounters, at time.Time) Counted {
	c := Counted{At: at.UTC(), Errors: map[SwitchPort]uint64{}, Downed: map[SwitchPort]uint64{}}
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		x := ports[port]
		if x.Errors > 0 {
			c.Errors[port] = x.Errors
		}
		if x.Downed > 0 {
			c.Downed[port] = x.Downed
		}
		if x.Down {
			c.Down = append(c.Down, port)
		}
	}
	return c
}

// SwitchesOf are the switches that ports belong to.
func SwitchesOf(inv *inventory.Inventory, ports map[SwitchPort]SwitchCounters) map[string]bool {
	known := make(map[string]bool, len(inv.Switches))
	for _, s := range inv.Switches {
		known[s.Name] = true
	}
	of := map[string]bool{}
	for port := range ports {
		for i := strings.LastIndexByte(port, '/'); i > 0; i = strings.LastIndexByte(port[:i], '/') {
			if known[port[:i]] {
				of[port[:i]] = true
				break
			}
		}
	}
	return of
}

// Counting is a Kind that can read what the switches of a fabric count.
type Counting interface {
	Kind
	// SwitchCounters reads the ports of the fabric's switches. A port that counted
	// nothing yet has zeros; one that is absent could not be read. It may block, and is
	// safe for concurrent use.
	SwitchCounters(ctx context.Context, f *inventory.Fabric) (map[SwitchPort]SwitchCounters, error)
}

// Sweep is what a look at all cables of a fabric has seen. Only the kind that made it can read it.
type Sweep any

// Swept is the comparison of a fabric's cables with the site.
type Swept struct {
	Found  []stage.Finding // what is wrong and was not yet when the fabric was brought up
	Before bool            // cables were compared then, also where an error says that they cannot be now
	Seen   Sweep           // for CheckManager; nil: nothing was seen
}

// Sweeping is a Kind that can compare the cables of a fabric with the site at any time.
type Sweeping interface {
	Kind
	// Resweep compares the cables of a fabric with the site and with what was wrong when it was
	// brought up, by what steps of the run have learned. It may block.
	Resweep(ctx context.Context, run stage.Run, f *inventory.Fabric) (Swept, error)
}

// Managed is a Kind whose fabrics a manager runs, such as the subnet manager of InfiniBand.
type Managed interface {
	Kind
	// CheckManager returns what is wrong with the manager of a fabric and was not yet when it was given
	// its configuration: lost, where that counts no more, since nobody answers or another manager
	// is the master; weaker, where it matters once the master goes away. before: the manager was asked
	// then, also where the error says that it cannot be asked now. seen is a sweep of this moment by the same
	// kind, so that the fabric is not swept twice; nil: it sweeps. It may block, and changes nothing.
	CheckManager(ctx context.Context, run stage.Run, f *inventory.Fabric, seen Sweep) (lost, weaker []stage.Finding, before bool, err error)
}

// Verifying is a Kind that can compare a node's ports with their settings at any time.
type Verifying interface {
	Kind
	// Verify returns what is not as Apply has set it on a node, and changes nothing. It may block,
	// and is safe for concurrent use.
	Verify(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node) ([]stage.Finding, error)
}
