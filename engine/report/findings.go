// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/ironrail/ironrail/internal/fold"

// shared is a finding, or the reason of a status, that several nodes have.
type shared struct {
	fold.Group
	Status  Status
	Finding Finding // of the first node; empty for a reason alone
}

// extractShared takes from nodes the findings and reasons that several of them have, so that
// each is told once. in is not changed.
func extractShared(in Input) (nodes []Node, list []shared) {
	type place struct{ node, finding int } // finding -1: the reason
	var about []fold.Finding
	var places []place
	for i, n := range in.Nodes {
		if n.Reason != "" {
			about = append(about, fold.Finding{Kind: "node", Name: n.Name, Apart: string(n.Status), Cause: n.Reason})
			places = append(places, place{i, -1})
		}
		for j, f := range n.Findings {
			about = append(about, fold.Finding{Kind: "node", Name: n.Name, Apart: string(n.Status) + " finding", Cause: partCause(f), Action: f.Action})
			places = append(places, place{i, j})
		}
	}
	nodes = make([]Node, len(in.Nodes))
	copy(nodes, in.Nodes)
	for i := range nodes {
		nodes[i].Reason, nodes[i].Findings = "", nil
	}
	for _, g := range fold.Findings(about) {
		first := places[g.Members[0]]
		of := in.Nodes[first.node]
		if len(g.Names) > 1 {
			s := shared{Group: g, Status: of.Status}
			if first.finding >= 0 {
				s.Finding = of.Findings[first.finding]
			}
			list = append(list, s)
			continue
		}
		for _, m := range g.Members {
			n := &nodes[places[m].node]
			if f := places[m].finding; f < 0 {
				n.Reason = in.Nodes[places[m].node].Reason
			} else {
				n.Findings = append(n.Findings, in.Nodes[places[m].node].Findings[f])
			}
		}
	}
	return nodes, list
}

// partCause is the cause of a finding after the part that it is about.
func partCause(f Finding) string {
	if f.Part == "" {
		return f.Cause
	}
	return f.Part + ": " + f.Cause
}
