// SPDX-License-Identifier: Apache-2.0

package services

import (
	"fmt"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot"
)

// reportOtherFetch makes one finding of each boot attempt and address.
func (v *Services) reportOtherFetch(f install.OtherFetch) {
	v.fetches.add(f.Attempt+" "+f.From.String(), func() stage.Finding { return fetchFinding(v.network, f) })
}

// fetchFinding is the finding of a request for the boot files of a node from an
// address that is not the node's. It blames the address: neither the node whose files
// they are nor the one that the address is reserved for, since anybody may use it.
func fetchFinding(network string, f install.OtherFetch) stage.Finding {
	whose, look := "which no node of the inventory has", "the machine that has "+f.From.String()
	about := []subject.ID{subject.OfNode(f.Node)}
	if f.Owner.Node != "" {
		whose = "the address of " + f.Owner.Node
		about = append(about, subject.OfNode(f.Owner.Node))
	}
	if f.Owner.Kind == netboot.BMC {
		whose = "the address of the BMC of " + f.Owner.Node
	}
	evidence := []string{fmt.Sprintf("%s %s from %s: refused", f.At.UTC().Format(time.TimeOnly), event.Escape(f.Request), f.From)}
	if len(f.Owner.MACs) > 0 {
		evidence = append(evidence, fmt.Sprintf("%s is reserved for MAC %s (%s)", f.From, f.Owner.MACs[0], f.Owner.Node))
		look = "MAC " + f.Owner.MACs[0].String()
	}
	if !f.MAC.IsZero() {
		evidence = append(evidence, fmt.Sprintf("MAC %s answers for %s", f.MAC, f.From))
		look = "MAC " + f.MAC.String()
	}
	if f.NodeFrom.IsValid() {
		evidence = append(evidence, fmt.Sprintf("%s fetched its initrd from %s at %s", f.Node, f.NodeFrom, f.NodeAt.UTC().Format(time.TimeOnly)))
	}
	return stage.Finding{Suspects: []stage.Suspect{siteSuspect(network, "address "+f.From.String())}, About: about,
		Cause:    fmt.Sprintf("boot files of %s, which hold its boot token, were asked for from %s, %s", f.Node, f.From, whose),
		Evidence: evidence,
		Action: fmt.Sprintf("Find %s in the address tables of the switches and take it off the boot network, unless you know why it asks. Nothing was given to it, and nothing is wrong with %s.",
			look, f.Node)}
}

// moreFetches is the finding of all requests beyond the bound.
func moreFetches(network string) stage.Finding {
	return stage.Finding{Suspects: []stage.Suspect{siteSuspect(network, "other addresses")},
		Cause:    fmt.Sprintf("boot files were asked for from other addresses than their nodes' more than %d times; no further finding is made of each", MostFindings),
		Evidence: []string{"`ironrail events` has the requests of nodes as " + install.EventOtherNode + ", and those of unknown clients as refused"},
		Action:   "Find out who sends them: the findings of the first of these addresses have their MACs."}
}
