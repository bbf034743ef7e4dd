// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/hook"
)

// two is a site of two nodes, with the steps of three stages.
func two(hooks ...*inventory.Hook) (*inventory.Inventory, []plan.Step) {
	inv := &inventory.Inventory{Hooks: hooks}
	var steps []plan.Step
	var pair []plan.Need
	group := &plan.Group{Set: "all"}
	on := func(id string, kind plan.NeedKind) plan.Need { return plan.Need{Step: plan.StepID(id), On: kind} }
	for _, n := range []string{"n1", "n2"} {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: n})
		add := func(stage, action string, needs ...plan.Need) {
			steps = append(steps, plan.Step{ID: plan.StepID(n + "/" + stage + action), Stage: stage, Subject: subject.OfNode(n), Needs: needs})
		}
		add("install", ".write", on("site/image", plan.Success))
		add("install", ".boot", on(n+"/install.write", plan.Success))
		add("fabric", ".rail", on(n+"/install.boot", plan.Success))
		add("validate", ".accept", on(n+"/fabric.rail", plan.Success), on("all/validate.pair", plan.Success))
		group.Members = append(group.Members, subject.OfNode(n))
		pair = append(pair, on(n+"/fabric.rail", plan.Settled))
	}
	return inv, append(steps,
		plan.Step{ID: "site/image", Stage: "install", Subject: subject.ID{Kind: subject.Site, Name: "image"}},
		plan.Step{ID: "all/validate.pair", Stage: "validate", Subject: subject.ID{Kind: subject.Group, Name: "all"}, Group: group, Needs: pair, Barrier: true},
		plan.Step{ID: "site/handover", Stage: "handover", Subject: subject.ID{Kind: subject.Site, Name: "handover"}, Barrier: true,
			Needs: []plan.Need{on("n1/validate.accept", plan.Settled), on("n2/validate.accept", plan.Settled)}})
}

func at(when, stage string) *inventory.Hook {
	return &inventory.Hook{When: when, Stage: stage, Command: []string{"/bin/true"}, Timeout: time.Minute}
}

// edges are the needs of steps as text: "a <- b s, c S!": success, settled, triggers.
func edges(steps []plan.Step) map[string]string {
	out := map[string]string{}
	for _, s := range steps {
		var words []string
		for _, n := range s.Needs {
			w := string(n.Step) + " " + string(n.On)
			if n.Triggers {
				w += "!"
			}
			words = append(words, w)
		}
		slices.Sort(words)
		out[string(s.ID)] = strings.Join(words, ", ")
	}
	return out
}

func TestPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		hooks []*inventory.Hook
		want  map[string]string
	}{
		{"before install", []*inventory.Hook{at("before", "install")}, map[string]string{
			"n1/install.before": "site/image success",
			"n1/install.write":  "n1/install.before success, site/image success",
			"n1/install.boot":   "n1/install.before success, n1/install.write success",
			"n1/fabric.rail":    "n1/install.boot success",
		}},
		{"two after install", []*inventory.Hook{at("after", "install"), at("after", "install")}, map[string]string{
			"n1/install.after":   "n1/install.boot success!",
			"n1/install.after-2": "n1/install.after success, n1/install.boot success!",
			"n1/fabric.rail":     "n1/install.after-2 success, n1/install.boot success",
			"n1/install.boot":    "n1/install.write success",
		}},
		{"before and after a group", []*inventory.Hook{at("before", "validate"), at("after", "validate")}, map[string]string{
			"n2/validate.before": "n2/fabric.rail success",
			"all/validate.pair":  "n1/fabric.rail settled, n1/validate.before settled, n2/fabric.rail settled, n2/validate.before settled",
			"n2/validate.accept": "all/validate.pair success, n2/fabric.rail success, n2/validate.before success",
			"n2/validate.after":  "n2/validate.accept success!",
			"site/handover":      "n1/validate.accept settled, n1/validate.after settled, n2/validate.accept settled, n2/validate.after settled",
		}},
		{"between two stages", []*inventory.Hook{at("after", "install"), at("before", "fabric")}, map[string]string{
			"n1/fabric.before": "n1/install.after success, n1/install.boot success",
			"n1/fabric.rail":   "n1/fabric.before success, n1/install.after success, n1/install.boot success",
		}},
		{"between two stages, in the other order", []*inventory.Hook{at("before", "fabric"), at("after", "install")}, map[string]string{
			"n1/fabric.before": "n1/install.after success, n1/install.boot success",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv, steps := two(c.hooks...)
			got := edges(hook.Place(inv, steps))
			for id, want := range c.want {
				if got[id] != want {
					t.Errorf("%s needs\n  %s\nwant\n  %s", id, got[id], want)
				}
			}
			if len(got) != len(edges(steps))+2*len(c.hooks) {
				t.Errorf("%d steps", len(got))
			}
		})
	}
}

// TestPlannedWithItsStage: a hook is planned when its stage is, and not again.
func TestPlannedWithItsStage(t *testing.T) {
	t.Parallel()
	inv, steps := two(at("before", "fabric"), at("after", "fabric"))
	desired := hook.Place(inv, steps)
	prior := plan.Prior{Steps: map[plan.StepID]plan.LastSuccess{}, Nodes: map[string]plan.NodeState{"n1": {Accepted: true}, "n2": {Accepted: true}}}
	for _, s := range desired {
		prior.Steps[s.ID] = plan.LastSuccess{Version: s.Version, Inputs: s.Inputs}
	}
	planned := func(change func()) string {
		change()
		p, err := plan.Diff(desired, prior, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, s := range p.Steps {
			ids = append(ids, string(s.ID))
		}
		slices.Sort(ids)
		return fmt.Sprint(ids)
	}
	if got := planned(func() {}); got != "[]" {
		t.Errorf("planned %s, want nothing", got)
	}
	if got := planned(func() { delete(prior.Steps, "n1/fabric.rail") }); got != "[n1/fabric.after n1/fabric.before n1/fabric.rail]" {
		t.Errorf("planned %s", got)
	}
	prior.Steps["n1/fabric.rail"] = plan.LastSuccess{}
	if got := planned(func() { delete(prior.Steps, "n2/fabric.after") }); got != "[n2/fabric.after]" {
		t.Errorf("planned %s, want the hook that was added later", got)
	}
}
