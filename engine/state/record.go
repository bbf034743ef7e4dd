// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/internal/subject"
)

// RecordKind is what a record says. Readers pass over kinds they do not know.
type RecordKind string

// The kinds of record, with the type of their Data.
const (
	RunStarted      RecordKind = "run-started"      // Run
	RunEnded        RecordKind = "run-ended"        // Run
	StepStarted     RecordKind = "step-started"     // none
	StepDone        RecordKind = "step-done"        // Step
	StepFailed      RecordKind = "step-failed"      // Step
	StepInterrupted RecordKind = "step-interrupted" // Step
	StepExamined    RecordKind = "step-examined"    // Step
	StepSkipped     RecordKind = "step-skipped"     // Cause
	StepRetried     RecordKind = "step-retried"     // Retry
	EffectIntent    RecordKind = "effect-intent"    // Effect
	EffectOutcome   RecordKind = "effect-outcome"   // Effect
	FactLearned     RecordKind = "fact"             // fact.Fact
	FindingMade     RecordKind = "finding"          // stage.Finding
	GroupFrozen     RecordKind = "group-frozen"     // Frozen
	Held            RecordKind = "hold"             // Hold
	Released        RecordKind = "release"          // Hold; By is who released it
	Cleared         RecordKind = "quarantine-cleared"
	DirectIntent    RecordKind = "direct-intent"  // Direct
	DirectOutcome   RecordKind = "direct-outcome" // Direct
	AttemptOpened   RecordKind = "attempt-opened" // a boot attempt, in its owner's form
	AttemptClosed   RecordKind = "attempt-closed"
	Adopted         RecordKind = "adopted"  // none
	Accepted        RecordKind = "accepted" // none
	Note            RecordKind = "note"     // any
)

// Record is one line of the journal.
type Record struct {
	Seq     uint64          `json:"seq"` // from 1, without gaps; set by the store
	Time    time.Time       `json:"time"`
	Run     string          `json:"run,omitempty"`
	Kind    RecordKind      `json:"kind"`
	Step    string          `json:"step,omitempty"`
	Subject subject.ID      `json:"subject,omitzero"`
	Fence   uint64          `json:"fence,omitempty"`  // of the append that it is the first record of; set by the store, since format 3
	Append  string          `json:"append,omitempty"` // its id; see Batch.ID
	Data    json.RawMessage `json:"data,omitempty"`
}

// With returns r with data as its Data. Data that cannot be marshalled is a
// defect and is said in the record instead.
func (r Record) With(data any) Record {
	b, err := json.Marshal(data)
	if err != nil {
		b, _ = json.Marshal(fmt.Sprintf("data of the record lost: %v", err))
	}
	r.Data = b
	return r
}
