// SPDX-License-Identifier: Apache-2.0

// Package stage is the contract between the engine and the stages: what a
// stage plans, observes and applies, and all that it may record while it runs.
// The engine schedules stages without learning what they do; stages reach the
// world and never touch the store but through a Run.
package stage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// Stage is one part of the bring-up. Plan is pure: no I/O and no clock; it
// returns every step that the site wants, done or not, and the engine drops
// what is already so. Observe is read-only and must not change the world.
// Observe and Apply may run concurrently for different steps.
type Stage interface {
	Name() string
	Version() int // of the stage's fingerprints; a new version never means a re-run by itself
	Plan(View) ([]plan.Step, hcl.Diagnostics)
	Observe(context.Context, Run, plan.Step) (Observation, error)
	Apply(context.Context, Run, plan.Step) error
}

// View is what planning may see beside the stage's own inventory: what earlier
// runs learned.
type View interface {
	Fact(fact.Key) (fact.Fact, bool)
}

// Serving is a View that knows which nodes are in service.
type Serving interface{ InService(node string) bool }

// InService reports whether a node is in service by what a View knows; false where it
// does not know.
func InService(v View, node string) bool {
	s, ok := v.(Serving)
	return ok && s.InService(node)
}

// Conformity answers "is it already so?".
type Conformity string

// The answers. Unknown never means Differs.
const (
	Unknown  Conformity = "unknown"
	Conforms Conformity = "conforms"
	Differs  Conformity = "differs"
)

// Observation is an answer with what was seen.
type Observation struct {
	State    Conformity
	Evidence string
	// Operations are all that differs, of a stage whose configuration is kept in
	// tables; Evidence then says the first of it.
	Operations []plan.Operation
}

// Run is all that a stage may record while it works on one step. Its methods
// are safe for concurrent use. An error from Learn, Effect or Blame means that
// the record could not be made durable: the step must end with it.
type Run interface {
	// Members returns the frozen members of a group step, else the one subject.
	Members() []subject.ID
	// Examined returns those members that are out because of a bad part: a step that
	// examines (plan.Step.Examines) works on them too, and they make no quorum.
	Examined() []subject.ID
	Fact(fact.Key) (fact.Fact, bool)
	Learn(context.Context, ...fact.Fact) error
	// Effect journals the intent, does the effect, and journals the outcome. An
	// effect of the same key that already has a good outcome is not done again;
	// one in doubt after a crash is probed first. An effect that the step's
	// plan does not allow is refused.
	Effect(context.Context, Effect) error
	// Blame records a finding. Nodes among its suspects are quarantined.
	Blame(context.Context, Finding) error
	// Release gives back a resource that the step holds until released.
	Release(resource string)
	Emit(event.Event) // Step, Stage, Node and Time are filled in when empty
	// Attach stores evidence (raw output) content-addressed and returns its
	// reference for a Finding or a report.
	Attach(name string, content []byte) (ref string, err error)
	Clock() clock.Clock
}

// Probe is what a look at the world says about an effect in doubt.
type Probe string

// The answers of a probe.
const (
	Done    Probe = "done"
	NotDone Probe = "not-done"
	Doubt   Probe = "doubt" // cannot be told
)

// Effect is one journaled side effect.
type Effect struct {
	Key  string      // the side-effect key; names this very effect forever, such as n1/attempt-7f3a/power
	Kind plan.Effect // must be in the step's May
	Does string      // a sentence for the journal and the terminal
	// Probe tells whether the effect already happened. It is called only when
	// an earlier process journaled the intent and no outcome.
	Probe func(context.Context) (Probe, string, error)
	Do    func(context.Context) error
	// Repeatable: doing it twice is harmless, so that Doubt means do it.
	Repeatable bool
}

// Finding is a statement about parts: which are suspected, of what, on what
// evidence, and what a person should do.
type Finding struct {
	Suspects []Suspect `json:"suspects"` // several when the evidence is ambiguous
	// Affected are nodes that are out of service by it and not suspected, such as
	// those behind a PDU without power. They are quarantined like suspects.
	Affected []subject.ID `json:"affected,omitempty"`
	// About are nodes that it tells of and neither suspects nor takes out of service.
	About    []subject.ID `json:"about,omitempty"`
	Cause    string       `json:"cause"`
	Evidence []string     `json:"evidence,omitempty"` // sentences or references from Attach
	Action   string       `json:"action"`
	Step     string       `json:"step,omitempty"` // filled in by the Run
}

// OfSameParts reports whether two findings suspect the very same parts: what several tests
// see of one part is one fault. A node as a whole is no part.
func (f Finding) OfSameParts(o Finding) bool {
	return len(f.Suspects) > 0 && slices.Equal(f.Suspects, o.Suspects) &&
		!slices.ContainsFunc(f.Suspects, func(s Suspect) bool { return s.Subject.Kind == subject.Node && s.Part == "" })
}

// Suspect is one part of one subject.
type Suspect struct {
	Subject subject.ID `json:"subject"`
	Part    string     `json:"part,omitempty"` // BMC, disk os, rail 0, boot NIC
}

// String is the subject with its part: "n1 rail 0".
func (s Suspect) String() string { return strings.TrimSpace(s.Subject.Name + " " + s.Part) }

// Parts lists the suspects in words, in their order.
func (f Finding) Parts() []string {
	var parts []string
	for _, s := range f.Suspects {
		parts = append(parts, s.String())
	}
	return parts
}

// Checker is a Stage whose Plan refuses things. Check finds the same from the files
// alone, without making steps. It is pure.
type Checker interface{ Check() hcl.Diagnostics }

// ViewChecker is a Checker whose Plan refuses for new nodes what it tolerates on such as
// are in service. CheckView finds the same as a Plan with the View, which may be nil.
type ViewChecker interface{ CheckView(View) hcl.Diagnostics }

// Source turns a range of the site's files into a plan's.
func Source(r hcl.Range) plan.SourceRange {
	return plan.SourceRange{File: r.Filename, Line: r.Start.Line, Column: r.Start.Column}
}

// DiagnoseUnsupportedKind is the diagnostic of a typed block whose kind nothing can apply.
// have are the kinds that can be. use continues with the sentence that names the
// kind, and way is a sentence on how to do without; both may be empty.
func DiagnoseUnsupportedKind[K any](block, name, kind string, have map[string]K, use, way string, decl hcl.Range) hcl.Diagnostics {
	var names []string
	for k := range have {
		names = append(names, fmt.Sprintf("%q", k))
	}
	slices.Sort(names)
	detail := fmt.Sprintf("%s %q is of kind %q%s. The kinds that are supported are: %s.", block, name, kind, use, strings.Join(names, ", "))
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: block + " kind is not supported", Detail: strings.TrimSpace(detail + " " + way), Subject: decl.Ptr()}}
}
