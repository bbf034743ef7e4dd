// SPDX-License-Identifier: Apache-2.0

package uniform_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/validate/uniform"
)

// node is a node with one trait of each value; a value "a|b" is that of two parts.
func node(name, key string, values ...string) uniform.Node {
	n := uniform.Node{Name: name}
	for i, v := range values {
		t := uniform.Trait{Key: key, Value: v}
		if len(values) > 1 {
			t.Parts = []string{fmt.Sprintf("part %d", i)}
		}
		n.Traits = append(n.Traits, t)
	}
	return n
}

// text is a row in one line.
func text(r uniform.Row) string {
	s := fmt.Sprintf("%s: %s %d/%d", r.Name(), r.Value, r.With, r.Nodes)
	for _, o := range r.Odd {
		s += strings.TrimRight(fmt.Sprintf(" odd %s=%s %s", o.Node, o.Value, uniform.Parts(o.Parts)), " ")
	}
	for _, g := range r.Groups {
		s += fmt.Sprintf(" [%s: %s]", g.Value, strings.Join(g.Nodes, " "))
	}
	return s
}

func TestCompare(t *testing.T) {
	t.Parallel()
	k := uniform.NICFirmware
	for _, c := range []struct {
		name  string
		nodes []uniform.Node
		want  string
	}{
		{"all the same", []uniform.Node{node("n1", k, "1"), node("n2", k, "1"), node("n3", k, "1")}, "NIC firmware: 1 3/3"},
		{"one odd of three", []uniform.Node{node("n1", k, "1"), node("n2", k, "0"), node("n3", k, "1")}, "NIC firmware: 1 2/3 odd n2=0"},
		{"one of two is no majority", []uniform.Node{node("n1", k, "1"), node("n2", k, "0")}, "NIC firmware:  0/2 [0: n2] [1: n1]"},
		{"half is no majority", []uniform.Node{node("n1", k, "1"), node("n2", k, "0"), node("n3", k, "1"), node("n4", k, "0")}, "NIC firmware:  0/4 [0: n2 n4] [1: n1 n3]"},
		{"one part of a node", []uniform.Node{node("n1", k, "1"), node("n2", k, "1", "0"), node("n3", k, "1")}, "NIC firmware: 1 2/3 odd n2=0 part 1"},
		{"who says nothing has no voice", []uniform.Node{node("n1", k, "1"), node("n2", k), node("n3", k, "1")}, "NIC firmware: 1 2/2"},
		{"all nodes are mixed", []uniform.Node{node("n1", k, "1", "0"), node("n2", k, "1", "0"), node("n3", k, "1", "0")},
			"NIC firmware:  0/3 [1 in part 0, 0 in part 1: n1] [1 in part 0, 0 in part 1: n2] [1 in part 0, 0 in part 1: n3]"},
		{"a mixture that was bought, and who has another", []uniform.Node{node("n1", uniform.DIMM, "64", "32"), node("n2", uniform.DIMM, "64", "32"), node("n3", uniform.DIMM, "64"), node("n4", uniform.DIMM, "64", "32"), node("n5", uniform.DIMM, "16", "32"),
			node("n6", uniform.DIMM, "64", "32"), node("n7", uniform.DIMM, "64", "32")}, "DIMM: 1 x 64, 1 x 32 5/7 odd n3=64 odd n5=16 part 0"},
	} {
		rows := uniform.CompareNodes(c.nodes)
		if len(rows) != 1 {
			t.Errorf("%s: %d rows", c.name, len(rows))
			continue
		}
		if got := text(rows[0]); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// What parts of several models have is compared model by model, and rows stand in
// the order of Keys.
func TestModelsAndOrder(t *testing.T) {
	t.Parallel()
	var nodes []uniform.Node
	for i := range 4 {
		n := node(fmt.Sprintf("n%d", i), uniform.Kernel, "6.8")
		n.Traits = append(n.Traits, uniform.Trait{Key: uniform.NICFirmware, Of: "MT_2", Value: "28"}, uniform.Trait{Key: uniform.NICFirmware, Of: "MT_1", Value: "22"},
			uniform.Trait{Key: uniform.GPUVBIOS, Value: "96"})
		nodes = append(nodes, n)
	}
	nodes[3].Traits[2].Value = "21"
	var got []string
	for _, r := range uniform.CompareNodes(nodes) {
		got = append(got, text(r))
	}
	want := "GPU VBIOS: 96 4/4\nNIC firmware of MT_1: 22 3/4 odd n3=21\nNIC firmware of MT_2: 28 4/4\nkernel: 6.8 4/4"
	if g := strings.Join(got, "\n"); g != want {
		t.Errorf("got\n%s\nwant\n%s", g, want)
	}
}

// Every key has what is said of it.
func TestKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range uniform.Keys {
		if seen[k.Key] || k.Key == "" || k.Part == "" || k.Action == "" {
			t.Errorf("%+v", k)
		}
		seen[k.Key] = true
		if r := (uniform.Row{Key: k.Key}); r.Kind() != k {
			t.Errorf("%s is found as %+v", k.Key, r.Kind())
		}
	}
}
