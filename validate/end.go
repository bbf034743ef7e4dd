package validate

import (
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/isolate"
)

// end is one node's port on a rail.
type end struct {
	node   *inventory.Node
	port   fabric.Port
	fabric string // as railFabric has it
	need   need   // of RDMA writes
}

// need is the least that good hardware gives.
type need struct {
	least float64 // bytes per second; 0 where nothing is known
	limit string  // in words
}

// rail names the rail that the port is of.
func (e end) rail() string { return isolate.RailName(e.fabric, e.port.Rail) }
