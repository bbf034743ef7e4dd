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
		{"a part of a mixture that is not there", []uniform.Node{node("n1", uniform.NICModel, "1", "0", "0"), node("n2", uniform.NICModel, "1", "0", "0"), node("n3", uniform.NICModel, "1", "0")}, "NIC model: 1 x 1, 1 x 0, 1 x 0 2/3 odd n3=not there part 2"},
		{"one that another check finds", []uniform.Node{node("n1", uniform.PCIePath, "1", "0", "0"), node("n2", uniform.PCIePath, "1", "0", "0"), node("n3", uniform.PCIePath, "1", "0")}, "PCIe path: 1 x 1, 1 x 0, 1 x 0 2/3"},
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

// TestSilent: who tells a thing of fewer parts than most do is found, of whatever model the
// parts are; older records that have no counts are left out.
func TestSilent(t *testing.T) {
	t.Parallel()
	trait := func(key, of string, count int) uniform.Trait {
		return uniform.Trait{Key: key, Of: of, Value: "1", Count: count}
	}
	fleet := func() (nodes []uniform.Node) {
		for i := range 4 {
			nodes = append(nodes, uniform.Node{Name: fmt.Sprintf("n%d", i), Record: uniform.Record{Traits: []uniform.Trait{trait(uniform.GPUVBIOS, "", 8), trait(uniform.NICFirmware, "A", 8), trait(uniform.Kernel, "", 1)}}})
		}
		return nodes
	}
	for _, c := range []struct {
		name, want string
		spoil      func([]uniform.Node)
	}{
		{"all alike", "[]", func([]uniform.Node) {}},
		{"one part less", "[{n2 GPU VBIOS 7 8}]", func(n []uniform.Node) { n[2].Traits[0].Count = 7 }},
		{"one part more", "[]", func(n []uniform.Node) { n[2].Traits[0].Count = 9 }},
		{"nothing at all", "[{n2 kernel 0 1}]", func(n []uniform.Node) { n[2].Traits = n[2].Traits[:2] }},
		{"parts of two models", "[]", func(n []uniform.Node) {
			n[2].Traits = append(n[2].Traits[:1:1], trait(uniform.NICFirmware, "A", 6), trait(uniform.NICFirmware, "B", 2), trait(uniform.Kernel, "", 1))
		}},
		{"no majority", "[]", func(n []uniform.Node) { n[2].Traits[0].Count, n[3].Traits[0].Count = 7, 6 }},
		{"a record of an older version", "[]", func(n []uniform.Node) { n[2].Traits[0].Count = 0 }},
		{"too few whose parts were counted", "[]", func(n []uniform.Node) { n[0].Traits[0].Count, n[1].Traits[0].Count, n[2].Traits[0].Count = 0, 0, 7 }},
	} {
		nodes := fleet()
		c.spoil(nodes)
		if got := fmt.Sprint(uniform.FindSilent(nodes)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
