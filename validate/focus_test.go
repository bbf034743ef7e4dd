// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/accept"
	"github.com/ironrail/ironrail/validate/result"
)

// InFocus makes a step of a test be about some of its nodes, as planning does.
func inFocus(st plan.Step, focus, with []string) plan.Step {
	g := *st.Group
	g.Members = nil
	for _, n := range slices.Concat(focus, with) {
		g.Members = append(g.Members, subject.OfNode(n))
	}
	g.Focus = g.Members[:len(focus)]
	st.Group = &g
	st.Yields = []fact.Key{{Subject: result.OfGroup("all@" + focus[0]), Name: st.Yields[0].Name}}
	return st
}

// TestFocus: a test about a few nodes tells the new one from its partners, and
// what all share from both.
func TestFocus(t *testing.T) {
	t.Parallel()
	slow := func(node string, rail int) func(string, string, int, int) float64 {
		return func(from, to string, r, _ int) float64 {
			if r == rail && (from == node || to == node) && from != to {
				return 0.5
			}
			return 12
		}
	}
	for _, c := range []struct {
		name        string
		focus, with string
		racks       int // 0: all in one
		left        string
		speed       func(from, to string, rail, try int) float64
		want        string // suspects
		pairs       string
	}{
		{"the new one is good", "n2", "n1 n5", 4, "", nil, "", "n2-n1 n2-n5 n1-n5"},
		{"the new one is bad on a rail", "n2", "n1 n5", 4, "", slow("n2", 1), "n2 rail 1", "n2-n1 n2-n5 n1-n5"},
		{"a partner is bad", "n2", "n1 n5", 4, "", slow("n5", 1), "n5 rail 1", "n2-n1 n2-n5 n1-n5"},
		{"the switch is bad", "n2", "n1 n5", 4, "", func(_, _ string, rail, _ int) float64 { return float64(12 * rail) }, "rail what rail 0 of all nodes shares", "n2-n1 n2-n5 n1-n5"},
		{"one partner: the port's own loop decides nothing", "n2", "n1", 4, "", slow("n2", 1), "rail what rail 1 of all nodes shares; n1 rail 1; n2 rail 1", "n2-n1"},
		{"two new ones, one bad", "n2 n6", "n1 n5", 4, "", slow("n6", 0), "n6 rail 0", "n2-n6 n2-n1 n6-n5 n2-n5 n6-n1 n1-n5"},
		{"the nearest partner is the one in the rack", "n6", "n1 n5", 4, "", nil, "", "n6-n5 n6-n1 n1-n5"},
		{"nobody is left that it is about", "n2", "n1 n5", 4, "n1 n5", nil, "", ""},
		{"one of two partners is left", "n2", "n1 n5", 4, "n2 n5", nil, "", "n2-n5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := site(8, 2)
			for i, n := range inv.Nodes {
				n.Rack = &inventory.Rack{Name: "r1"}
				if i >= c.racks {
					n.Rack = inv.Nodes[c.racks].Rack
				} else {
					n.Rack = inv.Nodes[0].Rack
				}
				if n.Rack == nil {
					n.Rack = &inventory.Rack{Name: n.Name}
				}
			}
			w := newWorld(inv)
			w.speed = c.speed
			run := newRun(t, inv)
			st := inFocus(steps(t, inv)["all/validate.pair"], strings.Fields(c.focus), strings.Fields(c.with))
			run.Subjects = st.Group.Members
			if c.left != "" {
				run.Subjects = nil
				for _, n := range strings.Fields(c.left) {
					run.Subjects = append(run.Subjects, subject.OfNode(n))
				}
			}
			if err := validate.New(inv, w).Apply(t.Context(), run, st); err != nil {
				t.Fatal(err)
			}
			if got := suspects(run.Findings); got != c.want {
				t.Errorf("suspects %q, want %q", got, c.want)
			}
			set := "all@" + strings.Fields(c.focus)[0]
			if _, ok := run.Fact(result.PairReport.Of(result.OfGroup("all"))); ok {
				t.Error("the report of the whole group was written over")
			}
			if c.pairs == "" {
				if _, ok := run.Fact(result.PairReport.Of(result.OfGroup(set))); ok {
					t.Error("there is a report about nobody")
				}
				return
			}
			met := map[string]bool{}
			for _, r := range report(t, run, result.PairReport, set).Results {
				met[r.Nodes[0]+"-"+r.Nodes[1]] = true
			}
			for _, p := range strings.Fields(c.pairs) {
				a, b, _ := strings.Cut(p, "-")
				if !met[a+"-"+b] || !met[b+"-"+a] {
					t.Errorf("%s was not tested both ways", p)
				}
			}
			if len(met) != 2*len(strings.Fields(c.pairs)) {
				t.Errorf("tested %v, want %s", met, c.pairs)
			}
			if len(w.overload) > 0 {
				t.Errorf("nodes in two pairs at once: %v", w.overload)
			}
		})
	}
}

// TestAcceptedOnItsOwnReport: a node is accepted on the report of the test that it
// waited for, and again later on the one that it was accepted on.
func TestAcceptedOnItsOwnReport(t *testing.T) {
	t.Parallel()
	inv := site(4, 1)
	inv.Nodes[0].Validation.AllReduce = nil
	w := newWorld(inv)
	run := newRun(t, inv)
	s := validate.New(inv, w)
	all := steps(t, inv)
	pair := inFocus(all["all/validate.pair"], []string{"n2"}, []string{"n1", "n3"})
	pair.ID = pair.ID.In("canary")
	run.Subjects = pair.Group.Members
	if err := s.Apply(t.Context(), run, pair); err != nil {
		t.Fatal(err)
	}
	acc := all[accept.ID("n2")]
	if err := s.Apply(t.Context(), run, acc); err == nil {
		t.Error("accepted on a report of others")
	}
	acc.Needs, acc.Reads = []plan.Need{{Step: pair.ID, On: plan.Success}}, pair.Yields
	if err := s.Apply(t.Context(), run, acc); err != nil {
		t.Error(err)
	}
	acc.Needs, acc.Reads = nil, all[acc.ID].Reads // its own limits changed, and no test is planned
	if err := s.Apply(t.Context(), run, acc); err != nil {
		t.Errorf("again: %v", err)
	}
	a, err := result.AcceptedFact.Get(must(run.Fact(result.AcceptedFact.Of(subject.OfNode("n2")))))
	if err != nil || !slices.Equal(a.Reports, pair.Yields) {
		t.Errorf("reports %v %v", a.Reports, err)
	}

	// A later test of all, whose run died before it took n2 out, counts.
	w.speed = func(from, to string, _, _ int) float64 {
		if from == "n2" || to == "n2" {
			return 1
		}
		return 12
	}
	run.Subjects = all["all/validate.pair"].Group.Members
	if err := s.Apply(t.Context(), run, all["all/validate.pair"]); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), run, acc); err == nil || !strings.Contains(err.Error(), "suspected") {
		t.Errorf("accepted on a report that a later one contradicts: %v", err)
	}
}

func must(f fact.Fact, ok bool) fact.Fact {
	if !ok {
		panic("no such fact")
	}
	return f
}
