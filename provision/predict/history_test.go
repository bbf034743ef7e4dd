// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// labSeconds is how long the steps of two runs of examples/lab took: a bring-up
// of both nodes, and one of another day of the same lab.
var labSeconds = map[string][2]float64{
	"n1/bmc": {0.02, 0.01}, "n2/bmc": {0.02, 0.02}, "site/image.os": {1.63, 1.61}, "site/drivers.rdma.os": {0.02, 0.03},
	"n1/install.netboot": {11.90, 18.32}, "n2/install.netboot": {16.77, 21.28},
	"n1/install.inspect": {2.08, 2.18}, "n2/install.inspect": {2.04, 1.92},
	"n1/install.write": {47.77, 49.68}, "n2/install.write": {51.93, 49.49},
	"n1/install.configure": {0.50, 0.42}, "n2/install.configure": {0.43, 0.46},
	"n1/install.boot": {27.14, 24.05}, "n2/install.boot": {24.49, 24.06},
	"n1/drivers.rdma": {57.94, 54.34}, "n2/drivers.rdma": {59.00, 55.28},
	"n1/fabric.rail": {2.02, 1.28}, "n2/fabric.rail": {2.83, 1.31},
	"all/validate.pair": {14.92, 5.60}, "all/validate.all_reduce": {10.14, 5.55},
	"n1/validate.accept": {0, 0}, "n2/validate.accept": {0, 0}, "site/handover.s": {0.11, 0.04},
}

var labProfiles = map[string]Profile{
	"n1": {Hardware: "lab-bios", Boot: "bios", Memory: gib, Disk: "virtio"},
	"n2": {Hardware: "lab-uefi", Boot: "uefi", Memory: gib, Disk: "virtio"},
}

// labRun runs the lab's plan by the engine with the durations of one of the runs, and
// returns the plan and the run's name.
func labRun(t *testing.T, store state.Store, run int) (*plan.Plan, string) {
	t.Helper()
	p := labPlan()
	p.Format, p.ID, p.Lineage = plan.Format, fmt.Sprint("p", run), store.Info().Lineage
	for i := range p.Steps {
		p.Steps[i].Action = plan.Read
	}
	r := engine(t, store, p, Options{Capacity: limits}, func(s plan.Step) time.Duration { return toDuration(labSeconds[string(s.ID)][run]) })
	return p, r.Run
}

// PredictLab predicts the second run of the lab from the first one, and runs it.
func PredictLab(t *testing.T, store state.Store) (got Prediction, p *plan.Plan, run string) {
	t.Helper()
	labRun(t, store, 0)
	h, err := ReadHistory(t.Context(), store, labProfiles, withChecks)
	if err != nil {
		t.Fatal(err)
	}
	p, run = labRun(t, store, 1)
	got, err = Estimate(p, Options{Table: withChecks, Profiles: labProfiles, Capacity: limits, History: h,
		Images: map[string]Image{"os": {Wire: 187597570, Disk: 702545920}}})
	if err != nil {
		t.Fatal(err)
	}
	return got, p, run
}

func TestHistoryReplacesTheTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := state.NewMemory()
		labRun(t, store, 0)
		h, err := ReadHistory(t.Context(), store, labProfiles, withChecks)
		if err != nil {
			t.Fatal(err)
		}
		if past, ok := h.past("validate.all_reduce", "lab-bios+lab-uefi"); !ok || past.Median != 5070*time.Millisecond {
			t.Errorf("a level of the all-reduce: %+v, want half of what two nodes took", past)
		}
		other := Options{History: h, Profiles: map[string]Profile{"n1": labProfiles["n1"], "n2": {Hardware: "new", Disk: "nvme"}}}
		got, err := Estimate(labPlan(), other)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"lab-bios": "history of 1 run", "new": "table"}
		for _, k := range got.Kinds {
			if w := want[k.Hardware]; k.Kind == "install.boot" && k.Source != w {
				t.Errorf("boot of %q is from %q, want %q", k.Hardware, k.Source, w)
			}
		}
		if s := got.Stages[0]; s.Name != "install" || s.Source != "history of 1 run and table" {
			t.Errorf("stage %s is from %q", s.Name, s.Source)
		}
	})
}

// journal is a state that is nothing but records.
type journal struct {
	state.Reader
	records []state.Record
}

func (j *journal) add(run, step string, kind state.RecordKind, data any) {
	node, _, _ := strings.Cut(step, "/")
	on := subject.OfNode(node)
	if strings.HasPrefix(step, "site/") {
		on = subject.ID{Kind: subject.Site, Name: "x"}
	}
	j.records = append(j.records, state.Record{Run: run, Step: step, Kind: kind, Subject: on}.With(data))
}

// did adds a step that started and ended.
func (j *journal) did(run, step string, seconds float64, end state.RecordKind) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	j.add(run, step, state.StepStarted, nil)
	j.add(run, step, end, state.Step{Started: at, Ended: at.Add(toDuration(seconds))})
}

func (j *journal) Read(f func(state.Record) error) error {
	for _, r := range j.records {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

func TestWhatCountsAsHistory(t *testing.T) {
	t.Parallel()
	var j journal
	j.did("r1", "n1/boot", 100, state.StepDone)
	j.did("r2", "n1/boot", 40, state.StepFailed)
	j.did("r2", "n1/boot", 200, state.StepDone)
	j.add("r2", "n1/half", state.StepStarted, nil) // the process died
	j.did("r3", "n1/half", 1, state.StepDone)      // and another went on
	j.did("r4", "n1/half", 9, state.StepDone)
	j.did("r4", "n2/boot", 7, state.StepDone)
	j.add("r4", "n1/seen", state.StepStarted, nil)
	j.add("r4", "n1/seen", state.StepDone, state.Step{Observed: true, Started: time.Unix(1, 0), Ended: time.Unix(3, 0)})
	j.add("r4", "site/seen", state.StepStarted, nil)
	j.add("r4", "site/seen", state.StepDone, state.Step{Observed: true, Started: time.Unix(1, 0), Ended: time.Unix(3, 0)})
	j.did("r4", "n1/clock", -5, state.StepDone)
	h := newJournalReader(labProfiles, withChecks)
	if err := j.Read(h.record); err != nil {
		t.Fatal(err)
	}
	got := h.history()
	for _, c := range []struct {
		kind, hardware string
		median         time.Duration
		steps          int
	}{
		{"boot", "lab-bios", 200 * time.Second, 2}, // the newer run weighs more
		{"half", "lab-bios", 9 * time.Second, 1},
		{"site.seen", "", 2 * time.Second, 1},
		{"seen", "lab-bios", 0, 0},
		{"clock", "lab-bios", 0, 0},
	} {
		if p, _ := got.past(c.kind, c.hardware); p.Median != c.median || p.Steps != c.steps {
			t.Errorf("%s: %+v, want %s of %d", c.kind, p, c.median, c.steps)
		}
	}
	var none *History
	if _, ok := none.past("boot", ""); ok || none.Len() != 0 || got.Len() != 4 {
		t.Errorf("%d classes", got.Len())
	}
}

func TestPast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		samples []sample
		want    Past
	}{
		{"one", []sample{{100, 1}}, Past{90 * time.Second, 100 * time.Second, 110 * time.Second, 1, 1}},
		{"two of one run", []sample{{100, 1}, {200, 1}}, Past{100 * time.Second, 150 * time.Second, 200 * time.Second, 2, 1}},
		{"the newest run counts double", []sample{{10, 1}, {20, 2}}, Past{10 * time.Second, 20 * time.Second, 22 * time.Second, 2, 2}},
		{"three old ones outweigh a new one", []sample{{10, 1}, {10, 1}, {10, 1}, {90, 2}}, Past{9 * time.Second, 10 * time.Second, 90 * time.Second, 4, 2}},
	} {
		newest := 0
		for _, s := range c.samples {
			newest = max(newest, s.run)
		}
		if got := newDistribution(c.samples, newest).past(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// FuzzHistory gives the journal's reader records that no engine wrote.
func FuzzHistory(f *testing.F) {
	f.Add("step-done", "n1/boot", []byte(`{"started":"2026-01-02T03:04:05Z","ended":"9999-01-02T03:04:05Z"}`))
	f.Add("group-frozen", "all/validate.pair", []byte(`{"members":["node/n1","node/n2"]}`))
	f.Fuzz(func(t *testing.T, kind, step string, data []byte) {
		h := newJournalReader(labProfiles, withChecks)
		for _, k := range []state.RecordKind{state.StepStarted, state.RecordKind(kind), state.StepDone} {
			r := state.Record{Run: "r", Kind: k, Step: step, Subject: subject.ID{Kind: subject.Group, Name: "all"}, Data: json.RawMessage(data)}
			if err := h.record(r); err != nil {
				t.Fatal(err)
			}
		}
		for k, p := range h.history().classes {
			if p.Low < 0 || p.Median < p.Low || p.High < p.Median {
				t.Errorf("%v: %+v", k, p)
			}
		}
	})
}
