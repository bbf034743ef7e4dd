// SPDX-License-Identifier: Apache-2.0

package cohort

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/result"
)

const (
	doPort    = "Look at the cable, its transceivers and both of its ports: speed, duplex, errors and drops (ethtool, ethtool -S, the counters of the switch port); then at the offloads and the driver of the NIC. Try another cable, then another switch port, then exchange the NIC."
	doMTU     = "Set the MTU of the switch port and of whatever is between the nodes (VLANs, tunnels, bonds) to that of the interfaces, with room for headers."
	doLink    = "Compare its NIC (model, firmware, driver), its transceiver or cable, and the model and the settings of its switch port with those of the others: a node is not better for a faster link, it is not the one that was planned."
	doNetwork = "Most nodes are alike, so look at what they share before any node: the switches of the network, their speed, MTU, flow control and uplinks, and what else it carries meanwhile; then at the settings of the role, and at the limit. No node was taken out."
	doLeaf    = "Most nodes of it are alike, so look at it before any node: its ports' speed, MTU and flow control, its load, and what else it carries meanwhile. No node was taken out."
)

// Finding is a finding, with the nodes that are suspected.
type Finding struct {
	stage.Finding
	Nodes []string
}

// Findings are what is bad: the network, its leaves, and nodes. Nodes of a bad leaf are acquitted.
func (v *Verdict) Findings() (list []Finding) {
	network := "network " + v.c.Network.Name
	whole := subject.ID{Kind: subject.Site, Name: "network." + v.c.Network.Name}
	for d, text := range v.shared {
		if text != "" && (d == 0 || text != v.shared[0]) {
			f := stage.Finding{Suspects: []stage.Suspect{{Subject: whole, Part: network}}, Cause: fmt.Sprintf("%s: %s", v.c, text), Action: doNetwork}
			list = append(list, Finding{Finding: f})
		}
	}
	leaves := v.badLeaves()
	for _, leaf := range leaves {
		list = append(list, v.blameLeaf(leaf, network))
	}
	done := map[int]bool{}
	for _, i := range v.badMembers() {
		if done[i] || slices.Contains(leaves, v.c.Members[i].Leaf) {
			continue
		}
		both := []int{i}
		if j, ok := v.inseparable(i); ok {
			both = append(both, j)
		}
		for _, k := range both {
			done[k] = true
		}
		list = append(list, v.blameMembers(both))
	}
	return list
}

// blameLeaf is the finding about a leaf.
func (v *Verdict) blameLeaf(leaf, network string) Finding {
	id := subject.ID{Kind: subject.Switch, Name: leaf}
	if rack, ok := strings.CutPrefix(leaf, "rack "); ok {
		id = subject.ID{Kind: subject.Rack, Name: rack}
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: id, Part: network}}, Action: doLeaf}
	var names []string
	for _, i := range v.badMembers() {
		if v.c.Members[i].Leaf == leaf {
			names = append(names, v.c.Members[i].Name())
			f.Evidence = append(f.Evidence, v.causes(i)...)
		}
	}
	f.Cause = fmt.Sprintf("%s: %d nodes of %s are slow on it together: %s", v.c, len(names), leaf, result.NameSome(names))
	f.Evidence = f.Evidence[:min(len(f.Evidence), mostEvidence)]
	return Finding{Finding: f}
}

// mostEvidence is how many lines a finding has.
const mostEvidence = 16

// blameMembers is the finding about one member, or about two that cannot be distinguished.
func (v *Verdict) blameMembers(list []int) (b Finding) {
	b.Action = doPort
	var causes []string
	for _, i := range list {
		m := v.c.Members[i]
		b.Nodes = append(b.Nodes, m.Name())
		b.Suspects = append(b.Suspects, stage.Suspect{Subject: subject.OfNode(m.Name()), Part: m.part()})
		own := v.causes(i)
		causes = append(causes, strings.Join(own, "; "))
		b.Evidence = append(b.Evidence, v.describe(i))
		if v.figures[sends][i].isShort() || v.figures[receives][i].isShort() {
			b.Action = doMTU
		} else if v.hasOddLink(i) && !v.hasSlowLink(i) && !v.bad[sends][i] && !v.bad[receives][i] {
			b.Action = doLink
		}
	}
	b.Cause = v.c.Members[list[0]].part() + ": " + causes[0]
	if len(list) > 1 {
		b.Cause += fmt.Sprintf("; %s %s: the measurements cannot distinguish the two", b.Nodes[1], causes[1])
	}
	for _, f := range v.flows {
		if slices.Contains(list, f.from) || slices.Contains(list, f.to) {
			b.Evidence = append(b.Evidence, v.text(f))
		}
	}
	b.Evidence = b.Evidence[:min(len(b.Evidence), mostEvidence)]
	return b
}

// inseparable is the one partner of a bad member, where that has no other one either and is bad in
// the other direction.
func (v *Verdict) inseparable(i int) (int, bool) {
	for d := range v.bad {
		p := v.figures[d][i].partners
		if !v.bad[d][i] || len(p) != 1 {
			continue
		}
		if q := v.figures[1-d][p[0]].partners; v.bad[1-d][p[0]] && len(q) == 1 {
			return p[0], true
		}
	}
	return 0, false
}

func (f figure) isShort() bool { return f.asked > 0 && !f.whole }

// causes are what is wrong with a member, in words. Packets that do not pass explain what is slow.
func (v *Verdict) causes(i int) (list []string) {
	network := v.c.Network.Name
	if why := v.broken(i); why != "" {
		return []string{fmt.Sprintf("it has no TCP connection over network %s with any of %d nodes that have one with others: %s", network, len(v.figures[sends][i].partners), why)}
	}
	if text := v.short(i); text != "" {
		return []string{text}
	}
	if text := v.oddLink(i); text != "" {
		if list = []string{text}; v.hasSlowLink(i) {
			return list
		}
	}
	for d := range v.bad {
		if !v.bad[d][i] {
			continue
		}
		f, row := v.figures[d][i], v.Rows[d]
		text := fmt.Sprintf("it %s %s by TCP over network %s with %s", words[d], result.FormatRate(f.best), network, count(len(f.partners), "node"))
		switch {
		case f.best < row.Floor:
			text += fmt.Sprintf(", %.0f%% of the median of %d nodes", 100*f.best/row.Median, row.Count)
		case v.c.Members[i].Limit > v.linkNeed(i):
			text += ", and the limit of the site is " + v.c.Members[i].Text
		default:
			text += fmt.Sprintf(", and its link carries %s", unit.BitRate(v.links[i].Bits))
		}
		list = append(list, text)
	}
	return list
}

// oddLink says how the link of a member differs from those of most others; empty: it does not.
func (v *Verdict) oddLink(i int) string {
	others := fmt.Sprintf("those of %d of %d nodes run at %s", v.usualOf, len(v.links), unit.BitRate(v.usual))
	switch bits := v.links[i].Bits; {
	case !v.hasOddLink(i):
		return ""
	case bits == 0:
		return fmt.Sprintf("its driver does not report at which speed its link on network %s runs, and %s", v.c.Network.Name, others)
	default:
		return fmt.Sprintf("its link on network %s runs at %s, and %s", v.c.Network.Name, unit.BitRate(bits), others)
	}
}

// short says which packets do not pass between a member and others; empty: all do.
func (v *Verdict) short(i int) string {
	var ways []string
	passed, asked := 0, 0
	for d, way := range []string{"from it", "to it"} {
		if f := v.figures[d][i]; v.bad[d][i] && f.isShort() {
			if len(ways) == 0 || f.passed < passed {
				passed, asked = f.passed, f.asked
			}
			ways = append(ways, way)
		}
	}
	if len(ways) == 0 {
		return ""
	}
	return fmt.Sprintf("packets of more than %d bytes do not pass %s over network %s; its interface and those of its partners send %d at once", passed, strings.Join(ways, " and "), v.c.Network.Name, asked)
}

// broken is why a member has no connection with any partner; empty: it has one.
func (v *Verdict) broken(i int) (why string) {
	for _, f := range v.flows {
		if f.from != i && f.to != i {
			continue
		}
		if why = f.broken; why == "" {
			return ""
		}
	}
	return why
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// text is one direction of a measurement as evidence.
func (v *Verdict) text(f flow) string {
	head := fmt.Sprintf("%s -> %s: ", v.c.Members[f.from].Name(), v.c.Members[f.to].Name())
	if f.broken != "" {
		return head + f.broken
	}
	head += result.FormatRate(f.rate)
	if f.sent.Again > 0 {
		head += fmt.Sprintf(", %d of %d segments sent once more", f.sent.Again, f.sent.Segments)
	}
	if f.isShort() {
		head += fmt.Sprintf(", packets up to %d bytes pass", f.passed)
	}
	return head
}
