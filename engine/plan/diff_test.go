// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// site returns the steps of a site with the given nodes, as stages plan them.
func site(image, mtu string, nodes ...string) []Step {
	var steps, accepts []Step
	var members []subject.ID
	for _, n := range nodes {
		members = append(members, subject.OfNode(n))
	}
	pair := Step{ID: "all/validate.pair", Stage: "validate", Subject: subject.ID{Kind: subject.Group, Name: "all"},
		Group: &Group{Set: "all", Members: members, Min: 1, OnLoss: Shrink}}
	hand := Step{ID: "site/handover.s", Stage: "handover", Subject: subject.ID{Kind: subject.Site, Name: "handover.s"}}
	for _, n := range nodes {
		id := func(s string) StepID { return StepID(n + "/" + s) }
		node := func(s, stage string, needs ...Need) Step {
			return Step{ID: id(s), Stage: stage, Subject: subject.OfNode(n), Needs: needs}
		}
		write := node("install.write", "install", Need{Step: id("handover.drain"), On: Success})
		write.May = Effects(Erase)
		write.Inputs = []Input{{Name: "image.os", Value: image, Decl: SourceRange{File: "site.hcl", Line: 12}}}
		fab := node("fabric.rail", "fabric", Need{Step: write.ID, On: Success, Triggers: true})
		fab.Inputs = []Input{{Name: "mtu", Value: mtu}}
		acc := node("validate.accept", "validate", Need{Step: pair.ID, On: Settled}, Need{Step: fab.ID, On: Success, Triggers: true})
		drain := node("handover.drain", "handover")
		drain.Only = WhenReinstalled
		steps = append(steps, drain, write, fab)
		accepts = append(accepts, acc)
		pair.Needs = append(pair.Needs, Need{Step: fab.ID, On: Settled, Triggers: true})
		hand.Needs = append(hand.Needs, Need{Step: acc.ID, On: Settled, TriggersIfNew: true}, Need{Step: write.ID, On: Settled, Triggers: true})
	}
	return append(append(append(steps, pair), accepts...), hand)
}

// after returns the state once every given step has ended well.
func after(steps []Step, accepted bool) Prior {
	p := Prior{Lineage: "l", Steps: map[StepID]LastSuccess{}, Nodes: map[string]NodeState{}}
	for _, s := range steps {
		if s.Only == "" {
			p.Steps[s.ID] = LastSuccess{Version: s.Version, Inputs: s.Inputs}
		}
		eachNode(&s, func(n string) { p.Nodes[n] = NodeState{Version: 7, Accepted: accepted} })
	}
	return p
}

func ids(p *Plan) string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, string(s.Action)+string(s.ID))
	}
	return strings.Join(out, " ")
}

// ambiguousOf is the rule that it is not known what a node would lose.
func ambiguousOf(node string) func(*Step) (Reason, error) {
	return func(s *Step) (why Reason, _ error) {
		if s.Subject.Name == node {
			why.Cause = "two disks fit"
		}
		return why, nil
	}
}

// TestAmbiguousFails: where it is unknown what a plan erases, there is no plan.
func TestAmbiguousFails(t *testing.T) {
	t.Parallel()
	failed := errors.New("unreadable fact")
	_, err := Diff(site("sha256:ab", "1500", "n1"), Prior{}, Options{MaxErase: 1, Ambiguous: func(*Step) (Reason, error) { return Reason{}, failed }})
	if !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}

// inMemory makes what is written be kept in memory: it erases nothing, and takes the system away.
func inMemory(steps []Step) []Step {
	steps = slices.Clone(steps)
	for i := range steps {
		if s := &steps[i]; s.May.Has(Erase) {
			s.May, s.Erases, s.Reinstalls = Effects(Power, Config), "", true
		}
	}
	return steps
}

func TestDiff(t *testing.T) {
	t.Parallel()
	old := site("sha256:ab", "1500", "n1", "n2")
	cases := []struct {
		name    string
		desired []Step
		prior   Prior
		opt     Options
		want    string
		refused int
		offers  int
		erase   string
	}{
		{"nothing known: everything", old, Prior{}, Options{MaxErase: 2},
			"+n1/install.write +n1/fabric.rail +n2/install.write +n2/fabric.rail +all/validate.pair +n1/validate.accept +n2/validate.accept +site/handover.s", 0, 0, "n1 n2"},
		{"second plan has nothing to do", old, after(old, true), Options{}, "", 0, 0, ""},
		{"changed MTU: fabric and validation only", site("sha256:ab", "9000", "n1", "n2"), after(old, true), Options{},
			"~n1/fabric.rail ~n2/fabric.rail ~all/validate.pair ~n1/validate.accept ~n2/validate.accept", 0, 0, ""},
		{"changed image on accepted nodes is refused", site("sha256:cd", "1500", "n1", "n2"), after(old, true), Options{MaxErase: 2},
			"~n1/handover.drain -/+n1/install.write ~n1/fabric.rail ~n2/handover.drain -/+n2/install.write ~n2/fabric.rail ~all/validate.pair ~n1/validate.accept ~n2/validate.accept ~site/handover.s", 2, 0, ""},
		{"so it is where nothing is erased", inMemory(site("sha256:cd", "1500", "n1", "n2")), after(old, true), Options{MaxErase: 2},
			"~n1/install.write ~n1/fabric.rail ~n2/install.write ~n2/fabric.rail ~all/validate.pair ~n1/validate.accept ~n2/validate.accept ~site/handover.s", 2, 0, ""},
		{"replace of one that erases nothing", inMemory(old), after(old, true), Options{Replace: map[string]bool{"n1": true}, Protected: map[string]bool{"n1": true}},
			"-/+n1/install.write ~n1/fabric.rail ~all/validate.pair ~n1/validate.accept ~site/handover.s", 0, 0, ""},
		{"replace of one node", old, after(old, true), Options{MaxErase: 1, Replace: map[string]bool{"n1": true}},
			"~n1/handover.drain -/+n1/install.write ~n1/fabric.rail ~all/validate.pair ~n1/validate.accept ~site/handover.s", 0, 0, "n1"},
		{"running but unknown: adopt is offered, nothing installed", old, Prior{}, Options{Presence: map[string]Presence{"n1": {Running: true, Evidence: "power is on"}, "n2": {Running: true, Evidence: "power is on"}}},
			"", 0, 2, ""},
		{"not known what n1 loses: not erased, and not counted", old, Prior{}, Options{MaxErase: 2, Ambiguous: ambiguousOf("n1")},
			"+n1/install.write +n1/fabric.rail +n2/install.write +n2/fabric.rail +all/validate.pair +n1/validate.accept +n2/validate.accept +site/handover.s", 1, 0, "n2"},
		{"protected is absolute", old, after(old, true), Options{Replace: map[string]bool{"n1": true}, Protected: map[string]bool{"n1": true}, Targets: map[string]bool{"n1": true}},
			"~n1/handover.drain -/+n1/install.write ~n1/fabric.rail ~all/validate.pair ~n1/validate.accept ~site/handover.s", 1, 0, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := Diff(c.desired, c.prior, c.opt)
			if err != nil {
				t.Fatal(err)
			}
			if got := ids(p); got != c.want {
				t.Errorf("steps\n got %s\nwant %s", got, c.want)
			}
			if len(p.Refusals) != c.refused || len(p.Offers) != c.offers {
				t.Errorf("refusals %v, offers %v; want %d, %d", p.Refusals, p.Offers, c.refused, c.offers)
			}
			if got := strings.Join(p.Erase.Nodes, " "); got != c.erase {
				t.Errorf("erases %q, want %q", got, c.erase)
			}
			checkNeeds(t, p)
		})
	}
}

// checkNeeds verifies that every need is planned and comes earlier.
func checkNeeds(t *testing.T, p *Plan) {
	t.Helper()
	seen := map[StepID]bool{}
	for _, s := range p.Steps {
		for _, n := range s.Needs {
			if !seen[n.Step] {
				t.Errorf("%s needs %s, which is not planned before it", s.ID, n.Step)
			}
		}
		seen[s.ID] = true
	}
}

func TestDiffSaysWhichValueChanged(t *testing.T) {
	t.Parallel()
	p, err := Diff(site("sha256:cd", "1500", "n1"), after(site("sha256:ab", "1500", "n1"), true), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := p.Step("n1/install.write")
	want := []string{"image.os sha256:ab -> sha256:cd (site.hcl:12)"}
	if !slices.Equal(s.Why, want) {
		t.Errorf("why %q, want %q", s.Why, want)
	}
	if p.Versions[subject.OfNode("n1")] != 7 {
		t.Errorf("version of n1 is %d, want the one that was read, 7", p.Versions[subject.OfNode("n1")])
	}
}

func TestNewFingerprintVersionAloneIsNoReason(t *testing.T) {
	t.Parallel()
	steps := site("sha256:ab", "1500", "n1")
	prior := after(steps, true)
	for i := range steps {
		steps[i].Version++
		steps[i].Inputs = append(slices.Clone(steps[i].Inputs), Input{Name: "layout", Value: "gpt"})
	}
	p, err := Diff(steps, prior, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Empty() {
		t.Errorf("a new ironrail plans %s", ids(p))
	}
}

// settled has steps that set up hosts, of nodes that were set up before there were such steps.
func settled(nodes ...string) (steps []Step, prior Prior) {
	old := site("sha256:ab", "1500", nodes...)
	prior = after(old, true)
	for _, n := range nodes {
		steps = append(steps, Step{ID: StepID(n + "/host.settings"), Stage: "host", Subject: subject.OfNode(n), May: Effects(Config), NonDisruptive: true, Inherited: true,
			Needs: []Need{{Step: StepID(n + "/install.write"), On: Success, Triggers: true}}})
		drain := Step{ID: StepID(n + "/drain"), Stage: "handover", Subject: subject.OfNode(n), Only: WhenDisturbed}
		steps = append(steps, drain)
	}
	return append(old, steps...), prior
}

// TestInheritedSteps: a step that is new in this version is not planned for nodes in
// service, unless a look finds that they differ; then it needs no drain, and goes in waves.
func TestInheritedSteps(t *testing.T) {
	t.Parallel()
	differs := map[StepID]Observation{"n1/host.settings": {Differs: true, Evidence: "not on hold"}, "n2/host.settings": {Evidence: "as it should be"}, "n3/host.settings": {Differs: true, Evidence: "not on hold"}}
	waves := Options{Observed: differs, Rollouts: map[string]Rollout{"w": {Canary: 1, Batch: 1, StopAfter: 1}}, RoleOf: map[string]string{"n1": "w", "n2": "w", "n3": "w"}}
	for _, c := range []struct {
		name    string
		opt     Options
		service bool
		want    string
	}{
		{"nobody looked", Options{}, true, ""},
		{"two differ", Options{Observed: differs}, true, "+n1/host.settings +n3/host.settings"},
		{"in waves", waves, true, "+n1/host.settings <site/rollout.w@canary +n3/host.settings"},
		{"not in service", Options{}, false, "+n1/host.settings +n2/host.settings +n3/host.settings"},
	} {
		steps, prior := settled("n1", "n2", "n3")
		for n, st := range prior.Nodes {
			st.Accepted = c.service
			prior.Nodes[n] = st
		}
		p, err := Diff(steps, prior, c.opt)
		if err != nil {
			t.Fatal(err)
		}
		if got := ids(p); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	steps, prior := settled("n1")
	p, err := Diff(steps, prior, Options{Observed: differs})
	if st, ok := p.Step("n1/host.settings"); err != nil || !ok || !slices.Equal(st.Why, []string{"not done yet: not on hold"}) {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestHeldNodeIsLeftAlone(t *testing.T) {
	t.Parallel()
	steps := site("sha256:ab", "1500", "n1", "n2")
	p, err := Diff(steps, Prior{Nodes: map[string]NodeState{"n1": {Held: "fan swap"}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(p); strings.Contains(got, "n1/") {
		t.Errorf("steps for a held node: %s", got)
	}
	g, _ := p.Step("all/validate.pair")
	if len(g.Group.Members) != 1 || len(p.Warnings) != 1 {
		t.Errorf("members %v, warnings %q", g.Group.Members, p.Warnings)
	}
}

func TestDiffRefusesCyclesAndUnknownNeeds(t *testing.T) {
	t.Parallel()
	for want, steps := range map[string][]Step{
		"a -> b -> a":    {{ID: "a", Needs: []Need{{Step: "b"}}}, {ID: "b", Needs: []Need{{Step: "a"}}}},
		"no stage plans": {{ID: "a", Needs: []Need{{Step: "x"}}}},
		"two steps":      {{ID: "a"}, {ID: "a"}},
	} {
		if _, err := Diff(steps, Prior{}, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestNeededStepsGoWithWhatNeedsThem(t *testing.T) {
	t.Parallel()
	chain := []Step{
		{ID: "site/image", Only: WhenNeeded, Subject: subject.ID{Kind: subject.Site, Name: "image"}},
		{ID: "site/repo", Only: WhenNeeded, Subject: subject.ID{Kind: subject.Site, Name: "repo"}, Needs: []Need{{Step: "site/image", On: Success}}},
		{ID: "n1/drivers", Subject: subject.OfNode("n1"), Needs: []Need{{Step: "site/repo", On: Success}}},
	}
	for want, prior := range map[string]Prior{
		"<site/image <site/repo +n1/drivers": {},
		"":                                   {Steps: map[StepID]LastSuccess{"n1/drivers": {}}},
	} {
		p, err := Diff(chain, prior, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := ids(p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestRenewed: what a step read of a node is read again when the node is in quarantine, by
// whatever step, and not otherwise.
func TestRenewed(t *testing.T) {
	t.Parallel()
	steps := []Step{
		{ID: "n1/validate.gates", Stage: "validate", Subject: subject.OfNode("n1"), Renewed: true},
		{ID: "n1/fabric.rail", Stage: "fabric", Subject: subject.OfNode("n1")},
		{ID: "n2/validate.gates", Stage: "validate", Subject: subject.OfNode("n2"), Renewed: true},
	}
	prior := after(steps, false)
	prior.Nodes["n1"] = NodeState{Version: 7, Quarantined: "DIMM A3 is slow"}
	p, err := Diff(steps, prior, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Steps) != 1 || p.Steps[0].ID != "n1/validate.gates" || !slices.Equal(p.Steps[0].Why, []string{"n1 is in quarantine: it may have been repaired"}) {
		t.Errorf("planned %+v", p.Steps)
	}
}

// TestRetest: a node that is to be tested again is drained first, and is not changed; what loads it waits
// for its drain, and others get no step.
func TestRetest(t *testing.T) {
	t.Parallel()
	var steps []Step
	group := Step{ID: "all/pair", Subject: subject.ID{Kind: subject.Group, Name: "all"}, Group: &Group{Set: "all", Min: 2, Partners: 2}, Yields: []fact.Key{{Subject: subject.ID{Kind: subject.Group, Name: "all"}, Name: "pair"}}}
	for _, n := range []string{"n1", "n2", "n3"} {
		me := subject.OfNode(n)
		steps = append(steps, Step{ID: StepID(n + "/drivers"), Subject: me, May: Effects(Config)}, Step{ID: StepID(n + "/drain"), Subject: me, Only: WhenDisturbed},
			Step{ID: StepID(n + "/gates"), Subject: me, Test: true}, Step{ID: StepID(n + "/burn"), Subject: me, Test: true, May: Effects(Load), Needs: []Need{{Step: StepID(n + "/gates"), On: Success}}})
		group.Group.Members = append(group.Group.Members, me)
	}
	steps = append(steps, group)
	for _, n := range []string{"n1", "n2", "n3"} {
		steps = append(steps, Step{ID: StepID(n + "/accept"), Subject: subject.OfNode(n), Accepts: true, Test: true, Needs: []Need{{Step: StepID(n + "/burn"), On: Success}, {Step: "all/pair", On: Settled}}})
	}
	steps = append(steps, Step{ID: "site/hand", Subject: subject.ID{Kind: subject.Site, Name: "hand"}, Needs: []Need{{Step: "n1/accept", On: Settled, Triggers: true}, {Step: "n2/accept", On: Settled, Triggers: true}}})
	prior := after(steps, true)
	p, err := Diff(steps, prior, Options{Retest: map[string]bool{"n2": true}, Targets: map[string]bool{"n2": true}})
	if err != nil {
		t.Fatal(err)
	}
	checkNeeds(t, p)
	var got []string
	for _, s := range p.Steps {
		got = append(got, string(s.ID))
	}
	if want := "n2/drain n2/gates n2/burn all/pair n2/accept site/hand"; strings.Join(got, " ") != want {
		t.Errorf("planned %s, want %s", strings.Join(got, " "), want)
	}
	pair, _ := p.Step("all/pair")
	if only := []subject.ID{subject.OfNode("n2")}; !slices.Equal(pair.Group.Focus, only) || !slices.Equal(pair.Group.Members, only) || pair.Yields[0].Subject.Name != "all@n2" || pair.Group.Min != 1 || !slices.Contains(pair.Needs, Need{Step: "n2/drain", On: Settled}) {
		t.Errorf("%+v %+v", pair.Group, pair.Needs)
	}
	gates, _ := p.Step("n2/gates")
	if !slices.Contains(gates.Needs, Need{Step: "n2/drain", On: Success}) || !slices.Equal(gates.Why, []string{"asked for by ironrail test n2"}) {
		t.Errorf("%+v", gates)
	}
	if p, err = Diff(steps, prior, Options{}); err != nil || len(p.Steps) != 0 {
		t.Errorf("without being asked: %+v %v", p.Steps, err)
	}
}
