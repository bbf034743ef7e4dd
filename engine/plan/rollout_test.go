// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// names returns n1 to nN.
func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("n%d", i+1))
	}
	return list
}

// rolled plans a site whose image changed, with a rollout for all of its nodes.
func rolled(t *testing.T, n int, r Rollout, mutate func(*Prior, *Options)) *Plan {
	t.Helper()
	nodes := names(n)
	prior := after(site("sha256:ab", "1500", nodes...), true)
	opt := Options{MaxErase: n, Rollouts: map[string]Rollout{"worker": r}, RoleOf: map[string]string{}}
	for _, n := range nodes {
		opt.RoleOf[n] = "worker"
	}
	if mutate != nil {
		mutate(&prior, &opt)
	}
	p, err := Diff(site("sha256:cd", "1500", nodes...), prior, opt)
	if err != nil {
		t.Fatal(err)
	}
	checkNeeds(t, p)
	return p
}

// waves shows the rollouts of a plan.
func waves(p *Plan) string {
	var out []string
	for _, r := range p.Rollouts {
		for _, w := range r.Waves {
			out = append(out, w.Name+"="+strings.Join(w.Nodes, ","))
		}
	}
	return strings.Join(out, " ")
}

func TestWaves(t *testing.T) {
	t.Parallel()
	given := Rollout{Given: true, Canary: 1, Batch: 2, StopAfter: 1}
	lose := func(names ...string) func(*Prior, *Options) {
		return func(p *Prior, _ *Options) {
			for _, n := range names {
				p.Nodes[n] = NodeState{Accepted: true, Quarantined: "does not boot", Lost: true}
			}
		}
	}
	for _, c := range []struct {
		name    string
		nodes   int
		r       Rollout
		mutate  func(*Prior, *Options)
		waves   string
		gates   int
		refused int
	}{
		{"canary, then batches", 6, given, nil, "canary=n1 batch-1=n2,n3 batch-2=n4,n5 batch-3=n6", 3, 0},
		{"two canaries", 3, Rollout{Given: true, Canary: 2, Batch: 9, StopAfter: 2}, nil, "canary=n1,n2 batch-1=n3", 1, 0},
		{"no canary", 3, Rollout{Given: true, Batch: 2}, nil, "batch-1=n1,n2 batch-2=n3", 1, 0},
		{"one node is one wave, and no gate", 1, given, nil, "canary=n1", 0, 0},
		{"no block: erasure is refused", 2, Rollout{Canary: 1, Batch: 1, StopAfter: 1}, nil, "canary=n1 batch-1=n2", 1, 2},
		{"a node asked for is in no wave", 3, given, func(_ *Prior, o *Options) { o.Replace = map[string]bool{"n2": true} }, "canary=n1 batch-1=n3", 1, 0},
		{"one that is new is in no wave", 3, given, func(p *Prior, _ *Options) {
			delete(p.Nodes, "n1")
			for id := range p.Steps {
				if strings.HasPrefix(string(id), "n1/") {
					delete(p.Steps, id)
				}
			}
		}, "canary=n2 batch-1=n3", 1, 0},
		{"one that an earlier change cost comes with the canary", 4, given, lose("n3"), "canary=n3,n1 batch-1=n2,n4", 1, 0},
		{"one whose rest disturbs nobody is in no wave", 4, given, func(p *Prior, o *Options) {
			lose("n3")(p, o)
			p.Steps["n3/install.write"] = LastSuccess{Inputs: []Input{{Name: "image.os", Value: "sha256:cd"}}}
			delete(p.Steps, "n3/fabric.rail")
			p.Nodes["n3"] = NodeState{Accepted: true, Lost: true}
		}, "canary=n1 batch-1=n2,n4", 1, 0},
		{"a held one is left alone", 3, given, func(p *Prior, _ *Options) { p.Nodes["n1"] = NodeState{Accepted: true, Held: "fan"} }, "canary=n2 batch-1=n3", 1, 0},
		{"no role, no waves: all at once, and refused", 2, given, func(_ *Prior, o *Options) { o.RoleOf = nil }, "", 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := rolled(t, c.nodes, c.r, c.mutate)
			if got := waves(p); got != c.waves {
				t.Errorf("waves %s, want %s", got, c.waves)
			}
			gates := 0
			for _, s := range p.Steps {
				if s.Stage == GateStage {
					gates++
				}
			}
			if gates != c.gates || len(p.Refusals) != c.refused {
				t.Errorf("%d gates, refusals %v; want %d, %d", gates, p.Refusals, c.gates, c.refused)
			}
		})
	}
}

// TestTheTriedOneIsTheCanary: a node whose write was done with the very image that
// is asked for, and that did not come up with it, goes first and alone.
func TestTheTriedOneIsTheCanary(t *testing.T) {
	t.Parallel()
	p := rolled(t, 4, Rollout{Given: true, Canary: 1, Batch: 2}, func(p *Prior, _ *Options) {
		delete(p.Steps, "n3/install.write")
		p.Nodes["n3"] = NodeState{Accepted: true, Lost: true}
	})
	if got, want := waves(p), "canary=n3 batch-1=n1,n2 batch-2=n4"; got != want {
		t.Errorf("waves %s, want %s", got, want)
	}
}

// TestRolloutOrder: what follows a wave is there once for each wave, and nothing
// of a later wave can start before the gate.
func TestRolloutOrder(t *testing.T) {
	t.Parallel()
	p := rolled(t, 3, Rollout{Given: true, Canary: 1, Batch: 2, StopAfter: 1}, nil)
	needs := map[StepID][]StepID{}
	for _, s := range p.Steps {
		for _, n := range s.Needs {
			needs[s.ID] = append(needs[s.ID], n.Step)
		}
	}
	var after func(a, b StepID) bool
	after = func(a, b StepID) bool {
		return slices.ContainsFunc(needs[a], func(n StepID) bool { return n == b || after(n, b) })
	}
	gate := StepID("site/rollout.worker@canary")
	for _, s := range p.Steps {
		first := s.Subject.Name == "n1" || s.ID.Wave() == "canary"
		if s.ID != gate && first == after(s.ID, gate) {
			t.Errorf("%s is on the wrong side of the gate", s.ID)
		}
		if s.ID != gate && first && !after(gate, s.ID) {
			t.Errorf("the gate does not wait for %s", s.ID)
		}
	}
	for id, want := range map[StepID]string{
		"all/validate.pair@canary":  "n1",
		"all/validate.pair@batch-1": "n2 n3",
	} {
		s, ok := p.Step(id)
		if !ok {
			t.Errorf("no step %s in %s", id, ids(p))
			continue
		}
		var got []string
		for _, m := range s.Group.Members {
			got = append(got, m.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s works on %v, want %s", id, got, want)
		}
	}
	g, _ := p.Step(gate)
	if g.Gate == nil || g.Gate.Most != 0 || !slices.Equal(g.Gate.Nodes, []string{"n1"}) || !slices.Equal(g.Gate.Ends, []StepID{"n1/validate.accept"}) {
		t.Errorf("gate %+v", g.Gate)
	}
	if _, ok := p.Step("site/handover.s"); ok {
		t.Error("the hand-over of all nodes stays though no node is outside of the waves")
	}
	if acc, _ := p.Step("n2/validate.accept"); !needsStep(acc, "all/validate.pair@batch-1") || needsStep(acc, "all/validate.pair@canary") {
		t.Errorf("n2's acceptance needs %v", acc.Needs)
	}
}

func needsStep(s Step, id StepID) bool {
	return slices.ContainsFunc(s.Needs, func(n Need) bool { return n.Step == id })
}

// TestRolloutBesideNewNodes: nodes that are not in service yet do not wait for the
// waves, and their tests and hand-over keep their names.
func TestRolloutBesideNewNodes(t *testing.T) {
	t.Parallel()
	p := rolled(t, 5, Rollout{Given: true, Canary: 1, Batch: 2, StopAfter: 1}, func(p *Prior, _ *Options) {
		for _, n := range []string{"n4", "n5"} {
			delete(p.Nodes, n)
			for id := range p.Steps {
				if strings.HasPrefix(string(id), n+"/") {
					delete(p.Steps, id)
				}
			}
		}
	})
	pair, ok := p.Step("all/validate.pair")
	if !ok || len(pair.Group.Members) != 2 || pair.Group.Members[0].Name != "n4" {
		t.Fatalf("the test of the new nodes: %v of %s", pair.Group, ids(p))
	}
	for _, s := range []StepID{"n4/install.write", "all/validate.pair", "site/handover.s"} {
		if st, _ := p.Step(s); slices.ContainsFunc(st.Needs, func(n Need) bool { return strings.Contains(string(n.Step), "rollout") || n.Step.Wave() != "" }) {
			t.Errorf("%s waits for the rollout: %v", s, st.Needs)
		}
	}
}

// TestRolloutOfChangedTest: a test that changed itself, on nodes all of which are
// in waves, is done under its own name in the end, so that the state knows.
func TestRolloutOfChangedTest(t *testing.T) {
	t.Parallel()
	p := rolled(t, 3, Rollout{Given: true, Canary: 1, Batch: 2, StopAfter: 1}, func(p *Prior, _ *Options) {
		p.Steps["all/validate.pair"] = LastSuccess{Inputs: []Input{{Name: "limit", Value: "1"}}}
	})
	last, ok := p.Step("all/validate.pair")
	if !ok || len(last.Group.Members) != 2 || last.Group.Members[0].Name != "n2" {
		t.Errorf("%v in %s", last.Group, ids(p))
	}
	if _, both := p.Step("all/validate.pair@batch-1"); both {
		t.Error("the last wave is tested twice")
	}
}

// TestDrainGoesFirst: whatever disturbs a node in use waits for its drain; what
// the drain itself waits for does not, and a node that nobody uses is not drained.
func TestDrainGoesFirst(t *testing.T) {
	t.Parallel()
	me := subject.OfNode("n1")
	steps := []Step{
		{ID: "n1/early", Subject: me, May: Effects(Config), Only: WhenNeeded}, // a site's program, before the BMC is asked
		{ID: "n1/bmc", Subject: me, Only: WhenNeeded, Needs: []Need{{Step: "n1/early", On: Success}}},
		{ID: "n1/hook", Subject: me, May: Effects(Config), Only: WhenNeeded}, // one before the BIOS is set
		{ID: "n1/bios", Subject: me, May: Effects(Config), Needs: []Need{{Step: "n1/bmc", On: Success}, {Step: "n1/hook", On: Success}}, Inputs: []Input{{Name: "bios", Value: "new"}}},
		{ID: "n1/drain", Subject: me, Only: WhenDisturbed, Needs: []Need{{Step: "n1/bmc", On: Success}}},
		{ID: "n1/test", Subject: me, May: Effects(Load), Inputs: []Input{{Name: "x", Value: "new"}}},
		{ID: "site/hand", Subject: subject.ID{Kind: subject.Site, Name: "hand"}, Needs: []Need{{Step: "n1/drain", On: Settled, Triggers: true}}},
	}
	prior := Prior{Steps: map[StepID]LastSuccess{}, Nodes: map[string]NodeState{"n1": {Accepted: true}}}
	for _, s := range steps {
		prior.Steps[s.ID] = LastSuccess{Inputs: []Input{}}
		if len(s.Inputs) > 0 {
			prior.Steps[s.ID] = LastSuccess{Inputs: []Input{{Name: s.Inputs[0].Name, Value: "old"}}}
		}
	}
	p, err := Diff(steps, prior, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ids(p), "<n1/early <n1/bmc ~n1/drain <n1/hook ~n1/bios ~n1/test ~site/hand"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	checkNeeds(t, p)
	prior.Nodes["n1"] = NodeState{}
	if p, err = Diff(steps, prior, Options{}); err != nil || strings.Contains(ids(p), "drain") {
		t.Errorf("drained though nobody uses it: %s %v", ids(p), err)
	}
	prior.Nodes["n1"] = NodeState{Accepted: true}
	prior.Steps["n1/bios"] = LastSuccess{Inputs: steps[3].Inputs}
	if p, err = Diff(steps, prior, Options{}); err != nil || ids(p) != "~n1/test" {
		t.Errorf("a test alone plans %s %v", ids(p), err)
	}
}

// TestFocus: a test is about those that are new to it.
func TestFocus(t *testing.T) {
	t.Parallel()
	report := fact.Key{Subject: subject.ID{Kind: subject.Group, Name: "all"}, Name: "pair"}
	make := func(n int, mutate func([]Step, *Prior)) (Step, Step) {
		steps := site("sha256:ab", "1500", names(n)...)
		for i := range steps {
			if steps[i].Group != nil {
				steps[i].Group.Partners = 2
				steps[i].Group.Min = n * 3 / 4
				steps[i].Yields = []fact.Key{report}
			}
			if strings.HasSuffix(string(steps[i].ID), "accept") {
				steps[i].Accepts = true
				steps[i].Reads = []fact.Key{report}
			}
		}
		prior := after(steps, true)
		mutate(steps, &prior)
		p, err := Diff(steps, prior, Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkNeeds(t, p)
		pair, _ := p.Step("all/validate.pair")
		acc, _ := p.Step("n2/validate.accept")
		return pair, acc
	}
	forget := func(p *Prior, node string) {
		delete(p.Nodes, node)
		for id := range p.Steps {
			if strings.HasPrefix(string(id), node+"/") {
				delete(p.Steps, id)
			}
		}
	}
	show := func(s Step) string {
		if s.Group == nil {
			return "not planned"
		}
		var out []string
		for _, m := range s.Group.Members {
			out = append(out, m.Name)
		}
		return fmt.Sprintf("%s; %d in focus, min %d", strings.Join(out, " "), len(s.Group.Focus), s.Group.Min)
	}
	for _, c := range []struct {
		name   string
		nodes  int
		mutate func([]Step, *Prior)
		want   string
	}{
		{"nothing to do", 4, func([]Step, *Prior) {}, "not planned"},
		{"all are new", 4, func(_ []Step, p *Prior) { *p = Prior{} }, "n1 n2 n3 n4; 0 in focus, min 3"},
		{"one is new: itself, the nearest, and one far from it", 8, func(_ []Step, p *Prior) { forget(p, "n2") }, "n2 n1 n5; 1 in focus, min 2"},
		{"the test found something in one: it was not done, but it ran", 8, func(_ []Step, p *Prior) {
			delete(p.Steps, "all/validate.pair")
			delete(p.Steps, "n2/validate.accept")
			p.Nodes["n2"] = NodeState{Quarantined: "rail 3"}
			p.Facts = map[fact.Key]fact.Fact{report: {}}
		}, "n2 n1 n5; 1 in focus, min 2"},
		{"it never ran: all", 8, func(_ []Step, p *Prior) { delete(p.Steps, "all/validate.pair"); forget(p, "n2") }, "n1 n2 n3 n4 n5 n6 n7 n8; 0 in focus, min 6"},
		{"it changed itself: all", 4, func(_ []Step, p *Prior) {
			p.Steps["all/validate.pair"] = LastSuccess{Inputs: []Input{{Name: "limit", Value: "1"}}}
			forget(p, "n2")
		}, "n1 n2 n3 n4; 0 in focus, min 3"},
		{"a held and a lost one are no partners", 4, func(_ []Step, p *Prior) {
			forget(p, "n2")
			p.Nodes["n1"] = NodeState{Accepted: true, Held: "fan"}
			p.Nodes["n3"] = NodeState{Accepted: true, Lost: true}
		}, "n2 n4; 1 in focus, min 2"},
		{"one that was held when the test ran", 8, func(_ []Step, p *Prior) {
			delete(p.Steps, "n2/validate.accept")
			p.Nodes["n2"] = NodeState{}
		}, "n2 n1 n5; 1 in focus, min 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pair, acc := make(c.nodes, c.mutate)
			if got := show(pair); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if pair.Group != nil && len(pair.Group.Focus) > 0 {
				own := fact.Key{Subject: subject.ID{Kind: subject.Group, Name: "all@n2"}, Name: "pair"}
				if !slices.Equal(pair.Yields, []fact.Key{own}) || !slices.Equal(acc.Reads, []fact.Key{own}) {
					t.Errorf("yields %v, and n2 reads %v", pair.Yields, acc.Reads)
				}
				if !strings.Contains(pair.Title, "n2 against") {
					t.Errorf("title %q", pair.Title)
				}
			}
		})
	}
}
