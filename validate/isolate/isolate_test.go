// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// measure gives every transfer between n nodes over rails, spoiled by faults.
func measure(n, rails int, faults ...Part) []Measurement {
	var ms []Measurement
	for a := range n {
		for b := range n {
			for r := range rails {
				if a == b {
					continue
				}
				m := Measurement{Rail: r, From: name(a), To: name(b)}
				m.Bad = slices.ContainsFunc(faults, func(p Part) bool { return p.Explains(m) })
				ms = append(ms, m)
			}
		}
	}
	return ms
}

func name(i int) string { return fmt.Sprintf("n%d", i+1) }

func text(ps []Part) string {
	var out []string
	for _, p := range ps {
		out = append(out, strings.TrimSpace(p.Node+" "+p.String()))
	}
	return strings.Join(out, "; ")
}

func TestDecode(t *testing.T) {
	t.Parallel()
	one := func(node string, s Scope, rail int) []Part { return []Part{{node, s, "", rail}} }
	for _, c := range []struct {
		name      string
		ms        []Measurement
		want      string
		ambiguous bool
	}{
		{"all good", measure(4, 2), "", false},
		{"three nodes, one bad rail", measure(3, 1, one("n2", Rail, 0)...), "n2 rail 0", false},
		{"four nodes, one rail of eight", measure(4, 8, one("n3", Rail, 5)...), "n3 rail 5", false},
		{"whole node of eight rails", measure(4, 8, one("n3", WholeNode, 0)...), "n3 all rails", false},
		{"sends badly, receives well", measure(4, 2, one("n1", Send, 1)...), "n1 rail 1, sending", false},
		{"receives badly, sends well", measure(4, 2, one("n4", Receive, 0)...), "n4 rail 0, receiving", false},
		{"two bad nodes of five", measure(5, 1, Part{"n1", Rail, "", 0}, Part{"n4", Rail, "", 0}), "n1 rail 0; n4 rail 0", false},
		{"two rails of different nodes", measure(4, 4, Part{"n1", Rail, "", 0}, Part{"n2", Rail, "", 3}), "n1 rail 0; n2 rail 3", false},
		{"two nodes cannot be distinguished", measure(2, 1, one("n2", Rail, 0)...), "what rail 0 of all nodes shares; n1 rail 0; n2 rail 0", true},
		{"two nodes, one direction", measure(2, 1, one("n2", Receive, 0)...), "n1 rail 0, sending; n2 rail 0, receiving", true},
		{"two nodes, two rails, one bad", measure(2, 2, one("n2", Rail, 1)...), "what rail 1 of all nodes shares; n1 rail 1; n2 rail 1", true},
		{"a switch of one rail", measure(6, 4, one("", Shared, 2)...), "what rail 2 of all nodes shares", false},
		{"all rails of all nodes", measure(6, 4, Part{"", Everything, "", 0}), "all rails of all nodes", false},
		{"the one rail of all nodes", measure(6, 1, Part{"", Everything, "", 0}), "what rail 0 of all nodes shares", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := FindSuspects(c.ms)
			if got := text(v.Suspects); got != c.want || v.Ambiguous != c.ambiguous || len(v.Between) != 0 {
				t.Errorf("got %q, ambiguous %v, between %v", got, v.Ambiguous, v.Between)
			}
		})
	}
}

func TestALoopbackDecides(t *testing.T) {
	t.Parallel()
	ms := append(measure(2, 1, Part{"n2", Rail, "", 0}), Measurement{Rail: 0, From: "n2", To: "n2", Bad: true})
	if v := FindSuspects(ms); text(v.Suspects) != "n2 rail 0" || v.Ambiguous {
		t.Errorf("got %+v", v)
	}
}

func TestOneBadPathOfManyGoodOnes(t *testing.T) {
	t.Parallel()
	ms := measure(5, 1)
	ms[0].Bad = true // n1 to n2, while both are good with all others
	v := FindSuspects(ms)
	if len(v.Suspects) != 0 || len(v.Between) != 1 || v.Between[0].From != "n1" {
		t.Errorf("got %+v", v)
	}
}

// TestPlanted plants random faults, and demands of every answer that it explains
// all bad measurements, contradicts none, and for single faults is the fault.
func TestPlanted(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n, rails := 3+rnd.IntN(6), 1+rnd.IntN(8)
		var faults []Part
		for range 1 + rnd.IntN(2) {
			faults = append(faults, Part{name(rnd.IntN(n)), Scope(rnd.IntN(4)), "", rnd.IntN(rails)})
		}
		ms := measure(n, rails, faults...)
		v := FindSuspects(ms)
		for _, m := range ms {
			explained := slices.ContainsFunc(v.Suspects, func(p Part) bool { return p.Explains(m) })
			between := slices.ContainsFunc(v.Between, func(b Measurement) bool { return b.From == m.From && b.To == m.To && b.Rail == m.Rail })
			if m.Bad && !explained && !between || !m.Bad && explained {
				t.Fatalf("%d nodes %d rails, faults %v: %+v, measurement %+v", n, rails, faults, v, m)
			}
		}
		if len(faults) == 1 {
			if len(v.Suspects) != 1 || v.Ambiguous || v.Suspects[0].Node != faults[0].Node {
				t.Fatalf("%d nodes %d rails, fault %v: %+v", n, rails, faults, v)
			}
		}
	}
}

// TestBounded: many faults at once end in bounded work.
func TestBounded(t *testing.T) {
	t.Parallel()
	var ms []Measurement
	for i := range 16 {
		for j := range 16 {
			if i != j {
				ms = append(ms, Measurement{From: name(i), To: name(j), Bad: (i+j)%3 != 0})
			}
		}
	}
	FindSuspects(ms)
	all := measure(32, 2)
	for i := range all {
		all[i].Bad = true
	}
	if v := FindSuspects(all); len(v.Suspects) == 0 {
		t.Error("nobody is suspected")
	}
}

// TestMany: one bad rail among thousands of nodes is found in the time that its
// measurements take to read.
func TestMany(t *testing.T) {
	t.Parallel()
	const nodes, rails = 2048, 8
	var ms []Measurement
	for i := range nodes {
		for step := 1; step <= 2; step++ {
			for rail := range rails {
				from, to := fmt.Sprintf("n%d", i), fmt.Sprintf("n%d", (i+step)%nodes)
				bad := rail == 3 && (from == "n7" || to == "n7")
				ms = append(ms, Measurement{Rail: rail, From: from, To: to, Bad: bad}, Measurement{Rail: rail, From: to, To: from, Bad: bad})
			}
		}
	}
	v := FindSuspects(ms)
	if want := []Part{{"n7", Rail, "", 3}}; !slices.Equal(v.Suspects, want) || v.Ambiguous || len(v.Between) > 0 {
		t.Errorf("%+v, want %v", v, want)
	}
}

// TestRailsOfTwoFabrics: rails with the same number are different parts.
func TestRailsOfTwoFabrics(t *testing.T) {
	t.Parallel()
	both := func(faults ...Part) (ms []Measurement) {
		for _, fabric := range []string{"", "storage"} {
			for _, m := range measure(4, 2) {
				m.Fabric = fabric
				m.Bad = slices.ContainsFunc(faults, func(p Part) bool { return p.Explains(m) })
				ms = append(ms, m)
			}
		}
		return ms
	}
	for _, c := range []struct {
		fault Part
		want  string
	}{
		{Part{"n2", Rail, "storage", 0}, "n2 rail 0 of storage"},
		{Part{"n2", Rail, "", 0}, "n2 rail 0"},
		{Part{"n2", Send, "storage", 1}, "n2 rail 1 of storage, sending"},
		{Part{"", Shared, "storage", 0}, "what rail 0 of storage of all nodes shares"},
		{Part{"n3", WholeNode, "", 0}, "n3 all rails"},
	} {
		v := FindSuspects(both(c.fault))
		if got := text(v.Suspects); got != c.want || v.Ambiguous || len(v.Between) > 0 {
			t.Errorf("%+v: got %q, ambiguous %v, between %v", c.fault, got, v.Ambiguous, v.Between)
		}
	}
}
