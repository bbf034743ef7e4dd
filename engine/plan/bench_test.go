// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"github.com/ironrail/ironrail/internal/subject"
)

// benchSite is the steps of n nodes, twelve each, with a group of all, a check of
// all, and a hand-over: what the stages plan of a cluster of that size.
func benchSite(n int, image string) []Step {
	names := []string{"bmc", "drain", "netboot", "inspect", "write", "configure", "boot", "drivers", "fabric", "accept", "a", "b"}
	steps := make([]Step, 0, n*len(names)+3)
	pair := Step{ID: "all/pair", Subject: subject.ID{Kind: subject.Group, Name: "all"}, Group: &Group{Set: "all", Min: 1, Partners: 2}}
	check := Step{ID: "site/check", Subject: subject.ID{Kind: subject.Site, Name: "check"}}
	hand := Step{ID: "site/hand", Subject: subject.ID{Kind: subject.Site, Name: "hand"}}
	var accepts []Step
	for i := range n {
		node := fmt.Sprintf("n%05d", i)
		me := subject.OfNode(node)
		id := func(s string) StepID { return StepID(node + "/" + s) }
		for k, name := range names {
			s := Step{ID: id(name), Subject: me, DepthKey: node, Inputs: []Input{{Name: "image", Value: "sha256:aaaa"}, {Name: "serial", Value: node}}}
			if k > 0 {
				s.Needs = []Need{{Step: id(names[k-1]), On: Success, Triggers: k > 1}}
			}
			switch name {
			case "bmc":
				s.Only = WhenNeeded
			case "drain":
				s.Only = WhenDisturbed
			case "netboot":
				s.Needs = []Need{{Step: id("bmc"), On: Success}}
				s.May = Effects(Power)
			case "write":
				s.May, s.Erases = Effects(Erase), "everything"
				s.Inputs = []Input{{Name: "image", Value: image}, {Name: "serial", Value: node}}
			case "accept":
				s.Accepts = true
				s.Needs = []Need{{Step: id("fabric"), On: Success, Triggers: true}, {Step: pair.ID, On: Success}}
				accepts = append(accepts, s)
				hand.Needs = append(hand.Needs, Need{Step: s.ID, On: Settled, TriggersIfNew: true}, Need{Step: id("drain"), On: Settled, Triggers: true})
				continue
			case "a":
				s.Needs = nil
			}
			steps = append(steps, s)
		}
		pair.Group.Members = append(pair.Group.Members, me)
		pair.Needs = append(pair.Needs, Need{Step: id("fabric"), On: Settled, Triggers: true})
		check.Needs = append(check.Needs, Need{Step: id("configure"), On: Settled, Triggers: true})
	}
	return append(append(append(steps, check, pair), accepts...), hand)
}

// BenchmarkDiff compares 12,500 nodes with their state: nothing changed, and the
// image of all of them did.
func BenchmarkDiff(b *testing.B) {
	const nodes = 12_500
	old := benchSite(nodes, "sha256:aaaa")
	prior := after(old, true)
	opt := Options{MaxErase: nodes, RoleOf: map[string]string{}, Rollouts: map[string]Rollout{"worker": {Given: true, Canary: 1, Batch: nodes / 4, StopAfter: 1}}}
	for n := range prior.Nodes {
		opt.RoleOf[n] = "worker"
	}
	for _, c := range []struct {
		name  string
		steps []Step
		want  int // steps of the plan, at least
	}{{"same", old, 0}, {"role", benchSite(nodes, "sha256:bbbb"), 5 * nodes}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := Diff(c.steps, prior, opt)
				if err != nil || len(p.Steps) < c.want || c.want == 0 && !p.Empty() {
					b.Fatal(len(p.Steps), err)
				}
			}
		})
	}
}
