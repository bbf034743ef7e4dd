// SPDX-License-Identifier: Apache-2.0

package rail

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

// Leaves says which switch each rail of each node ends on.
type Leaves map[railOf]string

// Of is the switch that a rail ends on; empty where the site does not say.
func (l Leaves) Of(node, fabric string, rail int) string { return l[railOf{node, fabric, rail}] }

// LeavesOf says which switch each rail of each node ends on, by the cables of the
// site; of a port that is split over several planes the first. It reads the cables
// once, and is pure.
func LeavesOf(inv *inventory.Inventory) Leaves {
	leaves := Leaves{}
	for _, c := range inv.Cables {
		at, far := c.NodeEnd()
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

// SuspectLeaf is a suspect that is no node: what leaf passes beyond itself.
func SuspectLeaf(name string) stage.Suspect {
	return stage.Suspect{Subject: subject.ID{Kind: subject.Switch, Name: name}, Part: "uplinks"}
}

// DoFabric is what to do about a fabric of which every node and rail is bad alike.
const DoFabric = "Every rail of every node is affected: look at what they all share before any node: the routing engine (ftree, minhop) or ECMP, MTU, flow control and speed of all switches, the settings of the role (drivers, firmware, IOMMU), and the limit. No node was taken out."

// DoUplinks is what to do about a leaf.
func DoUplinks(leaves []string) string {
	return fmt.Sprintf("Look at the links from %s to the spines: which are up, at which speed and width, with which errors, and how flows are spread over them (adaptive routing, ECMP); then at the switch itself. No node was taken out. Then apply again.", strings.Join(leaves, " and "))
}
