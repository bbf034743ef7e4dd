// SPDX-License-Identifier: Apache-2.0

package nvlink

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// TestTroubles: what IMEX says of four nodes speaks against one of them, or against a pair.
func TestTroubles(t *testing.T) {
	t.Parallel()
	var nodes []*inventory.Node
	for i := range 4 {
		nodes = append(nodes, &inventory.Node{Name: fmt.Sprintf("n%d", i+1), Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})})
	}
	for _, c := range []struct {
		name        string
		change      func(map[string]imexNode)
		node, pairs string
	}{
		{"well", func(map[string]imexNode) {}, "", "[]"},
		{"not listed", func(s map[string]imexNode) { delete(s, "10.0.0.4") }, "not listed", "[]"},
		{"another driver", func(s map[string]imexNode) { set(s, 4, func(n *imexNode) { n.Version = "570.1" }) }, "of driver 570.1, and 3 of 4 have 580.95.05,", "[]"},
		{"no connection with most", func(s map[string]imexNode) {
			set(s, 4, func(n *imexNode) { unlink(n, 1); unlink(n, 2) })
		}, "disconnected", "[]"},
		{"no connection of a pair", func(s map[string]imexNode) { set(s, 4, func(n *imexNode) { unlink(n, 2) }) }, "", "[n2 and n4: disconnected]"},
	} {
		states := map[string]imexNode{}
		for _, n := range nodes {
			s := imexNode{Status: "READY", Host: n.Address.String(), Version: "580.95.05", Connections: map[string]imexLink{}}
			for k, to := range nodes {
				s.Connections[fmt.Sprint(k+1)] = imexLink{Host: to.Address.String(), Status: imexConnected}
			}
			states[s.Host] = s
		}
		c.change(states)
		got := troublesOf(nodes, states)
		if got.nodes[nodes[3]] != c.node || fmt.Sprint(got.pairs) != c.pairs || len(got.nodes) > 1 {
			t.Errorf("%s: %q, %q of %d nodes", c.name, got.nodes[nodes[3]], got.pairs, len(got.nodes))
		}
	}
}

func set(states map[string]imexNode, i int, change func(*imexNode)) {
	host := fmt.Sprintf("10.0.0.%d", i)
	n := states[host]
	change(&n)
	states[host] = n
}

func unlink(n *imexNode, to int) {
	l := n.Connections[fmt.Sprint(to)]
	l.Status = "DISCONNECTED"
	n.Connections[fmt.Sprint(to)] = l
}
