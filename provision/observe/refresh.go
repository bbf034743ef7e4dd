// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/looks"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/status"
	"github.com/ironrail/ironrail/validate"
)

// ObserveSteps looks at what was done and is not trusted to be so still, and at what
// steps of switches would meet. What cannot be told is in the plan's warnings, and no
// reason to do anything.
func (ob Observer) ObserveSteps(ctx context.Context, r state.Reader, prior plan.Prior, steps []plan.Step, opt plan.Options, o Options) (map[plan.StepID]plan.Observation, []string, error) {
	due, err := ob.due(ctx, r, prior, steps, opt, o)
	if err != nil || len(due) == 0 {
		return nil, nil, err
	}
	shown, err := ob.Look(ctx, r, due, o)
	if err != nil {
		return nil, nil, err
	}
	seen, unknown := map[plan.StepID]plan.Observation{}, []looks.Look{}
	for _, l := range shown {
		switch l.State {
		case stage.Differs, stage.Conforms:
			seen[l.Step] = plan.Observation{Differs: l.State == stage.Differs, Evidence: l.Evidence, Operations: l.Operations}
		default:
			unknown = append(unknown, l)
		}
	}
	if o.Looked != nil {
		o.Looked(shown)
	}
	ob.reportObservations(prior, due, shown, seen)
	return seen, ob.warnUnknown(prior, due, unknown), nil
}

// What a plan says of what could not be looked at: nothing is done about what was done,
// and what is to be done all the same is done unseen.
const (
	leftAlone = "%s could not be looked at, and nothing is planned for that: %s"
	unseen    = "%s could not be read, and what would change there is not known: %s"
)

// warnUnknown says what a look could not tell, and of whom: once for each reason.
func (ob Observer) warnUnknown(prior plan.Prior, due []plan.Step, shown []looks.Look) []string {
	wanted := map[plan.StepID]bool{}
	for i := range due {
		wanted[due[i].ID] = awaited(prior, &due[i])
	}
	var done, open []looks.Look
	for _, l := range shown {
		if wanted[l.Step] {
			open = append(open, l)
		} else {
			done = append(done, l)
		}
	}
	return append(ob.reasonsOf(leftAlone, "%d more reasons why something could not be looked at; nothing is planned for that", done),
		ob.reasonsOf(unseen, "%d more reasons why a switch could not be read", open)...)
}

// reasonsOf are the reasons of looks that showed nothing, each with whom it is about.
func (ob Observer) reasonsOf(format, more string, shown []looks.Look) (list []string) {
	whom, why, text := map[string][]string{}, []string{}, map[string]string{}
	for _, l := range shown {
		of := string(l.Step)
		if i := strings.LastIndexByte(of, '/'); i >= 0 && !strings.HasPrefix(of, "site/") {
			of = of[:i]
		}
		like := ob.unnamed(l.Evidence, of)
		if whom[like] == nil {
			why = append(why, like)
			text[like] = l.Evidence
		}
		if all := whom[like]; len(all) == 0 || all[len(all)-1] != of { // steps of one come together
			whom[like] = append(all, of)
		}
	}
	const reasons = 8
	for i, w := range why {
		if i == reasons {
			return append(list, fmt.Sprintf(more, len(why)-reasons))
		}
		list = append(list, fmt.Sprintf(format, subject.Some(whom[w], 5), text[w]))
	}
	return list
}

// unnamed is a reason without the switch that it is about: of many switches with one
// wrong password it is said once.
func (ob Observer) unnamed(text, name string) string {
	sw := status.FindSwitchByName(ob.Inv, name)
	if sw == nil {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, sw.Name, ""), sw.Address.String(), "")
}

// due lists the steps that are to be looked at: done, wanted, of nodes that the
// plan is about, and seen too long ago; and those of switches that are to be done.
func (ob Observer) due(ctx context.Context, r state.Reader, prior plan.Prior, steps []plan.Step, opt plan.Options, o Options) ([]plan.Step, error) {
	again := o.Refresh || o.Trust > 0 && anyOlder(prior, o.Now.Add(-o.Trust))
	var due, unrecorded []plan.Step
	for i := range steps {
		switch st := &steps[i]; {
		case isUnrecorded(prior, st) && about(*st, prior, opt):
			unrecorded = append(unrecorded, *st)
		case again && (o.met(prior, st) || o.old(prior, st) && about(*st, prior, opt)):
			done := *st
			done.Inherited = false
			due = append(due, done)
		}
	}
	if o.Refresh || len(due) == 0 {
		return append(due, unrecorded...), nil
	}
	fresh, err := looks.ConformingSince(ctx, r, o.Now.Add(-o.Trust))
	kept := due[:0]
	for _, st := range due {
		if !fresh[st.ID] {
			kept = append(kept, st)
		}
	}
	return append(kept, unrecorded...), err
}

// isUnrecorded reports whether a node in service has no good end of a step that it may
// have inherited.
func isUnrecorded(prior plan.Prior, st *plan.Step) bool {
	if !st.Inherited || st.Subject.Kind != subject.Node || st.Stage == validate.StageName { // of a test nothing is to be seen
		return false
	}
	_, was := prior.Steps[st.ID]
	n := prior.Nodes[st.Subject.Name]
	return !was && n.InService() && !n.Adopted
}

// met reports whether a step of a switch is to be looked at although it was never done:
// it is planned in any case, and what it meets there is what is asked.
func (o Options) met(prior plan.Prior, st *plan.Step) bool {
	return o.Refresh && st.Subject.Kind == subject.Switch && visible(*st, true) && awaited(prior, st)
}

// old reports whether what was done is to be looked at by its age.
func (o Options) old(prior plan.Prior, st *plan.Step) bool {
	done, was := prior.Steps[st.ID]
	return was && visible(*st, o.Refresh) && (o.Refresh || o.Now.Sub(done.At) > o.Trust)
}

// anyOlder reports whether any step was done before then.
func anyOlder(prior plan.Prior, then time.Time) bool {
	for _, d := range prior.Steps {
		if d.At.Before(then) {
			return true
		}
	}
	return false
}

// visible reports whether a look at a step can tell anything. Tests are run, not
// observed. BMCs and switches are asked only when the operator wants everything
// looked at: it takes their passwords.
func visible(st plan.Step, refresh bool) bool {
	return st.Only == "" && st.Group == nil && st.Stage != validate.StageName && st.Stage != plan.GateStage && (refresh || st.Stage != oob.Name && st.Subject.Kind != subject.Switch)
}

// about reports whether a plan with these options is about a step. With targets,
// only steps of these nodes are looked at.
func about(st plan.Step, prior plan.Prior, opt plan.Options) bool {
	if st.Subject.Kind != subject.Node {
		return len(opt.Targets) == 0
	}
	n := st.Subject.Name
	return (len(opt.Targets) == 0 || opt.Targets[n]) && prior.Nodes[n].Held == "" && !opt.Replace[n]
}
