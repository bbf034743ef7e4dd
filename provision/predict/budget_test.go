// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// lived is the past of one run in which n steps of a kind on hardware gpu took
// these durations, in turn.
func lived(t *testing.T, kind string, took ...time.Duration) *History {
	t.Helper()
	profiles := map[string]Profile{}
	h := newJournalReader(profiles, withChecks)
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, d := range took {
		node := fmt.Sprintf("old%d", i)
		profiles[node] = Profile{Hardware: "gpu"}
		r := state.Record{Run: "r1", Kind: state.StepStarted, Step: node + "/" + kind, Subject: subject.OfNode(node)}
		if err := h.record(r); err != nil {
			t.Fatal(err)
		}
		r.Kind = state.StepDone
		if err := h.record(r.With(state.Step{Started: began, Ended: began.Add(d)})); err != nil {
			t.Fatal(err)
		}
	}
	return h.history()
}

func repeat(n int, d time.Duration) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = d
	}
	return out
}

// TestBudgets: the table below twenty samples, the site's own past from there on;
// deadlines of what the hardware decides only, within what the table and the stage
// say.
func TestBudgets(t *testing.T) {
	t.Parallel()
	const m, s = time.Minute, time.Second
	big := Profile{Hardware: "gpu", GPUs: 8, Memory: 2 * tib}
	small := Profile{Hardware: "gpu"}
	spread := append(repeat(95, 4*m), repeat(3, 6*m)...)
	spread = append(spread, 9*m, 10*m)
	for _, c := range []struct {
		name, kind string
		profile    Profile
		limit      time.Duration
		past       []time.Duration
		want       plan.Budget
	}{
		{"no past", "install.netboot", big, 20 * m, nil, plan.Budget{Limit: 20 * m, Expected: 11 * m, Slow: 15 * m}},
		{"nineteen samples", "install.netboot", big, 20 * m, repeat(19, 5*m), plan.Budget{Limit: 20 * m, Expected: 11 * m, Slow: 15 * m}},
		{"twenty samples", "install.netboot", big, 20 * m, repeat(20, 5*m), plan.Budget{Limit: 15 * m, Expected: 5 * m, Slow: 5 * m, Samples: 20}},
		{"a slow site of the table bounds it from below", "install.netboot", small, 20 * m, repeat(20, 1*m), plan.Budget{Limit: 8 * m, Expected: 1 * m, Slow: 1 * m, Samples: 20}},
		{"the stage bounds it from above", "install.netboot", small, 20 * m, repeat(20, 15*m), plan.Budget{Limit: 20 * m, Expected: 15 * m, Slow: 15 * m, Samples: 20}},
		{"never shorter than what ended well", "install.netboot", small, 20 * m, append(repeat(200, 2*m), 14*m), plan.Budget{Limit: 14 * m, Expected: 2 * m, Slow: 2 * m, Samples: 201}},
		{"p50, p95 and p99", "install.netboot", small, 60 * m, spread, plan.Budget{Limit: 19*m + 30*s, Expected: 4 * m, Slow: 5 * m, Samples: 100}},
		{"a drain waits for jobs", "handover.drain", small, 24 * time.Hour, repeat(50, s), plan.Budget{Limit: 24 * time.Hour, Expected: s, Slow: s, Samples: 50}},
		{"a package may be new", "drivers.rdma", small, 2 * time.Hour, repeat(50, 10*s), plan.Budget{Limit: 2 * time.Hour, Expected: 10 * s, Slow: 10 * s, Samples: 50}},
		{"a burn-in says it itself", "validate.burn", small, 50 * m, repeat(3, 31*m), plan.Budget{Limit: 50 * m, Expected: 3 * s}},
		{"nobody knows it", "hook.after", small, 7 * m, nil, plan.Budget{Limit: 7 * m, Expected: 3 * s}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			step := plan.Step{ID: plan.StepID("n1/" + c.kind), Subject: subject.OfNode("n1"), Deadline: plan.Budget{Limit: c.limit, Expected: 3 * s}}
			got := Budgets(&plan.Plan{Steps: []plan.Step{step}}, Options{Table: withChecks, Profiles: map[string]Profile{"n1": c.profile}, History: lived(t, c.kind, c.past...)})
			if got[0] != c.want {
				t.Errorf("got %+v, want %+v", got[0], c.want)
			}
		})
	}
}

// TestBudgetOfAWave: a step in a wave of a rollout is of the same kind.
func TestBudgetOfAWave(t *testing.T) {
	t.Parallel()
	step := plan.Step{ID: plan.StepID("n1/install.boot").In("canary"), Subject: subject.OfNode("n1"), Deadline: plan.Budget{Limit: time.Hour}}
	got := Budgets(&plan.Plan{Steps: []plan.Step{step}}, Options{Table: withChecks, Profiles: map[string]Profile{"n1": {Hardware: "gpu"}}, History: lived(t, "install.boot", repeat(30, 3*time.Minute)...)})
	if got[0].Samples != 30 {
		t.Errorf("%+v", got[0])
	}
}

// longJournal is a reader of a journal of so many records: a step of a node, done
// in a minute, takes two.
type longJournal struct {
	state.Empty
	records uint64
	read    *int
}

func (l longJournal) Read(_ context.Context, from uint64, f func(state.Record) error) error {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for seq := from; seq <= l.records; seq++ {
		*l.read++
		node := fmt.Sprintf("old%d", (seq-1)/2)
		r := state.Record{Seq: seq, Run: "r1", Kind: state.StepStarted, Step: node + "/bmc", Subject: subject.OfNode("n1")}
		if seq%2 == 0 {
			r.Kind = state.StepDone
			r = r.With(state.Step{Started: began, Ended: began.Add(time.Minute)})
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// TestReadRecent: short journals are read whole, of long ones the end.
func TestReadRecent(t *testing.T) {
	t.Parallel()
	for _, records := range []uint64{0, 2, 100, recent, 3 * recent, 20*recent + 6} {
		read := 0
		h, err := ReadRecent(t.Context(), longJournal{records: records, read: &read}, map[string]Profile{"n1": {Hardware: "gpu"}}, withChecks)
		if err != nil {
			t.Fatal(err)
		}
		p, _ := h.past("bmc", "gpu")
		if least := int(min(records, recent)/2) - 1; p.Steps < least || read > 3*recent {
			t.Errorf("of %d records: %d steps, want %d at least; %d records were read", records, p.Steps, least, read)
		}
	}
}
