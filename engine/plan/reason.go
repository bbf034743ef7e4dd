// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/subject"
)

// findReasons says what is done to a step's subject, and why by the step's own account;
// no reason means that it is already so, unless a step that triggers it is planned.
func (d *differ) findReasons(s *Step) (Action, []string) {
	done, was := d.prior.Steps[s.ID]
	action := chooseAction(s, was)
	n := nodeOf(s)
	if n != "" && d.opt.Replace[n] {
		if s.May.Has(Erase) || s.May.Has(Power) {
			action = Replace // also of a node that runs and is unknown: its power may be cut
		}
		return action, []string{"asked for by --replace " + n}
	}
	if why := d.askedFor(s, n); why != "" {
		return action, []string{why}
	}
	seen := d.opt.Observed[s.ID]
	if !was {
		if node := d.prior.Nodes[n]; n != "" && (node.Adopted || node.InService() && s.Inherited && !seen.Differs) {
			return "", nil
		}
		return action, seen.reasonsIfNew()
	}
	if why := compareInputs(done, s); len(why) > 0 {
		return action, seen.reasonsIfChanged(why)
	}
	if seen.Differs {
		return action, seen.reasonsIfDiffers()
	}
	return action, d.reasonsToRetest(s)
}

// askedFor is why the operator wants a step of a node, other than to reinstall it; "": so it is not.
func (d *differ) askedFor(s *Step, node string) string {
	switch {
	case node == "":
	case d.opt.Retired[node]:
		return "asked for by --decommission " + node
	case d.opt.Retest[node] && s.Test:
		return "asked for by ironrail test " + node
	}
	return ""
}

// chooseAction is what a step says that it does, else what follows from whether it was
// done before.
func chooseAction(s *Step, was bool) Action {
	switch action := cmp.Or(s.Action, Create); {
	case !was || action != Create:
		return action
	case s.May.Has(Erase):
		return Replace
	}
	return Change
}

// reasonsIfNew is why a step is planned that was never done, and what it would meet.
func (s Observation) reasonsIfNew() []string {
	const why = "not done yet"
	switch {
	case len(s.Operations) > 0:
		return append([]string{why}, s.describeOperations()...)
	case s.Evidence != "":
		return []string{why + ": " + s.Evidence}
	}
	return []string{why}
}

// describeOperations is what a step would write, in a few lines, or what was seen instead.
func (s Observation) describeOperations() []string {
	switch {
	case len(s.Operations) > 0:
		return append([]string{s.Evidence + ": " + countOperations(s.Operations)}, summariseOperations(s.Operations)...)
	case s.Evidence != "":
		return []string{s.Evidence}
	}
	return nil
}

// reasonsIfChanged is why a step is planned whose inputs changed, and of a step that operations
// are told of what it would write, in place of those inputs that are digests.
func (s Observation) reasonsIfChanged(inputs []reworded) (why []string) {
	for _, in := range inputs {
		if !s.Tells[in.name] {
			why = append(why, in.text)
		}
	}
	if s.Tells == nil {
		return why
	}
	return append(why, s.describeOperations()...)
}

// reasonsIfDiffers is why a step is planned that was done, and is no longer so.
func (s Observation) reasonsIfDiffers() []string {
	if len(s.Operations) == 0 {
		return []string{"observed: " + s.Evidence}
	}
	return append([]string{"observed: " + countOperations(s.Operations)}, summariseOperations(s.Operations)...)
}

// triggers reports whether a need of a step makes it run again, when the step that
// is needed is planned.
func (d *differ) triggers(n *Need, needed int32) bool {
	return n.Triggers || n.TriggersIfNew && !d.wasDone(&d.steps[needed])
}

// isTriggered reports whether a planned step makes step i run again.
func (d *differ) isTriggered(i int32) bool {
	for k, j := range d.needs[i] {
		if d.choices[j].planned && d.triggers(&d.steps[i].Needs[k], j) {
			return true
		}
	}
	return false
}

// describeTriggers puts the steps into words that make a planned step run again: of those
// in needs, which are its planned ones.
func (d *differ) describeTriggers(needs []Need) []string {
	const shown = 3
	var by []string
	more := 0
	for k := range needs {
		j, desired := d.index[needs[k].Step.Base()]
		switch {
		case !desired || !d.triggers(&needs[k], j):
		case len(by) < shown:
			by = append(by, string(needs[k].Step))
		default:
			more++
		}
	}
	if len(by) == 0 {
		return nil
	}
	if more > 0 {
		by = append(by, fmt.Sprintf("%d more", more))
	}
	return []string{"follows " + strings.Join(by, ", ")}
}

// reasonsToRetest asks for a test again that nodes have to pass which never did: they
// were held when it ran, or lost before it. A plan that waits for them would find
// no result of theirs.
func (d *differ) reasonsToRetest(s *Step) []string {
	if s.Renewed && s.Subject.Kind == subject.Node && d.prior.Nodes[s.Subject.Name].Quarantined != "" {
		return []string{s.Subject.Name + " is in quarantine: it may have been repaired"}
	}
	if s.Group == nil || s.Group.Partners == 0 {
		return nil
	}
	var names, again []string
	for _, m := range s.Group.Members {
		switch {
		case m.Kind != subject.Node || d.leftAlone[m.Name]:
		case d.opt.Retest[m.Name]:
			again = append(again, m.Name)
		case d.awaitsAcceptance(m.Name):
			names = append(names, m.Name)
		}
	}
	var why []string
	if len(names) > 0 {
		why = append(why, listSome(names)+" did not pass it yet")
	}
	if len(again) > 0 {
		why = append(why, "asked for by ironrail test "+listSome(again))
	}
	return why
}

// awaitsAcceptance reports whether a node is still to be accepted.
func (d *differ) awaitsAcceptance(node string) bool {
	if d.accepts == nil {
		d.accepts = map[string]StepID{}
		for i := range d.steps {
			if s := &d.steps[i]; s.Accepts {
				d.accepts[nodeOf(s)] = s.ID
			}
		}
	}
	id, is := d.accepts[node]
	_, done := d.prior.Steps[id]
	return is && !done && !d.prior.Nodes[node].Adopted
}

// listSome names nodes for a sentence.
func listSome(names []string) string { return subject.Some(names, 3) }

// reworded is one declared input that changed, and the sentence that says so.
type reworded struct{ name, text string }

// compareInputs compares declared inputs. Inputs of another fingerprint version are
// compared by the names that both versions have: a new ironrail by itself is
// never a reason to do anything again.
func compareInputs(done LastSuccess, s *Step) []reworded {
	if slices.EqualFunc(done.Inputs, s.Inputs, func(a, b Input) bool { return a.Name == b.Name && a.Value == b.Value }) {
		return nil
	}
	was := make(map[string]string, len(done.Inputs))
	for _, in := range done.Inputs {
		was[in.Name] = in.Value
	}
	var why []reworded
	for _, in := range s.Inputs {
		old, ok := was[in.Name]
		delete(was, in.Name)
		switch {
		case ok && old != in.Value:
			why = append(why, reworded{in.Name, fmt.Sprintf("%s %s -> %s%s", in.Name, old, in.Value, placeText(in.Decl))})
		case !ok && done.Version == s.Version:
			why = append(why, reworded{in.Name, fmt.Sprintf("%s is now %s%s", in.Name, in.Value, placeText(in.Decl))})
		}
	}
	if done.Version == s.Version {
		for _, n := range slices.Sorted(maps.Keys(was)) {
			why = append(why, reworded{n, fmt.Sprintf("%s is no longer given (was %s)", n, was[n])})
		}
	}
	return why
}

// DescribeChange says in a few words how a step that the site wants now differs, in what it
// declares, from the same step of an earlier plan; empty: not at all. As for
// planning, a new ironrail by itself is no difference.
func DescribeChange(was, is *Step) string {
	why := compareInputs(LastSuccess{Inputs: was.Inputs, Version: was.Version}, is)
	if len(why) == 0 {
		return ""
	}
	return why[0].text
}

// placeText shows where an input is declared.
func placeText(r SourceRange) string {
	if r.File == "" {
		return ""
	}
	return fmt.Sprintf(" (%s:%d)", r.File, r.Line)
}
