// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// checkMoves looks at the moved blocks: what is known of a node must follow it to
// one node that is there, and to no other.
func (l *loader) checkMoves() {
	from, to := map[string]*Move{}, map[string]*Move{}
	for _, m := range l.inv.Moves {
		if m.From == "" || m.To == "" {
			continue
		}
		l.moveTwice(from, m, m.From, "from", "moves away from")
		l.moveTwice(to, m, m.To, "to", "moves to")
	}
	seen := map[*Move]bool{}
	for _, m := range l.inv.Moves {
		switch {
		case m.From == "" || m.To == "" || l.moveCircle(from, m, seen):
		case l.nodes[m.From] != nil:
			l.diags.Add("moved.from", l.place(m, "from"), "Moved node that is still there",
				fmt.Sprintf("There is a node %q, and a moved block says that it is %q now. Remove the block, or give the node its new name.", m.From, m.To)).Also("the node", l.nodes[m.From].Ranges.Name).In(m.Decl)
		case l.nodes[m.To] == nil && from[m.To] == nil:
			l.diags.Add("moved.to", l.place(m, "to"), "Moved to an unknown node", fmt.Sprintf("There is no node %q that %q could be now.%s", m.To, m.From, l.meantNode(m.To))).In(m.Decl)
		}
	}
}

func (l *loader) moveTwice(taken map[string]*Move, m *Move, name, attr, what string) {
	first := taken[name]
	if first == nil {
		taken[name] = m
		return
	}
	l.diags.Add("moved.duplicate", l.place(m, attr), "Two moves of one node", fmt.Sprintf("Another moved block %s %q already. One of the two is wrong.", what, name)).Also("the other one", l.place(first, attr)).In(m.Decl)
}

// moveCircle reports names that are moved round in a circle, once for each.
func (l *loader) moveCircle(from map[string]*Move, m *Move, seen map[*Move]bool) bool {
	hops := map[*Move]bool{}
	for at := from[m.From]; at != nil && !hops[at]; at = from[at.To] {
		hops[at] = true
		if at.To != m.From {
			continue
		}
		if !seen[m] {
			l.sayCircle(from, m, seen)
		}
		return true
	}
	return false
}

func (l *loader) sayCircle(from map[string]*Move, m *Move, seen map[*Move]bool) {
	words := []string{m.From}
	type hop struct {
		words string
		at    hcl.Range
	}
	var hops []hop
	for at := from[m.From]; !seen[at]; at = from[at.To] {
		seen[at] = true
		words = append(words, at.To)
		hops = append(hops, hop{fmt.Sprintf("%s moves to %s", at.From, at.To), l.place(at, "to")})
	}
	d := l.diags.Add("moved.circle", l.place(m, "from"), "Moves that go round in a circle", fmt.Sprintf("%s: no node is at the end of it. Remove one of these moved blocks.", strings.Join(words, " -> "))).In(m.Decl)
	for _, h := range hops {
		d.Also(h.words, h.at)
	}
}
