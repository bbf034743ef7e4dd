// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/looks"
	"github.com/ironrail/ironrail/provision/status"
)

// What a plan says of a switch that it knows too little of.
const (
	neverRead  = "the switch was never read; `ironrail plan --refresh` reads it and shows what would change"
	notKept    = "what would change there is not known; `ironrail plan --refresh` reads the switch and shows it"
	couldNotBe = "the switch could not be read"
)

// awaited reports whether a step is planned whatever a look shows: it was never done,
// or what it declares has changed.
func awaited(prior plan.Prior, st *plan.Step) bool {
	done, was := prior.Steps[st.ID]
	return !was || plan.DescribeChange(&plan.Step{Inputs: done.Inputs, Version: done.Version}, st) != ""
}

// configures reports whether a step configures a switch.
func configures(st *plan.Step) bool {
	return st.Subject.Kind == subject.Switch && st.Stage == fabric.StageName
}

// reportObservations puts what looks have shown of switches into the words of a plan, and says
// of those that could not be read that it is so.
func (ob Observer) reportObservations(prior plan.Prior, due []plan.Step, shown []looks.Look, seen map[plan.StepID]plan.Observation) {
	of := make(map[plan.StepID]*plan.Step, len(due))
	for i := range due {
		of[due[i].ID] = &due[i]
	}
	for _, l := range shown {
		st := of[l.Step]
		if !configures(st) || !awaited(prior, st) {
			continue
		}
		now, preview := seen[l.Step]
		since := "read now" + firstKey(ob.Inv, l)
		switch {
		case !preview:
			now.Evidence = couldNotBe
		case len(now.Operations) > 0:
			now.Evidence = since
		default:
			now.Evidence = since + ": " + now.Evidence
		}
		seen[l.Step] = now
	}
}

// firstKey names the host key that a switch showed, where nobody knew one.
func firstKey(inv *inventory.Inventory, l looks.Look) string {
	for _, f := range l.Facts {
		line, err := switchos.HostKeyFact.Get(f)
		if sw := status.FindSwitchByName(inv, f.Key.Subject.Name); err != nil || sw == nil || sw.HostKey != "" {
			continue
		}
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err == nil {
			return fmt.Sprintf(" for the first time, host key %s %s", key.Type(), ssh.FingerprintSHA256(key))
		}
	}
	return ""
}

// PreviewSwitches adds to what was seen what the steps of switches would write that are
// planned in any case: by a look, by what was read of them before, or else how to see
// it.
func (ob Observer) PreviewSwitches(prior plan.Prior, steps []plan.Step, seen map[plan.StepID]plan.Observation) map[plan.StepID]plan.Observation {
	var kind *switchos.Kind
	for i := range steps {
		st := &steps[i]
		if !configures(st) || !awaited(prior, st) {
			continue
		}
		if kind == nil {
			kind = ob.SwitchKind()
		}
		preview, ok := kind.Preview(prior, *st)
		if !ok {
			continue
		}
		if seen == nil {
			seen = map[plan.StepID]plan.Observation{}
		}
		seen[st.ID] = previewOf(prior, st, preview, seen)
	}
	return seen
}

// previewOf is what a plan says of one switch. A look says more than what was read
// before.
func previewOf(prior plan.Prior, st *plan.Step, preview switchos.Preview, seen map[plan.StepID]plan.Observation) plan.Observation {
	now, looked := seen[st.ID]
	now.Tells = map[string]bool{}
	known := looked && now.Evidence != couldNotBe
	if !known && !preview.Read.IsZero() {
		now.Evidence, now.Operations, known = readLast(prior, st, preview), preview.Operations, true
	}
	if _, done := prior.Steps[st.ID]; !known && !looked {
		now.Evidence = neverRead
		if _, read := prior.Fact(switchos.ObservedFact.Of(st.Subject)); done || read {
			now.Evidence = notKept
		}
	}
	if known {
		for _, table := range preview.Tables() {
			now.Tells[table] = true
		}
	}
	return now
}

// readLast says when a switch was read last. What was read is stored once, when it was
// seen first; a good end of the step has read it again.
func readLast(prior plan.Prior, st *plan.Step, preview switchos.Preview) string {
	at := preview.Read
	if done := prior.Steps[st.ID]; done.At.After(at) {
		at = done.At
	}
	text := "as read last, at " + at.UTC().Format(time.DateTime) + " UTC"
	if len(preview.Operations) == 0 {
		text += ": nothing differs from what the site says"
	}
	return text
}
