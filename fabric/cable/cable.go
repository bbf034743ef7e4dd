// Package cable turns the cables of a site into what is ordered, labelled and
// laid: the route of each through the room, its type and length, the schedule
// and the bill of materials. It is pure: no I/O but the writers it is given, no
// clock. Everything is deterministic, linear in the number of cables but for one
// sort, and safe for concurrent use.
package cable

import (
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Run is one cable as it is laid. A splitter cable is one run.
type Run struct {
	Cables []*inventory.Cable // one, or the halves of a splitter cable
	Label  string             // printed at both ends, unique in the site, at most 22 characters
	Route  unit.Length        // way from end to end with slack, the longest of a splitter; 0: an end has no place yet
	Length unit.Length        // to order, a length that is sold; as given for a cable block; 0: not known
	Type   string             // as of inventory.Cable, given or chosen; "": not known
	Part   string             // what it is, for the bill: "DAC 400Gbps"; "": not known
	Optics int                // ends that need a transceiver beside the cable

	Fabric *inventory.Fabric // that it belongs to; nil: none
	Rail   int               // -1: none
	Speed  unit.BitRate      // of all halves together; 0: not known

	optic string // what the transceivers are, for the bill; "": none
}
