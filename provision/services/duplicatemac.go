// SPDX-License-Identifier: Apache-2.0

package services

import (
	"fmt"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
)

// reportDuplicateMAC makes one finding of each boot attempt under whose MAC two machines ask.
func (v *Services) reportDuplicateMAC(t dhcp.TwoUUIDs) {
	v.duplicateMACs.add(t.Attempt, func() stage.Finding { return duplicateMACFinding(v.network, t) })
}

// duplicateMACFinding is the finding of a MAC that two machines have. It takes nothing out of
// service: whoever sends a DHCP datagram in the node's name makes one.
func duplicateMACFinding(network string, t dhcp.TwoUUIDs) stage.Finding {
	f := stage.Finding{Suspects: []stage.Suspect{siteSuspect(network, "MAC "+t.MAC.String())}, About: []subject.ID{subject.OfNode(t.Client.Node)},
		Cause: fmt.Sprintf("two machines ask for the address of %s with its MAC %s: their UUIDs are %s and %s", t.Client.Node, t.MAC, t.First, t.Second),
		Evidence: []string{fmt.Sprintf("%s %s says UUID %s", t.FirstAt.UTC().Format(time.TimeOnly), t.Program, t.First),
			fmt.Sprintf("%s %s says UUID %s", t.At.UTC().Format(time.TimeOnly), t.Program, t.Second)},
		Action: fmt.Sprintf("Look for MAC %s in the address tables of the switches: it stands at two ports, or moves between two. Take the machine off the boot network that is not %s; where its NIC was made with the same MAC, exchange it.", t.MAC, t.Client.Node)}
	if t.Inventory != "" {
		f.Evidence = append(f.Evidence, fmt.Sprintf("the inventory says that %s has UUID %s; the other was refused", t.Client.Node, t.Inventory))
	}
	return f
}

// moreDuplicateMACs is the finding of all beyond the bound.
func moreDuplicateMACs(network string) stage.Finding {
	return stage.Finding{Suspects: []stage.Suspect{siteSuspect(network, "other MACs")},
		Cause:    fmt.Sprintf("two machines ask with one MAC for the addresses of more than %d nodes; no further finding is made of each", MostFindings),
		Evidence: []string{"`ironrail events` has them as " + dhcp.EventTwoUUIDs},
		Action:   "Somebody may send DHCP requests in the nodes' names: find out at which port of the switches their MACs stand."}
}
