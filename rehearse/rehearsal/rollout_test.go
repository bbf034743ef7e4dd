// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
)

// small returns the scale example with nodes of one rail and the given edits: what
// stands there, and what stands there instead.
func small(t testing.TB, nodes int, edits ...string) *inventory.Inventory {
	t.Helper()
	b, err := os.ReadFile("../../examples/scale/site.hcl")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	edits = append([]string{
		`, "0000:40:00.0", "0000:4f:00.0", "0000:5e:00.0", "0000:9a:00.0", "0000:c0:00.0", "0000:ce:00.0", "0000:dc:00.0"]`, `]`,
		"rails      = 8", "rails      = 1",
		"max_erase = 1", "max_erase = 1000",
		"  handover   = handover.prod\n", "  handover   = handover.prod\n  rollout {\n    canary     = 1\n    batch      = \"25%\"\n    stop_after = 1\n  }\n",
	}, edits...)
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("the site has no %q", edits[i])
		}
		text = strings.ReplaceAll(text, edits[i], edits[i+1])
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return load(t, dir, map[string]string{"nodes": fmt.Sprint(nodes)})
}

// otherImage is the edit that asks for another image of the nodes.
func otherImage(tool string) []string {
	return []string{`packages = ["openssh-server", "chrony"]`, fmt.Sprintf(`packages = ["openssh-server", "chrony", %q]`, tool)}
}

// standing is where the nodes of a site stand.
type standing struct {
	accepted, lost, touched, drained []string
	findings                         string
}

// change edits the site, plans and applies, and tells what came of it.
func change(ctx context.Context, l *rehearsaltest.Later, inv *inventory.Inventory, o provision.PlanOptions) (p *plan.Plan, res apply.Result, s standing, err error) {
	if err = l.Edit(ctx, inv); err != nil {
		return
	}
	if p, err = l.Plan(ctx, o); err != nil || len(p.Refusals) > 0 {
		return
	}
	if res, err = l.Apply(ctx, p); err != nil {
		return
	}
	s, err = stands(ctx, l, res)
	return
}

func stands(ctx context.Context, l *rehearsaltest.Later, res apply.Result) (s standing, err error) {
	nodes, err := state.ReadNodes(ctx, l.Store)
	if err != nil {
		return s, err
	}
	effects, err := state.ReadEffects(ctx, l.Store)
	if err != nil {
		return s, err
	}
	facts, err := state.ReadFacts(ctx, l.Store)
	if err != nil {
		return s, err
	}
	touched := map[string]bool{}
	for _, e := range effects {
		if name, _, _ := strings.Cut(string(e.Step), "/"); e.Run == res.Run {
			touched[name] = true
		}
	}
	for name, n := range nodes {
		if n.Accepted && n.Quarantine == nil {
			s.accepted = append(s.accepted, name)
		} else {
			s.lost = append(s.lost, name)
		}
		if touched[name] {
			s.touched = append(s.touched, name)
		}
	}
	for k, f := range facts {
		if k.Name != string(handover.DrainedFact) {
			continue
		}
		if d, err := handover.DrainedFact.Get(f); err == nil && d.Out {
			s.drained = append(s.drained, k.Subject.Name)
		}
	}
	for _, f := range res.Findings {
		s.findings += f.Cause + "\n"
	}
	for _, list := range [][]string{s.accepted, s.lost, s.touched, s.drained} {
		slices.Sort(list)
	}
	return s, nil
}

// TestBadImageCostsOneNode: 24 nodes are accepted, and an image that does not boot is
// rolled out. The canary is lost, and nothing is done to any other node. `make nightly`
// has 128 nodes.
func TestBadImageCostsOneNode(t *testing.T) {
	t.Parallel()
	nodes := 24
	if *wholeSites {
		nodes = 128
	}
	first, next := small(t, nodes), small(t, nodes, otherImage("htop")...)
	_, err := rehearsal.Run(context.Background(), first, rehearsal.Options{Seed: 5, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		l.SetUnbootable("os", true)
		p, res, s, err := change(ctx, l, next, provision.PlanOptions{})
		if err != nil {
			return err
		}
		if len(p.Rollouts) != 1 || len(p.Rollouts[0].Waves) != 5 || len(p.Erase.Nodes) != nodes {
			t.Errorf("rollouts %v, %d erased", p.Rollouts, len(p.Erase.Nodes))
		}
		const canary = "r0001-n1"
		if only := []string{canary}; !slices.Equal(s.lost, only) || !slices.Equal(s.touched, only) || !slices.Equal(s.drained, only) || len(s.accepted) != nodes-1 {
			t.Errorf("lost %v, touched %v, drained %v; %d accepted", s.lost, s.touched, s.drained, len(s.accepted))
		}
		if res.Outcome != state.RunSomeFailed || !strings.Contains(s.findings, "the rollout to worker stopped after canary: 1 of 1 nodes are unhealthy, at most 0 are allowed ("+canary+")") {
			t.Errorf("outcome %s, findings %s", res.Outcome, s.findings)
		}
		waiting := 0
		for _, n := range res.Nodes {
			if n.Outcome == apply.NodeWaiting && n.Accepted {
				waiting++
			}
		}
		if waiting != nodes-1 {
			t.Errorf("%d nodes wait in service, want %d", waiting, nodes-1)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRolloutHeals: the next apply of a bad image costs no further node. A good one
// takes the lost node first, then the others in batches; each wave is tested and
// handed back before the next, and then there is nothing more to do.
func TestRolloutHeals(t *testing.T) {
	t.Parallel()
	const nodes = 8
	first, bad, good := small(t, nodes), small(t, nodes, otherImage("htop")...), small(t, nodes, otherImage("iotop")...)
	_, err := rehearsal.Run(context.Background(), first, rehearsal.Options{Seed: 5, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		l.SetUnbootable("os", true)
		for try := range 2 {
			p, _, s, err := change(ctx, l, bad, provision.PlanOptions{})
			if err != nil {
				return err
			}
			if only := []string{"r0001-n1"}; !slices.Equal(s.lost, only) || !slices.Equal(p.Rollouts[0].Waves[0].Nodes, only) || !slices.Equal(s.drained, only) {
				t.Errorf("bad apply %d: lost %v, drained %v, rollouts %v", try+1, s.lost, s.drained, p.Rollouts)
			}
		}
		l.SetUnbootable("os", false)
		p, res, s, err := change(ctx, l, good, provision.PlanOptions{})
		if err != nil {
			return err
		}
		if res.Outcome != state.RunDone || len(s.lost) > 0 || len(s.accepted) != nodes || len(s.drained) > 0 || len(s.touched) != nodes {
			t.Errorf("outcome %v, lost %v, drained %v, touched %v: %s", res.Outcome, s.lost, s.drained, s.touched, s.findings)
		}
		if got := len(p.Rollouts[0].Waves); got != 4 {
			t.Errorf("%d waves: %v", got, p.Rollouts)
		}
		if p, err = l.Plan(ctx, provision.PlanOptions{}); err != nil || !p.Empty() {
			t.Errorf("there is more to do: %v %v", p.Steps, err)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}
