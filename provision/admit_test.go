// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/subject"
)

// mutation is one way to make a saved plan do more than it was saved to do. It reports
// whether it found something to change.
type mutation struct {
	name  string
	apply func(r *rand.Rand, p *plan.Plan) bool
}

// pick returns a step of which ok says yes; nil for none.
func pick(r *rand.Rand, p *plan.Plan, ok func(*plan.Step) bool) *plan.Step {
	var of []*plan.Step
	for i := range p.Steps {
		if ok(&p.Steps[i]) {
			of = append(of, &p.Steps[i])
		}
	}
	if len(of) == 0 {
		return nil
	}
	return of[r.IntN(len(of))]
}

func anyStep(*plan.Step) bool        { return true }
func erasing(s *plan.Step) bool      { return s.May.Has(plan.Erase) }
func waits(s *plan.Step) bool        { return len(s.Needs) > 0 }
func hasParams(s *plan.Step) bool    { return len(s.Params) > 0 }
func ofGate(s *plan.Step) bool       { return s.Gate != nil }
func ofGroup(s *plan.Step) bool      { return s.Group != nil }
func erasingWaits(s *plan.Step) bool { return erasing(s) && waits(s) }

// changed makes a mutation of one step.
func changed(name string, ok func(*plan.Step) bool, f func(*rand.Rand, *plan.Step)) mutation {
	return mutation{name, func(r *rand.Rand, p *plan.Plan) bool {
		s := pick(r, p, ok)
		if s != nil {
			f(r, s)
		}
		return s != nil
	}}
}

func mutations() []mutation {
	return []mutation{
		{"the count is emptied and the budget raised", func(_ *rand.Rand, p *plan.Plan) bool {
			p.Erase = plan.Erasure{Budget: 9999}
			return true
		}},
		{"the count names others", func(r *rand.Rand, p *plan.Plan) bool {
			p.Erase.Nodes = []string{fmt.Sprint("n", r.IntN(9))}
			return true
		}},
		{"refusals are taken out", func(_ *rand.Rand, p *plan.Plan) bool {
			had := len(p.Refusals) > 0
			p.Refusals = nil
			return had
		}},
		{"versions are taken out", func(_ *rand.Rand, p *plan.Plan) bool { p.Versions = nil; return true }},
		{"another node is asked for", func(r *rand.Rand, p *plan.Plan) bool {
			p.Request.Replace = append(slices.Clone(p.Request.Replace), fmt.Sprint("n", 1+r.IntN(2)))
			p.Request.Targets = nil
			return true
		}},
		{"the steps of a node are also those of another", copyNode},
		{"a step is left out", func(r *rand.Rand, p *plan.Plan) bool {
			i := r.IntN(len(p.Steps))
			p.Steps = slices.Delete(p.Steps, i, i+1)
			return true
		}},
		{"a step that others need is left out, with the needs", dropNeeded},
		{"a step stands in it twice", func(r *rand.Rand, p *plan.Plan) bool {
			s := *pick(r, p, anyStep)
			s.May |= plan.Effects(plan.Erase)
			p.Steps = append(p.Steps, s)
			return true
		}},
		changed("a need less", waits, func(r *rand.Rand, s *plan.Step) {
			i := r.IntN(len(s.Needs))
			s.Needs = slices.Delete(slices.Clone(s.Needs), i, i+1)
		}),
		changed("no needs before an erase", erasingWaits, func(_ *rand.Rand, s *plan.Step) { s.Needs = nil }),
		changed("a need is only waited for", waits, func(r *rand.Rand, s *plan.Step) {
			s.Needs = slices.Clone(s.Needs)
			n := &s.Needs[r.IntN(len(s.Needs))]
			if n.On = plan.Settled; r.IntN(2) == 0 {
				n.On, n.Triggers = "", !n.Triggers
			}
		}),
		changed("another effect is allowed", anyStep, func(r *rand.Rand, s *plan.Step) {
			s.May ^= plan.EffectSet(1 << r.IntN(6))
			s.Erases = "disk os"
		}),
		changed("another node is erased", erasing, func(_ *rand.Rand, s *plan.Step) {
			s.Subject = subject.OfNode(map[string]string{"n1": "n2", "n2": "n1"}[s.Subject.Name])
		}),
		changed("another disk", hasParams, func(r *rand.Rand, s *plan.Step) {
			s.Params = map[string]plan.Value{"disk": plan.Literal("sdb"), "count": plan.Literal(r.IntN(9))}
		}),
		changed("a parameter is of another node", hasParams, func(_ *rand.Rand, s *plan.Step) {
			s.Params = map[string]plan.Value{"disk": {Fact: &fact.Key{Subject: subject.OfNode("n9"), Name: "install.disk"}}}
		}),
		changed("no parameters", hasParams, func(_ *rand.Rand, s *plan.Step) { s.Params = nil }),
		changed("other words for what is lost", erasing, func(_ *rand.Rand, s *plan.Step) { s.Erases = "nothing" }),
		changed("a barrier", anyStep, func(_ *rand.Rand, s *plan.Step) { s.Barrier = !s.Barrier }),
		changed("a condition", anyStep, func(_ *rand.Rand, s *plan.Step) { s.Only += "x" }),
		changed("an acceptance", anyStep, func(_ *rand.Rand, s *plan.Step) { s.Accepts = !s.Accepts }),
		changed("another stage", anyStep, func(_ *rand.Rand, s *plan.Step) { s.Stage = "install" }),
		changed("another action", anyStep, func(_ *rand.Rand, s *plan.Step) { s.Action += "x" }),
		changed("another name", anyStep, func(_ *rand.Rand, s *plan.Step) { s.ID += "x" }),
		changed("inputs", anyStep, func(_ *rand.Rand, s *plan.Step) {
			s.Inputs = append(slices.Clone(s.Inputs), plan.Input{Name: "image.os", Value: "sha256:3333"})
		}),
		changed("a gate lets all failures pass", ofGate, func(_ *rand.Rand, s *plan.Step) {
			g := *s.Gate
			g.Most = 99
			s.Gate = &g
		}),
		changed("a gate looks at no node", ofGate, func(_ *rand.Rand, s *plan.Step) {
			g := *s.Gate
			g.Nodes, g.Ends = nil, nil
			s.Gate = &g
		}),
		changed("a test of fewer", ofGroup, func(_ *rand.Rand, s *plan.Step) {
			g := *s.Group
			g.Members, g.Min, g.OnLoss = nil, 0, plan.Shrink
			s.Group = &g
		}),
		changed("resources are not held", func(s *plan.Step) bool { return len(s.Uses) > 0 }, func(_ *rand.Rand, s *plan.Step) { s.Uses = nil }),
	}
}

// copyNode adds the steps of a node once more, for the other one.
func copyNode(r *rand.Rand, p *plan.Plan) bool {
	from := pick(r, p, erasing)
	if from == nil {
		return false
	}
	was, to := from.Subject.Name, map[string]string{"n1": "n2", "n2": "n1"}[from.Subject.Name]
	have := map[plan.StepID]bool{}
	for _, s := range p.Steps {
		have[s.ID] = true
	}
	for _, s := range slices.Clone(p.Steps) {
		if s.Subject.Name != was {
			continue
		}
		raw, _ := json.Marshal(s)
		var other plan.Step
		if json.Unmarshal(bytes.ReplaceAll(raw, []byte(was), []byte(to)), &other) == nil && !have[other.ID] {
			p.Steps = append(p.Steps, other)
		}
	}
	return true
}

// dropNeeded takes a step out of a plan, and out of the needs of all others.
func dropNeeded(r *rand.Rand, p *plan.Plan) bool {
	s := pick(r, p, waits)
	if s == nil {
		return false
	}
	gone := s.Needs[r.IntN(len(s.Needs))].Step
	p.Steps = slices.DeleteFunc(p.Steps, func(s plan.Step) bool { return s.ID == gone })
	for i := range p.Steps {
		p.Steps[i].Needs = slices.DeleteFunc(slices.Clone(p.Steps[i].Needs), func(n plan.Need) bool { return n.Step == gone })
	}
	return true
}

// wider says in what a plan that is admitted would do more than the one that was
// saved; "" for nothing. It compares everything but what is only shown.
func wider(was, is *plan.Plan) string {
	shown := func(s plan.Step) string {
		s.Title, s.Why, s.Decl, s.Deadline = "", nil, plan.SourceRange{}, plan.Budget{}
		raw, err := json.Marshal(s)
		if err != nil {
			return err.Error()
		}
		return string(raw)
	}
	of := map[plan.StepID]string{}
	for _, s := range was.Steps {
		of[s.ID] = shown(s)
	}
	for _, s := range is.Steps {
		if got := shown(s); of[s.ID] != got {
			return fmt.Sprintf("%s: %s, was %s", s.ID, got, of[s.ID])
		}
	}
	for _, n := range is.Erase.Nodes {
		if !slices.Contains(was.Erase.Nodes, n) {
			return n + " is erased"
		}
	}
	if is.Erase.Budget > was.Erase.Budget || len(is.Refusals) < len(was.Refusals) {
		return fmt.Sprintf("budget %d, %d refusals", is.Erase.Budget, len(is.Refusals))
	}
	return ""
}

// unheard is a network on which nobody answers.
type unheard struct{ network.Network }

func (unheard) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("no route to host")
}

// bases are plans as they are saved, each with the site and the state that it is
// applied to.
func bases(t *testing.T) map[string]func() (*Site, state.Store, *plan.Plan) {
	text := strings.Replace(pinned, "DIGEST", one, 1)
	quiet := func(text string) *Site { // on a network on which nobody answers
		s := openText(t, text)
		s.network = unheard{s.network}
		return s
	}
	plain, store := quiet(text), finished(t, planFor(t, quiet(text), state.Empty{}, PlanOptions{}))
	edited := quiet(strings.Replace(text, one, two, 1))
	waves := quiet(strings.Replace(text, "mtu        = 1500", "mtu        = 4200", 1))
	fresh := state.NewMemory()
	return map[string]func() (*Site, state.Store, *plan.Plan){
		"one node is replaced": func() (*Site, state.Store, *plan.Plan) {
			return plain, store, planFor(t, plain, store, PlanOptions{Replace: []string{"n1"}, Targets: []string{"n1"}})
		},
		"a rollout": func() (*Site, state.Store, *plan.Plan) { return waves, store, planFor(t, waves, store, PlanOptions{}) },
		"refused": func() (*Site, state.Store, *plan.Plan) {
			return edited, store, planFor(t, edited, store, PlanOptions{})
		},
		"new": func() (*Site, state.Store, *plan.Plan) {
			return plain, fresh, planFor(t, plain, fresh, PlanOptions{Targets: []string{"n2"}})
		},
	}
}

// TestLongMutatedPlans: whoever has the key of the site seals what he likes. Of 1,000
// mutations of saved plans none is admitted that does more than the plan which was
// saved: another node or disk, another effect, a need or a check less, a larger budget.
func TestLongMutatedPlans(t *testing.T) {
	t.Parallel()
	ctx, key := context.Background(), plan.Key("the real key of this site, 32 B.")
	r := rand.New(rand.NewPCG(13, 8))
	admitted, refused, tried := 0, 0, map[string]int{}
	of, all := bases(t), mutations()
	names := []string{"one node is replaced", "a rollout", "refused", "new"}
	fences := map[state.Store]state.Fence{}
	many := 1000
	if testing.Short() {
		many = 300
	}
	for n := 0; n < many; {
		base, m := names[n%len(names)], all[r.IntN(len(all))]
		site, store, was := of[base]()
		was.Lineage = store.Info().Lineage
		if _, ok := fences[store]; !ok {
			fence, err := store.Claim(ctx, "test")
			if err != nil {
				t.Fatal(err)
			}
			fences[store] = fence
		}
		p := reopened(t, was, key)
		if !m.apply(r, p) {
			continue // there is nothing of this sort in it
		}
		n++
		tried[m.name]++
		is, err := site.Admit(ctx, store, fences[store], reopened(t, p, key), nil)
		if err != nil {
			refused++
			continue
		}
		admitted++
		if why := wider(was, is); why != "" {
			t.Fatalf("%s, %s: admitted, and wider: %s", base, m.name, why)
		}
	}
	for _, m := range all {
		if tried[m.name] == 0 {
			t.Errorf("%s: never tried", m.name)
		}
	}
	t.Logf("%d refused, %d admitted that do no more than what was saved", refused, admitted)
}

// reopened is a plan after it was saved, sealed, and read.
func reopened(t *testing.T, p *plan.Plan, key plan.Key) *plan.Plan {
	t.Helper()
	var b bytes.Buffer
	if err := plan.Save(&b, p, key); err != nil {
		t.Fatal(err)
	}
	back, problem, err := plan.Open(&b, key)
	if err != nil || problem != "" {
		t.Fatal(problem, err)
	}
	return back
}

// TestAdmitKeepsPlans: a plan that nothing was done to is admitted, whatever it is of.
func TestAdmitKeepsPlans(t *testing.T) {
	t.Parallel()
	for name, base := range bases(t) {
		site, store, was := base()
		was.Lineage = store.Info().Lineage
		fence, err := store.Claim(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		is, err := site.Admit(t.Context(), store, fence, reopened(t, was, plan.Key("k")), nil)
		if err != nil || len(is.Steps) != len(was.Steps) || is.ID != was.ID || wider(was, is) != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestResumeOfFormat1: the plan of a run that an ironrail of plan format 1 had begun
// is continued.
func TestResumeOfFormat1(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	raw, err := os.ReadFile("testdata/plan-format-1.json") // the object plan/ID of its state
	if err != nil {
		t.Fatal(err)
	}
	store, err := state.Open(filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	fence, err := store.Claim(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.Replace(raw, []byte("FORMATONE"), []byte(store.Info().Lineage), 1)
	run, err := state.PutOf(state.LastRun, state.Run{ID: "r1", Plan: "p20261120T030405-FORM01", Outcome: state.RunInterrupted})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Append(ctx, fence, state.Batch{Puts: []state.Put{run, {Key: state.PlanKey("p20261120T030405-FORM01"), Value: bytes.TrimSpace(raw)}}}); err != nil {
		t.Fatal(err)
	}
	p, _, err := state.ReadUnfinishedPlan(ctx, store)
	if err != nil || p == nil || p.Format != 1 || len(p.Steps) == 0 {
		t.Fatalf("the plan of the run: %v, %v", p, err)
	}
	site := openText(t, strings.Replace(pinned, "DIGEST", one, 1))
	if again, err := json.Marshal(p); err != nil || !bytes.Equal(again, bytes.TrimSpace(raw)) {
		t.Errorf("something of it was lost: %s, %v", again, err)
	}
	digests, err := site.Artifacts.Digests()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := apply.New(ctx, site.config(RunOptions{Plan: p, Store: store, Fence: fence, Resume: true}, digests)); err != nil {
		t.Errorf("not continued: %v", err)
	}
}
