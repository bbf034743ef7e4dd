// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// wanted is what planning needs of a step.
type wanted struct {
	ID      plan.StepID
	Version int
	Inputs  []plan.Input
	Ended   time.Time
}

func wantedOf(s Step) wanted { return wanted{s.ID, s.Version, s.Inputs, s.Ended} }

var quickSteps = []Step{
	{ID: "n1/install.write", State: StepIsDone, Version: 3, Plan: "p", Run: "r", Ended: time.Date(2026, 3, 1, 8, 0, 0, 123456789, time.UTC),
		Inputs: []plan.Input{{Name: "image.os", Value: "sha256:ab12…", Decl: plan.SourceRange{File: "site.hcl", Line: 3, Column: 5}}, {Name: "disk", Value: `>= "900GB" \ <é>`}}},
	{ID: "n1/bmc", State: StepIsDone, Evidence: `a "quoted", {nested} [text] \`, Observed: true, Ended: time.Date(2026, 3, 1, 8, 0, 0, 0, time.FixedZone("", 3600))},
	{ID: "n<1>/bmc", State: StepIsDone, Version: 1},
	{ID: "all/validate.pair", State: StepIsDone, Blamed: []stage.Finding{{Cause: "a cable"}}, Inputs: []plan.Input{{Name: "a", Value: "b"}}},
	{ID: "n2/bmc", State: StepIsFailed, Kind: errkind.Timeout, Error: "no answer", Finding: &stage.Finding{Cause: "no answer"}},
	{ID: "n3/bmc", State: StepRunning, Started: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)},
}

// TestQuickSteps: what is decoded quickly is what encoding/json decodes, and what
// did not end well is decoded whole.
func TestQuickSteps(t *testing.T) {
	t.Parallel()
	decode := newStepDecoder()
	for range 2 { // the second time from what is shared
		for _, want := range quickSteps {
			b, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			var got Step
			if err := decode(raw{name: string(want.ID), value: b}, &got); err != nil {
				t.Error(err)
			}
			if want.State == StepIsDone && len(want.Blamed) == 0 {
				if g, w := fmt.Sprint(wantedOf(got)), fmt.Sprint(wantedOf(want)); g != w {
					t.Errorf("got  %s\nwant %s", g, w)
				}
				continue
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		}
	}
}

// TestQuickIsUsed: a step as the store writes it does not go the slow way.
func TestQuickIsUsed(t *testing.T) {
	t.Parallel()
	for _, s := range quickSteps[:2] {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var got Step
		if !newQuickDecoder().step(raw{name: string(s.ID), value: b}, &got) {
			t.Errorf("decoded slowly: %s", b)
		}
	}
}

// FuzzQuickStep: whatever encoding/json reads, and is read quickly, is the same;
// nothing panics.
func FuzzQuickStep(f *testing.F) {
	for _, s := range quickSteps {
		b, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(s.ID), b)
		f.Add(string(s.ID), []byte(strings.Replace(string(b), `"state"`, `"State"`, 1)))
		f.Add(string(s.ID), []byte(strings.Replace(string(b), `,`, ` ,`, 1)))
		f.Add(string(s.ID), b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		var quickly, slowly Step
		if !newQuickDecoder().step(raw{name: name, value: b}, &quickly) || json.Unmarshal(b, &slowly) != nil {
			return
		}
		if slowly.ID == "" {
			slowly.ID = plan.StepID(name) // not written: its key says it
		}
		if g, w := fmt.Sprint(wantedOf(quickly)), fmt.Sprint(wantedOf(slowly)); g != w || slowly.State != StepIsDone || len(slowly.Blamed) > 0 {
			t.Errorf("%s\nquickly %s\nslowly  %s", b, g, w)
		}
	})
}

// decodePlan decodes a plan that is one value.
func decodePlan(value []byte) (*plan.Plan, error) {
	p := &plan.Plan{}
	return p, cutPlan(value, planParts{
		head: func(raw []byte) error { return json.Unmarshal(raw, p) },
		steps: func(list []byte) (err error) {
			p.Steps, err = decodeStepList(list)
			return err
		},
	})
}

// TestPlansAreDecodedWhole: in parts a plan is what it is as one, and its steps are
// found without decoding it.
func TestPlansAreDecodedWhole(t *testing.T) {
	t.Parallel()
	for _, steps := range []int{0, 1, 1500} {
		want := plan.Plan{ID: "p", Lineage: `a "steps":[{ in a text`}
		for i := range steps {
			want.Steps = append(want.Steps, plan.Step{ID: plan.StepID(fmt.Sprintf(`n%d/b<"]>mc`, i)), Why: []string{"not, done [yet] \\"}, Subject: subject.OfNode("n1"), Inputs: quickSteps[i%2].Inputs})
		}
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		want = plan.Plan{} // what is decoded into is overwritten in place, and quickSteps is every test's
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		got, err := decodePlan(b)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%d steps: %v, %d steps", steps, err, len(got.Steps))
		}
		from, to := stepsIn(b)
		if steps == 0 {
			continue
		}
		ids := stepIDs(b[from:to])
		if len(ids) != steps || ids[steps-1] != want.Steps[steps-1].ID {
			t.Errorf("%d ids: %q", len(ids), ids)
		}
		var spaced []byte
		if spaced, err = json.MarshalIndent(want, "", " "); err != nil {
			t.Fatal(err)
		}
		if got, err = decodePlan(spaced); err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%d steps with spaces: %v", steps, err)
		}
	}
}

// quickPlanned are steps with every field that a step of a plan has.
var quickPlanned = []plan.Step{
	{ID: "n1/install.write", Stage: "install", Action: plan.Replace, Subject: subject.OfNode("n1"), Title: `write image "os"`, Version: 3, DepthKey: "r01/n1",
		Needs:  []plan.Need{{Step: "n1/install.netboot", On: plan.Success, Triggers: true}, {Step: "site/image.os", On: plan.Settled, TriggersIfNew: true}},
		Uses:   []plan.Use{{Resource: "streams/head", Units: 1, Hold: plan.ForStep}, {Resource: "pdu/r01/a", Units: 1200, Hold: plan.UntilReleased, Settles: time.Second}},
		Reads:  []fact.Key{{Subject: subject.OfNode("n1"), Name: "node.serial"}},
		Yields: []fact.Key{{Subject: subject.OfNode("n1"), Name: "node.root"}, {Subject: subject.OfNode("n1"), Name: "ssh.host_key"}},
		Params: map[string]plan.Value{"disk": plan.Literal(map[string]any{"a": []int{1, 2}}), "key": {Secret: "file:x"}},
		May:    plan.Effects(plan.Erase, plan.Load), Erases: "all of disk os <é>", Why: []string{"not done yet", "n1 was not accepted"},
		Decl: plan.SourceRange{File: "site.hcl", Line: 3, Column: 5}, Deadline: plan.Budget{Limit: time.Hour, Slow: time.Minute, Samples: 21},
		Inputs: quickSteps[0].Inputs, Barrier: true, Only: plan.WhenReinstalled, Accepts: true},
	{ID: "n1/bmc", Stage: "bmc", Action: plan.Read, Subject: subject.OfNode("n1")},
	{ID: "all/validate.pair@canary", Stage: "validate", Action: plan.Create, Subject: subject.ID{Kind: subject.Site, Name: "all"},
		Group: &plan.Group{Set: "all", Members: []subject.ID{subject.OfNode("n1"), subject.OfNode("n2")}, Min: 2, OnLoss: plan.Shrink}},
	{ID: "site/rollout.worker@canary", Stage: plan.GateStage, Action: plan.Read, Subject: subject.ID{Kind: subject.Site, Name: "x"},
		Gate: &plan.Gate{Of: "worker", Wave: "canary", Nodes: []string{"n1"}, Ends: []plan.StepID{"n1/validate.accept"}, Most: 1}},
}

// TestQuickPlanned: steps of a plan as the store writes them do not go the slow way,
// and are what encoding/json decodes.
func TestQuickPlanned(t *testing.T) {
	t.Parallel()
	q := newQuickDecoder()
	for range 2 { // the second time from what is kept
		for _, s := range quickPlanned {
			b, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var got, want plan.Step
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
			if !q.planned(b, &got) {
				t.Errorf("decoded slowly: %s", b)
			} else if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		}
	}
}

// TestQuickKnowsAllFields: a field that a step of a plan gets is given to the quick
// decoder as well, in its place.
func TestQuickKnowsAllFields(t *testing.T) {
	t.Parallel()
	var names []string
	for f := range reflect.TypeFor[plan.Step]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "-" { // not stored
			names = append(names, name)
		}
	}
	if !slices.Equal(names, stepFields) {
		t.Errorf("got  %q\nwant %q", stepFields, names)
	}
}

// FuzzQuickPlanned: whatever encoding/json reads, and is read quickly, is the same.
func FuzzQuickPlanned(f *testing.F) {
	for _, s := range quickPlanned {
		b, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
		for _, change := range [][2]string{{`"id"`, `"ID"`}, {`,`, ` ,`}, {`"subject":`, `"subject":null,"subject":`}, {`[`, `[null,`}, {`true`, `null`}, {`1`, `1.0`}} {
			f.Add([]byte(strings.Replace(string(b), change[0], change[1], 1)))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var quickly, again, slowly plan.Step
		q := newQuickDecoder()
		if !q.planned(b, &quickly) || json.Unmarshal(b, &slowly) != nil {
			return
		}
		if !reflect.DeepEqual(quickly, slowly) {
			t.Errorf("%s\nquickly %+v\nslowly  %+v", b, quickly, slowly)
		}
		if !q.planned(b, &again) || !reflect.DeepEqual(again, slowly) {
			t.Errorf("%s\nagain  %+v\nslowly %+v", b, again, slowly)
		}
	})
}
