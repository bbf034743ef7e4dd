// SPDX-License-Identifier: Apache-2.0

package trunk

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/isolate"
	"github.com/ironrail/ironrail/validate/rail"
)

// Finding blames what a search found. what is one of the bad transfers, in words.
func (f Found) Finding(what string, worn []Worn) stage.Finding {
	x := stage.Finding{Cause: "what goes over " + f.Names() + " is slow: " + what}
	if f.Ambiguous {
		x.Cause += "; the measurements cannot tell which of them is at fault"
	}
	for _, p := range f.Suspects {
		x.Suspects = append(x.Suspects, f.suspect(p))
		for _, w := range worn {
			if p.Scope == isolate.Trunk && w.Trunk == p.Node {
				x.Evidence = append(x.Evidence, w.String())
			}
		}
	}
	x.Action = f.action()
	return x
}

// suspect is a part as findings name it.
func (f Found) suspect(p isolate.Part) stage.Suspect {
	switch {
	case p.Scope == isolate.Trunk:
		return stage.Suspect{Subject: subject.ID{Kind: subject.Link, Name: p.Node}}
	case p.Scope == isolate.Leaf:
		return rail.SuspectLeaf(p.Node)
	case p.Node == "":
		return stage.Suspect{Subject: subject.ID{Kind: subject.Fabric, Name: f.fabric}, Part: "spines"}
	}
	return stage.Suspect{Subject: subject.ID{Kind: subject.Switch, Name: p.Node}, Part: p.String()}
}

// Names names the suspects for a sentence.
func (f Found) Names() string {
	var names []string
	for _, p := range f.Suspects {
		switch {
		case p.Scope == isolate.Trunk:
			names = append(names, "cable "+p.Node)
		case p.Scope == isolate.Leaf:
			names = append(names, "a cable up from leaf "+p.Node)
		case p.Node == "":
			names = append(names, "a spine of fabric "+f.fabric)
		default:
			names = append(names, "spine "+p.Node)
		}
	}
	word := " and "
	if f.Ambiguous {
		word = " or "
	}
	return strings.Join(names, word)
}

// action says what to do, and which test decides where several parts explain it alike.
func (f Found) action() string {
	const left = " No node was taken out."
	p := f.Suspects[0]
	switch {
	case p.Scope == isolate.Leaf || p.Node == "":
		return fmt.Sprintf("Read the counters of both ends of the cables between leaves and spines (ibqueryerrors; `show interfaces counters`) around a transfer that is bad: its way leads to the cable. Or take out of service %s, one at a time, and apply again: the one without which the transfers are good is at fault.", f.Names()) + left
	case f.Ambiguous:
		return fmt.Sprintf("Shut the port %s and apply again: if the transfers are good, it is at fault, else another of these: try them in turn.", p.Node) + left
	case p.Scope == isolate.Spine:
		return "Look at that switch: its log, its temperature, its buffers and settings against those of other spines. Take it out of service and apply again to prove it." + left
	}
	return "Clean and reseat both ends of the cable, look at its transceivers, and exchange it. Shut its port and apply again to prove it." + left
}

// CrossingsFinding blames what all leaves of a fabric share: no leaf and no node is at
// fault when every transfer between leaves is bad. what is one of them, in words.
func CrossingsFinding(fabric string, bad int, what string) stage.Finding {
	return stage.Finding{
		Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Fabric, Name: fabric}, Part: "spines"}},
		Cause:    fmt.Sprintf("every transfer between leaves of fabric %s is bad, such as %s; what stays on a leaf is not", fabric, what),
		Evidence: []string{fmt.Sprintf("%d transfers between leaves are bad, and none is good", bad)},
		Action:   "Look at what all leaves share before any node: the routing engine (ftree, minhop) or ECMP, the settings of all switches, how many cables go up, and the spines. No node was taken out.",
	}
}

// WornFindings blame cables for errors that no slow transfer has led to, one finding each.
func WornFindings(list []Worn, blamed []isolate.Part) (findings []stage.Finding) {
	at := map[string]int{}
	for _, p := range blamed {
		at[p.Node] = -1
	}
	for _, w := range list {
		i, known := at[w.Trunk]
		if i < 0 {
			continue
		}
		if !known {
			i = len(findings)
			at[w.Trunk] = i
			findings = append(findings, stage.Finding{Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Link, Name: w.Trunk}}},
				Cause: "the cable " + w.Trunk + " " + w.does + ": " + w.String(), Action: "See that neither of its ports is shut, clean and reseat both ends of the cable, look at its transceivers, and exchange it. No node was taken out."})
		}
		findings[i].Evidence = append(findings[i].Evidence, w.String())
	}
	return findings
}
