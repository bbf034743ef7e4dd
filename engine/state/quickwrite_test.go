// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// written are values with and without each field, and with text that is escaped.
func written() (all []any) {
	at := time.Date(2026, 3, 1, 8, 0, 0, 120000000, time.UTC)
	away := at.In(time.FixedZone("", -5*3600-1800))
	for _, text := range []string{"", "plain text, [of] {all}: sorts/#@~", `a "quote"`, `back\slash`, "<b>&", "tab\t", "é…", "\u2028", "\x7f", "bad\xff", "\x00"} {
		all = append(all,
			Step{ID: plan.StepID(text), State: StepRunning, Plan: text, Run: "r", Started: at},
			Step{ID: "n1/x", State: StepIsDone, Version: -3, Inputs: []plan.Input{{Name: text, Value: "v"}, {Name: "n", Value: text, Decl: plan.SourceRange{File: text, Line: 3}}},
				Started: at, Ended: away, Observed: true, Evidence: text, Error: text},
			Node{Name: text, Accepted: true, AcceptedAt: away, AcceptedRun: text, Adopted: true, AdoptedAt: at, Doubt: text, Run: text})
	}
	return append(all, Step{}, Node{}, Step{Inputs: []plan.Input{}}, Step{Kind: errkind.Timeout}, Step{Finding: &stage.Finding{Cause: "c"}},
		Step{Blamed: []stage.Finding{{Cause: "c"}}}, Node{Hold: &Hold{By: "me"}}, Node{Quarantine: &Quarantine{Run: "r"}},
		Step{Started: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)}, Node{AdoptedAt: at.In(time.FixedZone("", 24*3600))}, map[string]int{"a": 1})
}

// TestQuickJSON: what is written quickly is what encoding/json writes; what it
// refuses is refused.
func TestQuickJSON(t *testing.T) {
	t.Parallel()
	for _, v := range written() {
		want, failed := json.Marshal(v)
		if got, ok := quickJSON(v); ok && string(got) != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		p, err := PutOf(Key{"a", "b"}, v)
		if string(p.Value) != string(want) || (err == nil) != (failed == nil) || p.encoded != (err == nil) {
			t.Errorf("stored %s, %v; want %s, %v", p.Value, err, want, failed)
		}
	}
}

// TestQuickJSONIsUsed: a step and a node of a usual run do not go the slow way.
func TestQuickJSONIsUsed(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		Step{ID: "n1/install.write", State: StepIsDone, Inputs: []plan.Input{{Name: "image.os", Value: "sha256:ab"}}, Started: time.Now().UTC(), Ended: time.Now().UTC()},
		Node{Name: "n1", Accepted: true, AcceptedAt: time.Now().UTC(), Run: "r"},
	} {
		if _, ok := quickJSON(v); !ok {
			t.Errorf("written slowly: %+v", v)
		}
	}
}

// TestRecordLine: a record is stored as encoding/json writes it, whatever its data
// is; what is not JSON is refused.
func TestRecordLine(t *testing.T) {
	t.Parallel()
	var batch Batch
	data := []Record{{}, Record{}.With("<b>"), Record{}.With(map[string]any{"a": []int{1}, "b": "é"}), {Data: json.RawMessage(`{"spaced": "<b>" }`)}, {Data: json.RawMessage(`{`)}, {Data: json.RawMessage{}}}
	for _, v := range written() {
		if p, err := PutOf(Key{"a", "b"}, v); err == nil {
			batch.Puts = append(batch.Puts, p)
			data = append(data, Record{Data: p.Value})
		}
	}
	for _, text := range []string{"", "n1/install.write", "<&>", "é"} {
		for _, r := range data {
			r.Time, r.Run, r.Kind, r.Step, r.Subject = time.Date(2026, 3, 1, 8, 0, 0, 1, time.UTC), text, RecordKind(text), text, subject.ID{Name: text}
			want, failed := json.Marshal(r)
			got, err := batch.line(r)
			if string(got) != string(want) || (err == nil) != (failed == nil) {
				t.Errorf("got  %s, %v\nwant %s, %v", got, err, want, failed)
			}
		}
	}
}
