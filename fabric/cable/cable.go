// Package cable turns the cables of a site into what is ordered, labelled and
// laid: the route of each through the room, its type and length, the schedule
// and the bill of materials. It is pure: no I/O, no clock.
package cable

import (
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Run is one cable as it is laid. A splitter cable is one run.
type Run struct {
	Cables []*inventory.Cable // one, or the halves of a splitter cable
	Label  string             // printed at both ends, unique in the site
	Route  unit.Length        // way from end to end with slack; 0: an end has no place yet
	Length unit.Length        // to order, a length that is sold; as given for a cable block; 0: not known
	Type   string             // as of inventory.Cable, given or chosen; "": not known
	Part   string             // what it is, for the bill: "DAC 400Gbps OSFP"
	Optics int                // transceivers that it needs beside itself
}
