// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// action is the next thing to do about a rail that does not take its settings.
const action = "Check the cable and the port of the rail; where PFC or a DSCP is meant, whether the NIC's firmware or an LLDP daemon sets it too (DCBX). Then apply again."

// suspectRails are rails of a node on a fabric. The fabric is named where the node has a
// rail of that number on another one too.
func suspectRails(f *inventory.Fabric, n *inventory.Node, rails []int) (list []stage.Suspect) {
	for _, rail := range rails {
		part := fmt.Sprintf("rail %d", rail)
		if isElsewhere(f, n, rail) {
			part += " of " + f.Name
		}
		list = append(list, stage.Suspect{Subject: subject.OfNode(n.Name), Part: part})
	}
	return list
}

// isElsewhere reports whether a node has a rail of that number on another fabric.
func isElsewhere(f *inventory.Fabric, n *inventory.Node, rail int) bool {
	return slices.ContainsFunc(n.Hardware.NICs, func(nic inventory.NIC) bool {
		return nic.Fabric != nil && nic.Fabric != f && slices.ContainsFunc(nic.Ports, func(p inventory.NICPort) bool { return p.Rail == rail })
	})
}

// evidenceOf returns what the node said, rail by rail.
func evidenceOf(rep wire.RoCEResult) (list []string) {
	for _, p := range rep.Ports {
		if len(p.Problems) > 0 {
			list = append(list, fmt.Sprintf("%s (rail %d): %s", p.Netdev, p.Rail, strings.Join(p.Problems, ", ")))
		}
	}
	return append(list, rep.Problems...)
}
