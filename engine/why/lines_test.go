// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
)

// TestHoldComesBeforeWhatItStops: a hold is recorded after the step that it stops,
// and told before it: it is the cause.
func TestHoldComesBeforeWhatItStops(t *testing.T) {
	t.Parallel()
	n1 := subject.OfNode("n1")
	began := now.Add(-2 * time.Minute)
	cut := state.Step{ID: "n1/install.netboot", State: state.StepIsCut, Started: began, Ended: now}
	for name, recorded := range map[string]time.Time{"in the same moment": now, "a little later": now.Add(3 * time.Millisecond)} {
		journal := []state.Record{
			{Kind: state.StepStarted, Step: "n1/install.netboot", Subject: n1, Time: began},
			state.Record{Kind: state.StepInterrupted, Step: "n1/install.netboot", Subject: n1, Time: now}.With(cut),
			state.Record{Kind: state.Held, Subject: n1, Time: recorded}.With(state.Hold{By: "ann", Reason: "the riser is out", At: now}),
		}
		var s Explanation
		s.Node.Name, s.Journal = "n1", journal
		var got []string
		for _, l := range collectLines(s, false) {
			got = append(got, l.From+" "+l.Text)
		}
		want := "journal install.netboot began; operator held by ann: the riser is out; journal install.netboot was stopped after 2m"
		if all := strings.Join(got, "; "); all != want {
			t.Errorf("%s: %s", name, all)
		}
	}
}

// TestDirectLines: what an operator did outside of a plan is one line, and one that has no outcome
// says so.
func TestDirectLines(t *testing.T) {
	t.Parallel()
	d := state.Direct{Node: "n1", Verb: "power cycle", By: "ann", Reason: "hangs", At: now, State: state.EffectIntended}
	record := func(kind state.RecordKind, s state.EffectState, detail string) state.Record {
		d.State, d.Detail = s, detail
		return state.Record{Kind: kind, Subject: subject.OfNode("n1"), Time: now}.With(d)
	}
	intent := record(state.DirectIntent, state.EffectIntended, "")
	of := func(verb string, at time.Time, kind state.RecordKind, s state.EffectState, detail string) state.Record {
		x := d
		x.Verb, x.At, x.State, x.Detail, x.Reason = verb, at, s, detail, ""
		return state.Record{Kind: kind, Subject: subject.OfNode("n1"), Time: now}.With(x)
	}
	later := now.Add(time.Minute)
	for want, journal := range map[string][]state.Record{
		"operator power cycle by ann (hangs): power reads on":                                                      {intent, record(state.DirectOutcome, state.EffectIsDone, "power reads on")},
		"operator power cycle by ann (hangs) was not done: refused":                                                {intent, record(state.DirectOutcome, state.EffectNotDone, "refused")},
		"operator power cycle by ann (hangs): nobody knows whether it happened: no answer":                         {intent, record(state.DirectOutcome, state.EffectInDoubt, "no answer")},
		"operator power cycle by ann (hangs): begun, and no outcome was recorded":                                  {intent},
		"operator power cycle by ann (hangs): begun, and no outcome was recorded; operator power cycle by ann: on": {intent, of("power cycle", later, state.DirectIntent, state.EffectIntended, ""), of("power cycle", later, state.DirectOutcome, state.EffectIsDone, "on")},
		"operator power cycle by ann (hangs): begun, and no outcome was recorded; operator console by ann: open to type at for 1h": {of("console", later, state.DirectIntent, state.EffectIntended, ""), intent,
			of("console", later, state.DirectOutcome, state.EffectIsDone, "open to type at for 1h")},
	} {
		var s Explanation
		s.Node.Name, s.Journal = "n1", journal
		var got []string
		for _, l := range collectLines(s, false) {
			got = append(got, l.From+" "+l.Text)
		}
		if all := strings.Join(got, "; "); all != want {
			t.Errorf("%s\nwant %s", all, want)
		}
	}
}
