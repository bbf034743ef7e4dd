package validate

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// railOf is one rail of one node.
type railOf struct {
	node, fabric string
	rail         int
}

// leafTable says which switch each rail of each node ends on.
type leafTable map[railOf]string

// of is the switch that a rail ends on; empty where the site does not say.
func (l leafTable) of(node, fabric string, rail int) string { return l[railOf{node, fabric, rail}] }

// leavesOf says which switch each rail of each node ends on, by the cables of the
// site; of a port that is split over several planes the first. It reads the cables
// once, and is pure.
func leavesOf(inv *inventory.Inventory) leafTable {
	leaves := leafTable{}
	for _, c := range inv.Cables {
		at, far := &c.From, &c.To
		if at.Node == nil {
			at, far = far, at
		}
		if at.Node == nil || at.NIC == nil || at.NIC.Fabric == nil || far.Switch == nil || at.Port >= len(at.NIC.Ports) {
			continue
		}
		key := railOf{at.Node.Name, at.NIC.Fabric.Name, at.NIC.Ports[at.Port].Rail}
		if _, known := leaves[key]; !known {
			leaves[key] = far.Switch.Name
		}
	}
	return leaves
}

// suspectLeaf is a suspect that is no node: what leaf passes beyond itself.
func suspectLeaf(name string) stage.Suspect {
	return stage.Suspect{Subject: subject.ID{Kind: subject.Switch, Name: name}, Part: "uplinks"}
}

// doUplinks is what to do about a leaf.
func doUplinks(leaves []string) string {
	return fmt.Sprintf("Look at the links from %s to the spines: which are up, at which speed and width, with which errors, and how flows are spread over them (adaptive routing, ECMP); then at the switch itself. No node was taken out. Then run `ironrail validate`.", strings.Join(leaves, " and "))
}
