package roce

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/agent/wire"
	"github.com/ironrail/ironrail/provision/stage"
	"github.com/ironrail/ironrail/provision/subject"
)

// action is the next thing to do about a rail that does not take its settings.
const action = "Check the cable and the port of the rail; where PFC or a DSCP is meant, whether the NIC's firmware or an LLDP daemon sets it too (DCBX). Then apply again."

// suspects are rails of a node.
func suspects(n *inventory.Node, rails []int) (list []stage.Suspect) {
	for _, rail := range rails {
		list = append(list, stage.Suspect{Subject: subject.OfNode(n.Name), Part: fmt.Sprintf("rail %d", rail)})
	}
	return list
}

// evidence is what the node said, rail by rail.
func evidence(rep wire.RoCEResult) (list []string) {
	for _, p := range rep.Ports {
		if len(p.Problems) > 0 {
			list = append(list, fmt.Sprintf("%s (rail %d): %s", p.Netdev, p.Rail, strings.Join(p.Problems, ", ")))
		}
	}
	return append(list, rep.Problems...)
}
