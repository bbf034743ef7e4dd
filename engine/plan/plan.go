// SPDX-License-Identifier: Apache-2.0

// Package plan is the plan as data: what will be done, to what, in which order,
// what it may touch and why. A plan holds no closures and does no I/O; what is
// shown is what is saved, signed off and applied. The formats here are kept: a
// later ironrail adds fields and never changes the meaning of one.
package plan

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/internal/subject"
)

// Format is the version of the plan format.
const Format = 2

// StepID names a step in the site, such as n1/install.write. It is stable: the
// same work has the same id in every plan.
type StepID string

// waveMark begins, in the id of a step, the wave of a rollout that it belongs to:
// site/handover.lab@canary.
const waveMark = "@"

// Base returns the id without its wave: what the step is called in a plan without
// a rollout.
func (id StepID) Base() StepID {
	base, _ := id.splitWave()
	return base
}

// Wave returns the wave in the id; "" for none.
func (id StepID) Wave() string {
	_, wave := id.splitWave()
	return wave
}

func (id StepID) splitWave() (StepID, string) {
	base, wave, _ := strings.Cut(string(id), waveMark)
	return StepID(base), wave
}

// In returns the id of the same step in a wave.
func (id StepID) In(wave string) StepID {
	if wave == "" {
		return id.Base()
	}
	return id.Base() + StepID(waveMark+wave)
}

// NeedKind is how much of another step a step waits for.
type NeedKind string

// A step needs another's success, or only that it is settled: done, failed or
// skipped (a barrier: partial success goes on).
const (
	Success NeedKind = "success"
	Settled NeedKind = "settled"
)

// Need is an edge of the plan.
type Need struct {
	Step     StepID   `json:"step"`
	On       NeedKind `json:"on"`
	Triggers bool     `json:"renews,omitempty"` // when Step runs again, so does this one
	// TriggersIfNew: when Step runs for a subject that had no good end of it, so
	// does this one; a mere repetition of Step does not matter to it.
	TriggersIfNew bool `json:"renews_if_new,omitempty"`
}

// HoldKind is how long a use of a resource lasts.
type HoldKind string

// A resource is held for the step, or until the step releases it (inrush: until
// the supply has settled).
const (
	ForStep       HoldKind = "step"
	UntilReleased HoldKind = "released"
)

// Use is a claim on a limited resource, held by the step that loads the thing.
type Use struct {
	Resource string   `json:"resource"` // pdu/r01/a, streams/head, bmc/n1
	Units    int      `json:"units"`
	Hold     HoldKind `json:"hold"`
	// Settles is how long after the deed that loads it a use that is held until
	// released is let go at the latest; zero: the step says when.
	Settles time.Duration `json:"settles,omitempty"`
}

// LossPolicy is what a group does when members are lost before it starts.
type LossPolicy string

// A group shrinks to its survivors down to Min, or is not judged at all.
const (
	Shrink    LossPolicy = "shrink"
	NotJudged LossPolicy = "not-judged"
)

// Group is the set of subjects that one step works on together. The members
// that survive are frozen and journaled when the step starts.
type Group struct {
	Set     string       `json:"set"` // name of the set, such as all or unit-1
	Members []subject.ID `json:"members"`
	Min     int          `json:"min"` // fewer survivors than this, partners among them: not judged
	OnLoss  LossPolicy   `json:"on_loss"`
	// Focus are the members that the step is about; the others are there to test
	// them with. Empty: all are. Set by Diff when only a few nodes are new.
	Focus []subject.ID `json:"focus,omitempty"`
	// Provisional is how many survivors are enough, all the same, when there are fewer than
	// Min: what is found then holds until the others come. Zero: it is not judged.
	Provisional int `json:"provisional,omitempty"`
	// Whole: the step has no focus this time, since what it said of its members was
	// provisional.
	Whole bool `json:"whole,omitempty"`
	// Partners is how many members beside it a member in focus is worked on with,
	// the nearest in the order of Members. Zero: the step never has a focus.
	Partners int `json:"partners,omitempty"`
}

// GateStage is the stage of gates. No stage.Stage has this name: the engine runs
// them itself.
const GateStage = "rollout"

// Gate lets a rollout go on while few of its nodes have failed. Its step needs the
// steps of Ends settled, and fails when more than Most of Nodes are not as the
// ends would have left them; what needs the gate is then skipped, without blame.
type Gate struct {
	Of    string   `json:"of"`    // the role that is rolled out to
	Wave  string   `json:"wave"`  // that ended last: canary, batch-2
	Nodes []string `json:"nodes"` // of all waves so far
	Ends  []StepID `json:"ends"`  // the steps whose good end means that a node is well
	Most  int      `json:"most"`  // failures that do not stop the rollout
}

// Value is a parameter of a step: a literal, a fact that may only be known
// after an earlier step, or a reference to a secret. Exactly one is set.
type Value struct {
	Literal json.RawMessage `json:"literal,omitempty"`
	Fact    *fact.Key       `json:"fact,omitempty"`
	Secret  secret.Ref      `json:"secret,omitempty"`
}

// Literal makes a literal value; v must marshal to JSON (a defect otherwise).
func Literal(v any) Value {
	b, err := json.Marshal(v)
	if err != nil {
		panic("plan: literal parameter: " + err.Error())
	}
	return Value{Literal: b}
}

// SourceRange is the place in the site's files that asked for something.
type SourceRange struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// Budget bounds a step in time. Limit is the hang deadline and ends the step;
// Expected is the estimate shown to the operator.
type Budget struct {
	Limit    time.Duration `json:"limit"`
	Expected time.Duration `json:"expected,omitempty"` // P50 of such steps
	Slow     time.Duration `json:"slow,omitempty"`     // P95 of such steps; zero: not known
	Samples  int           `json:"samples,omitempty"`  // steps of the past that this rests on; zero: a table
}

// Input is one declared input of a step: what its fingerprint is made of, and
// what the plan quotes when it changed.
type Input struct {
	Name  string      `json:"name"`  // image.os, mtu
	Value string      `json:"value"` // as shown: sha256:ab12…, 9000; never a secret
	Decl  SourceRange `json:"decl,omitzero"`
}

// Condition limits when a desired step is planned at all.
type Condition string

// WhenReinstalled steps are planned only for a node that was accepted or adopted
// and that this plan erases. WhenDisturbed steps are planned only for a node that
// was accepted or adopted and that another step of this plan erases, powers,
// configures or updates: the drain. WhenNeeded steps are planned, done or
// not, exactly when a planned step needs them: the check of an image before it
// is installed anywhere. Needs on an unplanned step are dropped.
const (
	WhenReinstalled Condition = "reinstalled"
	WhenDisturbed   Condition = "disturbed"
	WhenNeeded      Condition = "needed"
)

// Step is one coarse piece of work on one subject or group.
type Step struct {
	ID       StepID           `json:"id"`
	Stage    string           `json:"stage"`
	Action   Action           `json:"action"`
	Subject  subject.ID       `json:"subject"`
	Title    string           `json:"title"` // imperative, short: "write image os to disk os"
	Group    *Group           `json:"group,omitempty"`
	Needs    []Need           `json:"needs,omitempty"`
	Uses     []Use            `json:"uses,omitempty"`
	Reads    []fact.Key       `json:"reads,omitempty"`
	Yields   []fact.Key       `json:"yields,omitempty"`
	Params   map[string]Value `json:"params,omitempty"`
	May      EffectSet        `json:"may,omitempty"`    // ceiling, enforced at run time
	Erases   string           `json:"erases,omitempty"` // in words, what is lost; set exactly when May has Erase
	Why      []string         `json:"why,omitempty"`    // set by Diff
	Decl     SourceRange      `json:"decl,omitzero"`
	Deadline Budget           `json:"deadline"`
	Inputs   []Input          `json:"inputs,omitempty"`
	Version  int              `json:"version"`           // fingerprint version of the stage
	Barrier  bool             `json:"barrier,omitempty"` // runs even when members of its needs failed; Settled needs only
	Only     Condition        `json:"only,omitempty"`
	DepthKey string           `json:"depth_key,omitempty"` // steps of one key are finished before a later key starts, as a tie-break
	Accepts  bool             `json:"accepts,omitempty"`   // a good end of this step means that its node is accepted
	// Examines: the step reads or loads its node and leaves it as it was, or compares what
	// others have read. A node that a finding has taken out is examined all the same, as far
	// as its needs allow, so that one run finds all that is bad with it. For such a node the
	// step has no good end: it is done again once the node is repaired.
	Examines bool  `json:"examines,omitempty"`
	Gate     *Gate `json:"gate,omitempty"` // set exactly when Stage is GateStage

	// NonDisruptive: its node works on meanwhile, and is not drained for it. A rollout
	// takes it to nodes in service in waves all the same. Read by Diff alone.
	NonDisruptive bool `json:"-"`
	// Reinstalls: the step takes the system of its node away, though it erases nothing: a node
	// in service is not reinstalled by an edit alone. Read by Diff alone.
	Reinstalls bool `json:"-"`
	// Inherited: a node in service that has no good end of this step may be so already, as
	// it was set up by a version that had no such step, or by hand. It is looked at, and
	// the step is planned where it differs, and not where it is so or not known. Read by
	// planning alone.
	Inherited bool `json:"-"`
	// Test: the step tests its node as it is; it is done again for a node that is tested again.
	Test bool `json:"-"`
	// Renewed: what the step read of a node is read again once the node is in quarantine, by
	// whatever step: it may have been repaired.
	Renewed bool `json:"-"`
}

// Plan is everything one run will do.
type Plan struct {
	Format   int                   `json:"format"`
	ID       string                `json:"id"`
	Lineage  string                `json:"lineage"` // of the state that it was made from
	Created  time.Time             `json:"created"`
	Site     string                `json:"site"`
	Steps    []Step                `json:"steps"`
	Versions map[subject.ID]uint64 `json:"versions,omitempty"` // of every subject object that was read; 0: none existed
	Erase    Erasure               `json:"erase"`
	Refusals []Refusal             `json:"refusals,omitempty"`
	Offers   []Offer               `json:"offers,omitempty"`
	// Unmanaged are the nodes that the state does not know and that the plan leaves
	// alone: a plan without steps beside them does not mean that all is well.
	Unmanaged []Unmanaged    `json:"unmanaged,omitempty"`
	Warnings  []string       `json:"warnings,omitempty"`
	Rollouts  []Waves        `json:"rollouts,omitempty"`
	Orphaned  []OrphanedNode `json:"gone,omitempty"`
	// Operations are what steps would write where that could be told, by what was read
	// before or for this plan. Apply reads again and does what is left to do then.
	Operations map[StepID][]Operation `json:"operations,omitempty"`
	Sum        string                 `json:"sum,omitempty"` // see Digest
	// Request is what the operator asked for when it was made. A saved plan is made anew
	// with it before anything of it is applied.
	Request *Request `json:"asked,omitempty"`
}

// Request are the options of the command that made a plan.
type Request struct {
	Replace      []string      `json:"replace,omitempty"`
	Retest       []string      `json:"retest,omitempty"`
	Targets      []string      `json:"targets,omitempty"`
	Decommission []string      `json:"decommission,omitempty"`
	Refresh      bool          `json:"refresh,omitempty"`
	Trust        time.Duration `json:"trust,omitempty"`
	Offline      bool          `json:"offline,omitempty"` // nobody was contacted
}

// Waves is the order in which a change reaches the nodes of a role that are in
// service.
type Waves struct {
	Role      string `json:"role"`
	Waves     []Wave `json:"waves"`
	StopAfter int    `json:"stop_after"` // failures that stop it
}

// Wave is the nodes that are changed together.
type Wave struct {
	Name  string   `json:"name"` // canary, batch-2
	Nodes []string `json:"nodes"`
}

// OrphanedNode is a node that the state knows and the site does not have any more.
// Automation is paused for it unless it is asked for.
type OrphanedNode struct {
	Node    string `json:"node"`
	Command string `json:"command"` // ironrail plan --decommission n7
}

// Erasure counts what a plan destroys against the site's budget.
type Erasure struct {
	Nodes  []string `json:"nodes,omitempty"`
	Budget int      `json:"budget"` // max_erase of the site
}

// Refusal says why apply will not run this plan as it stands.
type Refusal struct {
	Subject subject.ID `json:"subject"`
	Step    StepID     `json:"step,omitempty"`
	Cause   string     `json:"cause"`
	Action  string     `json:"action"`
}

// Offer is something the operator may want instead of doing nothing, such as
// adopting a node that runs but is not in the state.
type Offer struct {
	Subject subject.ID `json:"subject"`
	Cause   string     `json:"cause"`
	Command string     `json:"command"` // ironrail adopt n1
}

// Empty reports whether there is no step to do; see Conforms for whether all is well.
func (p *Plan) Empty() bool { return len(p.Steps) == 0 }

// Step returns the step with the given id.
func (p *Plan) Step(id StepID) (Step, bool) {
	for _, s := range p.Steps {
		if s.ID == id {
			return s, true
		}
	}
	return Step{}, false
}
