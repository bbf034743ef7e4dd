// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// world is what survives a killed controller: nodes with power and disks.
type world struct {
	mu     sync.Mutex     // guards did, broken
	did    map[string]int // how often each effect was done, by its key
	broken map[string]bool
	blind  bool   // nothing can be observed: only the journal protects
	dir    string // where set, what was done lies in files there: it survives this process too
}

func newWorld(broken ...string) *world {
	w := &world{did: map[string]int{}, broken: map[string]bool{}}
	for _, b := range broken {
		w.broken[b] = true
	}
	return w
}

func (w *world) happened(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir != "" {
		_, err := os.Stat(filepath.Join(w.dir, url.PathEscape(key)))
		return err == nil
	}
	return w.did[key] > 0
}

// do counts an effect. In a folder, one made twice is a second name: making a
// name is all or nothing, also when the process is killed.
func (w *world) do(key string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did[key]++
	if w.dir == "" {
		return nil
	}
	path := filepath.Join(w.dir, url.PathEscape(key))
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, os.ErrExist) {
		err = os.Mkdir(path+".again", 0o700)
	}
	return err
}

func (w *world) effect(key string, kind plan.Effect) stage.Effect {
	return stage.Effect{Key: key, Kind: kind, Does: fmt.Sprintf("%s by %s", kind, key),
		Probe: func(context.Context) (stage.Probe, string, error) {
			if w.happened(key) {
				return stage.Done, "it is there", nil
			}
			return stage.NotDone, "it is not there", nil
		},
		Do: func(context.Context) error { return w.do(key) }}
}

// fake is a stage that does what its functions say.
type fake struct {
	observe func(context.Context, stage.Run, plan.Step) (stage.Observation, error)
	apply   func(context.Context, stage.Run, plan.Step) error
}

func (fake) Name() string                                   { return "fake" }
func (fake) Version() int                                   { return 1 }
func (fake) Plan(stage.View) ([]plan.Step, hcl.Diagnostics) { return nil, nil }

func (f fake) Observe(ctx context.Context, r stage.Run, s plan.Step) (stage.Observation, error) {
	if f.observe == nil {
		return stage.Observation{State: stage.Unknown}, nil
	}
	return f.observe(ctx, r, s)
}

func (f fake) Apply(ctx context.Context, r stage.Run, s plan.Step) error {
	if f.apply == nil {
		return nil
	}
	return f.apply(ctx, r, s)
}

var (
	serial    = fact.Name[string]("node.serial")
	bandwidth = fact.Name[float64]("validate.bandwidth")
)

// stages of the four-node site, on w.
func (w *world) stages() map[string]stage.Stage {
	touch := func(suffix string, kind plan.Effect) stage.Stage {
		key := func(s plan.Step) string { return s.Subject.Name + suffix }
		return fake{
			observe: func(_ context.Context, _ stage.Run, s plan.Step) (stage.Observation, error) {
				if !w.blind && w.happened(key(s)) {
					return stage.Observation{State: stage.Conforms, Evidence: "seen"}, nil
				}
				return stage.Observation{State: stage.Unknown}, nil
			},
			apply: func(ctx context.Context, r stage.Run, s plan.Step) error {
				for _, u := range s.Uses {
					if u.Hold == plan.UntilReleased {
						defer r.Release(u.Resource)
					}
				}
				return r.Effect(ctx, w.effect(key(s), kind))
			},
		}
	}
	return map[string]stage.Stage{
		"image": fake{apply: func(context.Context, stage.Run, plan.Step) error {
			if w.broken["image"] {
				return errkind.New(errkind.Corrupt, "chunk 7 has another digest").Do("Fetch the image again.")
			}
			return nil
		}},
		"netboot": touch("/attempt-1/power", plan.Power),
		"write":   touch("/erase", plan.Erase),
		"boot":    touch("/reboot", plan.Power),
		"drivers": touch("/drivers", plan.Config),
		"inspect": fake{apply: w.inspect},
		"test":    fake{apply: w.test},
		"accept":  fake{apply: w.accept},
		"hand":    fake{},
	}
}

func (w *world) inspect(ctx context.Context, r stage.Run, s plan.Step) error {
	f, err := serial.New(s.Subject, "SN-"+s.Subject.Name, "board")
	if err != nil {
		return err
	}
	if err := r.Learn(ctx, f); err != nil {
		return err
	}
	if !w.broken[s.Subject.Name+"/nic"] {
		return nil
	}
	if err := r.Blame(ctx, stage.Finding{Suspects: []stage.Suspect{{Subject: s.Subject, Part: "boot NIC"}},
		Cause: "NIC 1 is missing", Action: "Reseat it."}); err != nil {
		return err
	}
	return errkind.New(errkind.Mismatch, "hardware differs")
}

// test measures each member, and blames those with a bad rail.
func (w *world) test(ctx context.Context, r stage.Run, s plan.Step) error {
	if err := r.Effect(ctx, w.effect(string(s.ID)+"/load", plan.Load)); err != nil {
		return err
	}
	for _, m := range r.Members() {
		f, err := bandwidth.New(m, 10, "hca")
		if err != nil {
			return err
		}
		if err := r.Learn(ctx, f); err != nil {
			return err
		}
		if w.broken[m.Name+"/rail"] {
			if err := r.Blame(ctx, stage.Finding{Suspects: []stage.Suspect{{Subject: m, Part: "rail 0"}}, Cause: "rail 0 is slow", Action: "Swap the cable."}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *world) accept(_ context.Context, r stage.Run, s plan.Step) error {
	if _, ok := r.Fact(bandwidth.Of(s.Subject)); !ok {
		return errkind.New(errkind.Mismatch, "%s was not measured", s.Subject.Name)
	}
	return nil
}

// site is the plan of a site of n nodes.
func site(n int) *plan.Plan {
	p := &plan.Plan{Format: plan.Format, ID: "p1", Site: "lab", Erase: plan.Erasure{Budget: n}}
	add := func(s plan.Step) {
		s.Deadline = plan.Budget{Limit: time.Minute}
		s.Action, s.Version = plan.Create, 1
		p.Steps = append(p.Steps, s)
	}
	on := func(id string) plan.Need { return plan.Need{Step: plan.StepID(id), On: plan.Success} }
	add(plan.Step{ID: "site/image.os", Stage: "image", Subject: subject.ID{Kind: subject.Site, Name: "image.os"}})
	group := &plan.Group{Set: "all", Min: 2, OnLoss: plan.Shrink}
	test := plan.Step{ID: "all/test", Stage: "test", Subject: subject.ID{Kind: subject.Group, Name: "all"}, Group: group, May: plan.Effects(plan.Load)}
	hand := plan.Step{ID: "site/hand", Stage: "hand", Subject: subject.ID{Kind: subject.Site, Name: "hand"}, Barrier: true}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		node := subject.OfNode(name)
		group.Members = append(group.Members, node)
		step := func(s, stage string, need string, may ...plan.Effect) plan.Step {
			return plan.Step{ID: plan.StepID(name + "/" + s), Stage: stage, Subject: node, DepthKey: name,
				Needs: []plan.Need{on(need)}, May: plan.Effects(may...),
				Inputs: []plan.Input{{Name: "image.os", Value: "sha256:ab"}}}
		}
		boot := step("netboot", "netboot", "site/image.os", plan.Power)
		boot.Uses = []plan.Use{{Resource: "pdu/a", Units: 1, Hold: plan.UntilReleased}, {Resource: "bmc/" + name, Units: 1, Hold: plan.ForStep}}
		add(boot)
		add(step("inspect", "inspect", name+"/netboot"))
		write := step("write", "write", name+"/inspect", plan.Erase)
		write.Erases, write.Uses = "disk os", []plan.Use{{Resource: "streams/head", Units: 1, Hold: plan.ForStep}}
		add(write)
		add(step("boot", "boot", name+"/write", plan.Power))
		add(step("drivers", "drivers", name+"/boot", plan.Config))
		test.Needs = append(test.Needs, plan.Need{Step: plan.StepID(name + "/drivers"), On: plan.Settled})
	}
	add(test)
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		add(plan.Step{ID: plan.StepID(name + "/accept"), Stage: "accept", Subject: subject.OfNode(name), Accepts: true,
			Needs: []plan.Need{on(name + "/drivers"), {Step: "all/test", On: plan.Settled}}})
		hand.Needs = append(hand.Needs, plan.Need{Step: plan.StepID(name + "/accept"), On: plan.Settled})
	}
	add(hand)
	return p
}

var siteCapacity = map[string]int{"pdu/": 2, "bmc/": 1, "streams/head": 2}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
