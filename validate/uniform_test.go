// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/uniform"
)

// role gives all nodes of a site one role.
func role(inv *inventory.Inventory) {
	r := &inventory.Role{Name: "worker"}
	for _, n := range inv.Nodes {
		n.Role = r
	}
}

// TestUniformInThePlan: nodes of a role are compared after their gates, and before
// they are tested and accepted; two of them make no majority.
func TestUniformInThePlan(t *testing.T) {
	t.Parallel()
	inv := site(4, 1)
	withGPUs(inv, 4)
	role(inv)
	all := steps(t, inv)
	st, ok := all["worker/validate.uniform"]
	if !ok || len(st.Group.Members) != 4 || st.May != plan.Effects() || st.Only != plan.WhenNeeded {
		t.Fatalf("%v, %+v", ok, st)
	}
	if !slices.Contains(st.Needs, plan.Need{Step: "n3/validate.gates", On: plan.Settled, Triggers: true}) {
		t.Error("it does not wait for the gates")
	}
	for _, id := range []plan.StepID{"all/validate.pair", "n2/validate.accept"} {
		if !slices.Contains(all[id].Needs, plan.Need{Step: st.ID, On: plan.Settled}) {
			t.Errorf("%s does not wait for it", id)
		}
	}
	inv = site(2, 1)
	withGPUs(inv, 2)
	role(inv)
	if _, has := steps(t, inv)["worker/validate.uniform"]; has {
		t.Error("two nodes are compared")
	}
}

// TestUniformity: who differs in what a collective feels is blamed; in the rest it
// is noted. Nodes of another image are compared among themselves, and a node in
// service has a voice and is not judged.
func TestUniformity(t *testing.T) {
	t.Parallel()
	trait := func(key, value string) uniform.Trait { return uniform.Trait{Key: key, Value: value} }
	for _, c := range []struct {
		name     string
		values   []string // of n1 and so on: KEY=VALUE, "@" another cohort, "+" in service and no member
		suspects string
		notes    []string
	}{
		{"all the same", []string{"1", "1", "1", "1"}, "", nil},
		{"one is odd", []string{"1", "1", "0", "1"}, "n3", nil},
		{"half is no majority", []string{"1", "0", "0", "1"}, "", []string{"role worker: no majority of nodes has the same kernel: 0 (n2, n3); 1 (n1, n4)"}},
		{"a rollout in its midst", []string{"1", "1", "1", "0@"}, "", []string{"n4: too few are meant to be the same for a majority: they were compared with nobody"}},
		{"new ones against those in service", []string{"1+", "1+", "1+", "0"}, "n4", nil},
		{"an outlier in service", []string{"0+", "1", "1", "1"}, "", []string{"n1, which is in service, has kernel 0; 3 of 4 nodes of role worker have 1"}},
		{"a BIOS is noted", []string{"BIOS=1", "BIOS=1", "BIOS=0", "BIOS=1"}, "", []string{"n3 has BIOS 0; 3 of 4 nodes of role worker have 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := site(4, 1)
			withGPUs(inv, 4)
			role(inv)
			var left []subject.ID
			for i, v := range c.values {
				if !strings.Contains(v, "+") {
					left = append(left, subject.OfNode(fmt.Sprintf("n%d", i+1)))
				}
			}
			run := onnodetest.NewRun(left...)
			for i, v := range c.values {
				me := subject.OfNode(fmt.Sprintf("n%d", i+1))
				rec := uniform.Record{Cohort: "a"}
				if v, _ = strings.CutSuffix(v, "@"); v != c.values[i] {
					rec.Cohort = "b"
				}
				if strings.Contains(v, "+") {
					fa, err := result.AcceptedFact.New(me, result.Acceptance{}, "")
					if err != nil || run.Learn(t.Context(), fa) != nil {
						t.Fatal(err)
					}
				}
				key, value, given := strings.Cut(strings.Trim(v, "+"), "=")
				if !given {
					key, value = uniform.Kernel, key
				}
				rec.Traits = append(rec.Traits, trait(key, value))
				f, err := uniform.VersionsFact.New(me, rec, "")
				if err != nil || run.Learn(t.Context(), f) != nil {
					t.Fatal(err)
				}
			}
			if err := validate.New(inv, nil).Apply(t.Context(), run, steps(t, inv)["worker/validate.uniform"]); err != nil {
				t.Fatal(err)
			}
			var suspects []string
			for _, f := range run.Findings {
				suspects = append(suspects, f.Suspects[0].Subject.Name)
				if f.Action == "" || len(f.Evidence) == 0 || !strings.Contains(f.Cause, "3 of 4 nodes of role worker have 1") {
					t.Errorf("%+v", f)
				}
			}
			fa, ok := run.Fact(uniform.Fact.Of(result.OfGroup("worker")))
			if !ok {
				t.Fatal("nothing was learned")
			}
			r, err := uniform.Fact.Get(fa)
			if err != nil || strings.Join(suspects, " ") != c.suspects || !slices.Equal(r.Notes, c.notes) {
				t.Errorf("%v; suspects %q, notes %q", err, suspects, r.Notes)
			}
		})
	}
}
