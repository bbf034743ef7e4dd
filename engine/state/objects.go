// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// The kinds of object beside those of subjects (node, switch, ...), with the
// type of their value.
const (
	stepKind   = "step"   // Step, by step id
	factKind   = "fact"   // fact.Fact, by fact key
	effectKind = "effect" // Effect, by effect key
	frozenKind = "frozen" // Frozen, by plan id and step id
	runKind    = "run"    // Run: only "last"
	planKind   = "plan"   // plan.Plan, by plan id: the plan of the last run
)

// IsBulk reports whether a state has objects of a kind for each step, fact or effect: nearly all that
// it holds.
func IsBulk(kind string) bool {
	return kind == stepKind || kind == factKind || kind == effectKind || kind == frozenKind
}

// StepState is how the last work on a step stands.
type StepState string

// The states of a step.
const (
	StepRunning    StepState = "running" // started and not ended: by a process that lives, or died
	StepIsDone     StepState = "done"
	StepIsFailed   StepState = "failed"
	StepIsCut      StepState = "interrupted" // stopped by the operator; to be done again
	StepIsExamined StepState = "examined"    // ended for a node that is out (plan.Step.Examines); to be done again once it is repaired
)

// Step is the last that happened to a step.
type Step struct {
	ID       plan.StepID     `json:"id"`
	State    StepState       `json:"state"`
	Version  int             `json:"version"` // of the stage's fingerprint
	Inputs   []plan.Input    `json:"inputs,omitempty"`
	Plan     string          `json:"plan"`
	Run      string          `json:"run"`
	Started  time.Time       `json:"started"`
	Ended    time.Time       `json:"ended,omitzero"`
	Observed bool            `json:"observed,omitempty"` // found to conform; nothing was done
	Evidence string          `json:"evidence,omitempty"` // what was seen when it was found to conform
	Kind     errkind.Kind    `json:"kind,omitempty"`     // of the failure
	Error    string          `json:"error,omitempty"`
	Finding  *stage.Finding  `json:"finding,omitempty"` // root cause of the failure
	Blamed   []stage.Finding `json:"blamed,omitempty"`  // all findings that the step made
}

// Hold stops all automation on a node.
type Hold struct {
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// Quarantine takes a node out, with its one root cause, and what was found of it while it
// was out, in that order.
type Quarantine struct {
	Finding stage.Finding   `json:"finding"`
	More    []stage.Finding `json:"more,omitempty"`
	Kind    errkind.Kind    `json:"kind"`
	At      time.Time       `json:"at"`
	Run     string          `json:"run"`
}

// Node is where a node stands.
type Node struct {
	Name        string      `json:"name"`
	Accepted    bool        `json:"accepted,omitempty"`
	AcceptedAt  time.Time   `json:"accepted_at,omitzero"`
	AcceptedRun string      `json:"accepted_run,omitempty"`
	Adopted     bool        `json:"adopted,omitempty"`
	AdoptedAt   time.Time   `json:"adopted_at,omitzero"`
	Hold        *Hold       `json:"hold,omitempty"`
	Quarantine  *Quarantine `json:"quarantine,omitempty"`
	Doubt       string      `json:"doubt,omitempty"` // cause of a quarantine that a run lifted to test the node again; "" once it is accepted
	Run         string      `json:"run,omitempty"`   // the last run that touched it
}

// EffectState is what is known of an effect.
type EffectState string

// The states of an effect.
const (
	EffectIntended EffectState = "intent" // about to be done, or in doubt after a crash
	EffectIsDone   EffectState = "done"
	EffectNotDone  EffectState = "failed" // did not happen
	EffectInDoubt  EffectState = "doubt"  // failed in a way that leaves open whether it happened
)

// Effect is the last known state of one effect on the world.
type Effect struct {
	Key    string      `json:"key"`
	State  EffectState `json:"state"`
	Kind   plan.Effect `json:"kind"`
	Does   string      `json:"does"`
	Begun  bool        `json:"begun,omitempty"`  // of one in doubt: it had begun when it failed
	Detail string      `json:"detail,omitempty"` // what a probe saw, or the error
	Step   plan.StepID `json:"step"`
	Run    string      `json:"run"`
	At     time.Time   `json:"at"`
}

// Frozen is the membership of a group as it was when its step started.
type Frozen struct {
	Plan    string       `json:"plan"`
	Step    plan.StepID  `json:"step"`
	Members []subject.ID `json:"members"`
	Lost    []Loss       `json:"lost,omitempty"`
}

// Loss says why a member is not in a frozen group.
type Loss struct {
	Member    subject.ID `json:"member"`
	Why       string     `json:"why"`
	Straggler bool       `json:"late,omitempty"` // nothing is wrong with it; it had not come
}

// Cause is why a step was not started.
type Cause struct {
	Kind CauseKind   `json:"kind"`
	Step plan.StepID `json:"step,omitempty"` // the step that failed first
	Text string      `json:"text"`
}

// CauseKind is the closed list of reasons for which a step is skipped.
type CauseKind string

// The causes.
const (
	ByFailure   CauseKind = "failure"    // a step that it needs failed
	ByFinding   CauseKind = "quarantine" // its node is quarantined
	ByHold      CauseKind = "hold"       // its node is on hold
	NotJudged   CauseKind = "not-judged" // its group is too small
	ByInterrupt CauseKind = "interrupt"  // the run was stopped
	ByRollout   CauseKind = "rollout"    // a gate stopped the rollout before it
	ByStraggler CauseKind = "late"       // a test went on without its node
	ByJobs      CauseKind = "jobs"       // its node is in use, or may be, and was not touched
	BySite      CauseKind = "site"       // something of the site is in its way, of which there is a finding
)

// Retry is why a step is tried again.
type Retry struct {
	Try   int           `json:"try"` // that failed, from 1
	Kind  errkind.Kind  `json:"kind"`
	Error string        `json:"error"`
	Wait  time.Duration `json:"wait"` // until the next one, in nanoseconds
}

// Run is one run of apply.
type Run struct {
	ID      string    `json:"id"`
	Plan    string    `json:"plan"`
	Resumes string    `json:"resumes,omitempty"` // the run that it continues with
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	Outcome string    `json:"outcome,omitempty"` // "" while it runs, or when it died
	// Restored: the state was put back from a copy since. What came after the copy is
	// not known, so that nobody may go on with the run.
	Restored bool `json:"restored,omitempty"`
	// Clearing: not all quarantines that the run lifts when it begins are lifted yet.
	Clearing bool `json:"clearing,omitempty"`
	// Approvals say who approved its plan: first when it was begun, then each time that
	// it was continued. Empty: an ironrail that did not record it yet.
	Approvals []Approval `json:"approvals,omitempty"`
}

// Approval is the word by which a person, or a flag that a person gave, let a plan be
// applied.
type Approval struct {
	By    string    `json:"by"`   // user
	Host  string    `json:"host"` // on which it was given
	At    time.Time `json:"at"`
	How   Approved  `json:"how"`
	Erase int       `json:"erase"` // nodes that the plan erases
	// MaxErase is the erase budget of the site's files when the plan was approved. nil:
	// an ironrail that did not record it yet.
	MaxErase *int   `json:"max_erase,omitempty"`
	Sum      string `json:"sum,omitempty"` // plan.Digest of what was approved
}

// Approved is how an approval was given.
type Approved string

// The ways to approve.
const (
	ByTyping  Approved = "typed"
	ByFlag    Approved = "--auto-approve"
	ByNumber  Approved = "--auto-approve --erase"
	ByResumed Approved = "resumed"            // a run whose plan was approved when it was begun
	ByRecord  Approved = "as approved before" // the same steps with the same inputs; see provision's PlanRestart
)

// String is the approval as a sentence says it: "ann on head1 (typed), erases 2 nodes
// (max_erase is 4)". User and host are as they were recorded, not escaped.
func (a Approval) String() string {
	text := fmt.Sprintf("%s on %s (%s), erases ", a.By, a.Host, a.How)
	switch a.Erase {
	case 0:
		return text + "no node"
	case 1:
		text += "1 node"
	default:
		text += fmt.Sprintf("%d nodes", a.Erase)
	}
	if a.MaxErase != nil {
		text += fmt.Sprintf(" (max_erase is %d)", *a.MaxErase)
	}
	return text
}

// StepKey, FactKey, EffectKey, FrozenKey and PlanKey name the objects.
func StepKey(id plan.StepID) Key { return Key{stepKind, string(id)} }

// FactKey returns the key of a fact's object.
func FactKey(k fact.Key) Key { return Key{factKind, k.String()} }

// EffectKey returns the key of an effect's object.
func EffectKey(key string) Key { return Key{effectKind, key} }

// FrozenKey returns the key of a frozen group's object.
func FrozenKey(planID string, id plan.StepID) Key { return Key{frozenKind, planID + "/" + string(id)} }

// NodeKey returns the key of a node's object.
func NodeKey(name string) Key { return SubjectKey(subject.OfNode(name)) }

// PlanKey returns the key of the stored plan.
func PlanKey(planID string) Key { return Key{planKind, planID} }

// LastRun is the key of the run that was started last.
var LastRun = Key{runKind, "last"}

// PutOf makes the Put that stores v at k whatever is there now. Its Value is not to
// be changed.
func PutOf(k Key, v any) (Put, error) {
	raw, err := encodeValue(k, v)
	return Put{Key: k, Want: Any, Value: raw, encoded: err == nil}, err
}

// Get reads the object at k into a T. The version is Absent when there is none.
func Get[T any](ctx context.Context, r Reader, k Key) (v T, version uint64, err error) {
	o, ok, err := r.Object(ctx, k)
	if err != nil || !ok {
		return v, Absent, err
	}
	raw, err := WholeValue(ctx, r, o)
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		return v, Absent, fmt.Errorf("state: object %s: %w", k, err)
	}
	return v, o.Version, nil
}

// Each decodes every object of a kind and gives it to f, by their names. All are asked for at once.
func Each[T any](ctx context.Context, r Reader, kind string, f func(Key, T)) error {
	os, err := r.Objects(ctx, kind)
	if err != nil {
		return err
	}
	for _, o := range os {
		var v T
		raw, err := WholeValue(ctx, r, o)
		if err == nil {
			err = json.Unmarshal(raw, &v)
		}
		if err != nil {
			return fmt.Errorf("state: object %s: %w", o.Key, err)
		}
		f(o.Key, v)
	}
	return nil
}
