// SPDX-License-Identifier: Apache-2.0

package nvlink

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
)

// imexConnected is a connection of two IMEX services that works.
const imexConnected = "CONNECTED"

// imexTroubles is what IMEX says against nodes of a domain, by node, and against pairs of
// nodes that are good with the others.
type imexTroubles struct {
	nodes map[*inventory.Node]string
	pairs []string
}

func (t imexTroubles) none() bool { return len(t.nodes)+len(t.pairs) == 0 }

// troublesOf judges what IMEX says of nodes: one that is not ready, one whose driver is of
// another version than that of most (the services of two versions do not speak to each
// other), and connections that are not there. One that most of the others have no connection
// with is at fault itself.
func troublesOf(nodes []*inventory.Node, states map[string]imexNode) imexTroubles {
	t := imexTroubles{nodes: map[*inventory.Node]string{}}
	versions := map[string]int{}
	for _, n := range nodes {
		s := states[n.Address.String()]
		if s.Status != "READY" {
			t.nodes[n] = strings.ToLower(cmp.Or(s.Status, "not listed"))
		}
		versions[s.Version]++
	}
	for _, n := range nodes {
		is := states[n.Address.String()].Version
		for v, count := range versions {
			if t.nodes[n] == "" && is != "" && v != "" && v != is && 2*count > len(nodes) {
				t.nodes[n] = fmt.Sprintf("of driver %s, and %d of %d have %s,", is, count, len(nodes), v)
			}
		}
	}
	t.addLinks(nodes, states)
	return t
}

// addLinks adds what connections say of the nodes against which nothing else speaks.
func (t *imexTroubles) addLinks(nodes []*inventory.Node, states map[string]imexNode) {
	left := slices.DeleteFunc(slices.Clone(nodes), func(n *inventory.Node) bool { return t.nodes[n] != "" })
	bad := badLinks(left, states)
	for _, a := range left {
		if len(left) > 2 && 2*len(bad[a]) > len(left)-1 {
			t.nodes[a] = strings.ToLower(slices.Sorted(maps.Values(bad[a]))[0])
		}
	}
	for i, a := range left {
		for _, b := range left[i+1:] {
			if state := bad[a][b]; state != "" && t.nodes[a] == "" && t.nodes[b] == "" {
				t.pairs = append(t.pairs, fmt.Sprintf("%s and %s: %s", a.Name, b.Name, strings.ToLower(state)))
			}
		}
	}
}

// badLinks are the connections of nodes that do not work, as one end of them says, at both ends.
func badLinks(nodes []*inventory.Node, states map[string]imexNode) map[*inventory.Node]map[*inventory.Node]string {
	bad := map[*inventory.Node]map[*inventory.Node]string{}
	for _, n := range nodes {
		bad[n] = map[*inventory.Node]string{}
	}
	for _, a := range nodes {
		for _, b := range nodes {
			if state := linkOf(states, a, b); a != b && state != "" && state != imexConnected {
				bad[a][b], bad[b][a] = state, state
			}
		}
	}
	return bad
}

// linkOf is how a sees b; "" where that is not said.
func linkOf(states map[string]imexNode, a, b *inventory.Node) string {
	for _, l := range states[a.Address.String()].Connections {
		if l.Host == b.Address.String() {
			return l.Status
		}
	}
	return ""
}

// findingOfPairs is about pairs of nodes whose services have no connection.
func (t imexTroubles) findingOfPairs(f *inventory.Fabric, domain, asked string) stage.Finding {
	return stage.Finding{Suspects: []stage.Suspect{{Subject: subjectOf(f), Part: "IMEX"}},
		Cause:    fmt.Sprintf("the IMEX services of nodes of domain %s have no connection: %s", domain, strings.Join(t.pairs, "; ")),
		Evidence: []string{"nvidia-imex-ctl -N -j on " + asked},
		Action:   "Look at /var/log/nvidia-imex.log on both nodes, and whether each reaches the other's TCP ports 50000 and 50005; then run `ironrail apply`."}
}
