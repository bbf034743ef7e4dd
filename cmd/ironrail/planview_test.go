// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/predict"
)

// planSite is the steps of a small site as stages plan them: each node is written,
// tested with the others, and handed over.
func planSite(nodes int, image string) []plan.Step {
	var steps, accepts []plan.Step
	all := subject.ID{Kind: subject.Group, Name: "all"}
	report := fact.Key{Subject: all, Name: "validate.pair"}
	limit := plan.Budget{Limit: time.Minute, Expected: time.Second}
	pair := plan.Step{ID: "all/validate.pair", Stage: "validate", Action: plan.Read, Subject: all, Title: fmt.Sprintf("RDMA writes between %d nodes, pair by pair", nodes),
		Group: &plan.Group{Set: "all", Min: max(1, nodes*3/4), OnLoss: plan.Shrink, Partners: 2}, May: plan.Effects(plan.Load), Yields: []fact.Key{report}, Deadline: limit, Barrier: true}
	hand := plan.Step{ID: "site/handover.prod", Stage: "handover", Subject: subject.ID{Kind: subject.Site, Name: "handover.prod"}, Title: "hand the accepted nodes to slurm prod", Deadline: limit, Barrier: true}
	for i := range nodes {
		n := fmt.Sprintf("n%03d", i+1)
		me := subject.OfNode(n)
		step := func(name, stage, title string, needs ...plan.Need) plan.Step {
			return plan.Step{ID: plan.StepID(n + "/" + name), Stage: stage, Subject: me, Title: title, Needs: needs, Deadline: limit, DepthKey: n}
		}
		drain := step("handover.drain", "handover", "drain from slurm prod")
		drain.Only = plan.WhenDisturbed
		inspect := step("install.inspect", "install", "identify the node")
		inspect.Yields = []fact.Key{{Subject: me, Name: "install.disk"}}
		inspect.Inputs = []plan.Input{{Name: "image.hpc", Value: image, Decl: plan.SourceRange{File: "worker.hcl", Line: 14}}}
		write := step("install.write", "install", "write image hpc to disk os", plan.Need{Step: inspect.ID, On: plan.Success, Triggers: true})
		write.May, write.Erases, write.Reads = plan.Effects(plan.Erase, plan.Power), "EVERYTHING on disk os of "+n, inspect.Yields
		write.Inputs = inspect.Inputs
		acc := step("validate.accept", "validate", "accept", plan.Need{Step: write.ID, On: plan.Success, Triggers: true}, plan.Need{Step: pair.ID, On: plan.Success})
		acc.Accepts, acc.Reads = true, pair.Yields
		pair.Group.Members = append(pair.Group.Members, me)
		pair.Needs = append(pair.Needs, plan.Need{Step: write.ID, On: plan.Settled, Triggers: true})
		hand.Needs = append(hand.Needs, plan.Need{Step: drain.ID, On: plan.Settled, Triggers: true}, plan.Need{Step: acc.ID, On: plan.Settled, TriggersIfNew: true})
		steps, accepts = append(steps, drain, inspect, write), append(accepts, acc)
	}
	return append(append(append(steps, pair), accepts...), hand)
}

// samplePlanOf is the plan of a site of which all but the fresh nodes are in service,
// and whose image changed from what they have.
func samplePlanOf(nodes int, image string, o plan.Options, standing func(*plan.Prior)) *plan.Plan {
	old := planSite(nodes, "sha256:"+strings.Repeat("ab12", 16))
	prior := plan.Prior{Steps: map[plan.StepID]plan.LastSuccess{}, Nodes: map[string]plan.NodeState{}}
	o.RoleOf = map[string]string{}
	for _, s := range old {
		if s.Only == "" {
			prior.Steps[s.ID] = plan.LastSuccess{Inputs: s.Inputs}
		}
		if s.Subject.Kind == subject.Node {
			prior.Nodes[s.Subject.Name] = plan.NodeState{Accepted: true}
			o.RoleOf[s.Subject.Name] = "worker"
		}
	}
	if standing != nil {
		standing(&prior)
	}
	o.Site = "lab"
	p, err := plan.Diff(planSite(nodes, image), prior, o)
	if err != nil {
		panic(err)
	}
	p.ID = "p1"
	return p
}

// forget makes a node new.
func forget(p *plan.Prior, node string) {
	delete(p.Nodes, node)
	for id := range p.Steps {
		if strings.HasPrefix(string(id), node+"/") {
			delete(p.Steps, id)
		}
	}
}

// TestPlanGolden shows whole plans as the operator sees them.
func TestPlanGolden(t *testing.T) {
	t.Parallel()
	was, next := "sha256:"+strings.Repeat("ab12", 16), "sha256:"+strings.Repeat("cd34", 16)
	rollout := map[string]plan.Rollout{"worker": {Given: true, Canary: 1, Batch: 32, StopAfter: 1}}
	few := map[string]plan.Rollout{"worker": {Given: true, Canary: 1, Batch: 2, StopAfter: 1}}
	for _, c := range []struct {
		name string
		make func() *plan.Plan
	}{
		{"plan-new", func() *plan.Plan {
			return samplePlanOf(2, was, plan.Options{MaxErase: 2}, func(p *plan.Prior) { *p = plan.Prior{} })
		}},
		{"plan-lost-member", func() *plan.Plan {
			return samplePlanOf(5, was, plan.Options{MaxErase: 2}, func(p *plan.Prior) {
				forget(p, "n002")
				p.Nodes["n003"] = plan.NodeState{Accepted: true, Held: "by ann: fan swap"}
			})
		}},
		{"plan-rollout", func() *plan.Plan { return samplePlanOf(4, next, plan.Options{MaxErase: 2, Rollouts: few}, nil) }},
		{"plan-rollout-large", func() *plan.Plan { return samplePlanOf(129, next, plan.Options{MaxErase: 2, Rollouts: rollout}, nil) }},
		{"plan-gone", func() *plan.Plan { return samplePlanOf(2, was, plan.Options{Orphaned: []string{"n009"}}, nil) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			p := c.make()
			guess, err := predict.Estimate(p, predict.Options{Table: provision.Durations()})
			if err != nil {
				t.Fatal(err)
			}
			writePlan(&b, p, guess)
			path := filepath.Join("testdata", c.name+".golden")
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || b.String() != string(want) {
				t.Errorf("%s differs (%v); run with -update and look at the difference. Got:\n%s", path, err, b.String())
			}
		})
	}
}

// TestWholePlan: --full shows every node of a large plan.
func TestWholePlan(t *testing.T) {
	t.Parallel()
	p := samplePlanOf(60, "sha256:"+strings.Repeat("cd34", 16), plan.Options{}, nil)
	var folded, whole bytes.Buffer
	writePlan(&folded, p, predict.Prediction{})
	writeWholePlan(&whole, p, predict.Prediction{})
	if strings.Contains(folded.String(), "\nn030\n") || !strings.Contains(folded.String(), "n002 .. n060 (59 nodes): the same 4 steps as n001") {
		t.Errorf("folded:\n%s", folded.String())
	}
	if !strings.Contains(whole.String(), "\nn030\n") || strings.Contains(whole.String(), "the same") {
		t.Error("--full folds")
	}
	for i := range p.Steps {
		if st := &p.Steps[i]; st.Erases != "" {
			st.Erases = "EVERYTHING on disk nvme0n1 of " + st.Subject.Name + ": serial S-" + st.Subject.Name
		}
	}
	folded.Reset()
	writePlan(&folded, p, predict.Prediction{})
	if strings.Contains(folded.String(), "\nn030\n") || !strings.Contains(folded.String(), "ERASES EVERYTHING on disk nvme0n1 of n030: serial S-n030") {
		t.Errorf("which disks are erased is folded away:\n%s", folded.String())
	}
}

// TestManyOffers: after the state was lost a plan offers every node that runs.
func TestManyOffers(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{Site: "s", Unmanaged: []plan.Unmanaged{{Reason: plan.RunsUnknown, Action: "Adopt them."}}}
	for i := range 300 {
		n := fmt.Sprintf("n%d", i)
		p.Unmanaged[0].Nodes = append(p.Unmanaged[0].Nodes, n)
		p.Offers = append(p.Offers, plan.Offer{Cause: n + " is not in this state and is not idle", Command: "ironrail adopt " + n})
	}
	var short, whole bytes.Buffer
	writePlan(&short, p, predict.Prediction{})
	writeWholePlan(&whole, p, predict.Prediction{})
	if n := strings.Count(short.String(), "\n"); n > 45 || !strings.Contains(short.String(), "288 more nodes are not in this state") || !strings.Contains(short.String(), "To take all 300 as they run: ironrail adopt --all") {
		t.Errorf("%d lines:\n%s", n, short.String())
	}
	if !strings.HasPrefix(short.String(), "Site s: no steps are planned.\n300 nodes are unmanaged (running, and not in this state): n[0-299]\n  Adopt them.\n") {
		t.Errorf("the beginning is\n%.300s", short.String())
	}
	if n := strings.Count(whole.String(), "ironrail adopt n"); n != 300 {
		t.Errorf("--full offers %d", n)
	}
}
