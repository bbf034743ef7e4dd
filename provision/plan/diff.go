package plan

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/ironrail/ironrail/provision/subject"
)

// Diff turns everything that the site wants into a plan of what is still to be
// done. desired holds every step of every stage, done or not, in the order of
// the stages. A step is planned when it was never done, when one of its inputs
// changed, when a step that renews it is planned, or when its node is to be
// replaced. Diff is pure: no I/O and no clock; the caller sets ID and Created.
//
// The error is a defect of the stages (unknown need, cycle), never of the site.
func Diff(desired []Step, prior Prior, opt Options) (*Plan, error) {
	order, err := topological(desired)
	if err != nil {
		return nil, err
	}
	d := differ{prior: prior, opt: opt, planned: map[StepID]bool{}, parked: map[string]bool{},
		plan: &Plan{Format: Format, Lineage: prior.Lineage, Site: opt.Site, Versions: map[subject.ID]uint64{}}}
	d.park(order)
	for _, s := range order {
		d.consider(s)
	}
	d.keepConditional()
	d.finish()
	return d.plan, nil
}

// differ is the work of one Diff.
type differ struct {
	prior   Prior
	opt     Options
	planned map[StepID]bool
	parked  map[string]bool // nodes that this plan leaves alone
	plan    *Plan
}

// park decides which nodes the plan leaves alone: held ones, ones that run
// unknown to the state, and ones outside the targets.
func (d *differ) park(steps []Step) {
	seen := map[string]bool{}
	for _, s := range steps {
		for _, n := range nodesOf(s) {
			if !seen[n] {
				seen[n] = true
				d.parked[n] = d.parkNode(n)
			}
		}
	}
}

func (d *differ) parkNode(n string) bool {
	if len(d.opt.Targets) > 0 && !d.opt.Targets[n] {
		return true
	}
	st := d.prior.Nodes[n]
	if st.Held != "" {
		d.plan.Warnings = append(d.plan.Warnings, fmt.Sprintf("%s is held (%s): nothing is planned for it; `ironrail release %s` lets it go", n, st.Held, n))
		return true
	}
	p, looked := d.opt.Presence[n]
	if !looked || !p.Running || d.opt.Replace[n] {
		return false
	}
	d.plan.Offers = append(d.plan.Offers, Offer{Subject: subject.OfNode(n),
		Cause:   fmt.Sprintf("%s is not in this state and is not idle: %s", n, p.Evidence),
		Command: "ironrail adopt " + n})
	return true
}

// consider plans s or finds it already so.
func (d *differ) consider(s Step) {
	if s.Group != nil {
		s.Group = d.groupOf(s)
		if len(s.Group.Members) == 0 {
			return
		}
	} else if s.Subject.Kind == subject.Node && d.parked[s.Subject.Name] {
		return
	}
	switch s.Only {
	case WhenReinstalled:
		d.admit(s, Change, []string{"the node is in use and is about to be erased"})
		return
	case WhenNeeded:
		d.admit(s, Read, []string{"what depends on it is about to run"})
		return
	}
	if d.idle(s) {
		return
	}
	if action, why := d.reason(s); len(why) > 0 {
		d.admit(s, action, why)
	}
}

// idle reports whether a step that only follows others has none to follow:
// nothing that it needs is planned or was ever done. A hand-over of no node, for
// one, would take everything away from a scheduler.
func (d *differ) idle(s Step) bool {
	if len(s.Needs) == 0 || s.Subject.Kind == subject.Node {
		return false
	}
	for _, n := range s.Needs {
		if _, done := d.prior.Steps[n.Step]; done || d.planned[n.Step] {
			return false
		}
	}
	return true
}

// groupOf returns the group without parked members that nobody vouches for. An
// accepted node outside the targets stays: it is a partner, not a patient.
func (d *differ) groupOf(s Step) *Group {
	g := *s.Group
	g.Members = slices.DeleteFunc(slices.Clone(g.Members), func(m subject.ID) bool {
		return m.Kind == subject.Node && d.parked[m.Name] && (!d.prior.Nodes[m.Name].Accepted || d.prior.Nodes[m.Name].Held != "")
	})
	return &g
}

// reason says why s has to run; no reason means it is already so.
func (d *differ) reason(s Step) (Action, []string) {
	action := s.Action
	if action == "" {
		action = Create
	}
	done, was := d.prior.Steps[s.ID]
	if was && action == Create {
		action = Change
		if s.May.Has(Erase) {
			action = Replace
		}
	}
	if s.Subject.Kind == subject.Node && d.opt.Replace[s.Subject.Name] {
		if s.May.Has(Erase) || s.May.Has(Power) {
			action = Replace // also of a node that runs and is unknown: its power may be cut
		}
		return action, []string{"asked for by --replace " + s.Subject.Name}
	}
	if !was {
		if s.Subject.Kind == subject.Node && d.prior.Nodes[s.Subject.Name].Adopted {
			return "", nil
		}
		return action, []string{"not done yet"}
	}
	if why := changed(done, s); len(why) > 0 {
		return action, why
	}
	return action, d.renewed(s)
}

// renewed lists the planned steps that make s run again.
func (d *differ) renewed(s Step) []string {
	var by []string
	for _, n := range s.Needs {
		_, done := d.prior.Steps[n.Step]
		if d.planned[n.Step] && (n.Renews || n.RenewsIfNew && !done) {
			by = append(by, string(n.Step))
		}
	}
	if len(by) == 0 {
		return nil
	}
	const shown = 3
	if len(by) > shown {
		by = append(by[:shown:shown], fmt.Sprintf("%d more", len(by)-shown))
	}
	return []string{"follows " + strings.Join(by, ", ")}
}

// changed compares declared inputs. Inputs of another fingerprint version are
// compared by the names that both versions have: a new ironrail by itself is
// never a reason to do anything again.
func changed(done Done, s Step) []string {
	was := map[string]string{}
	for _, in := range done.Inputs {
		was[in.Name] = in.Value
	}
	var why []string
	for _, in := range s.Inputs {
		old, ok := was[in.Name]
		delete(was, in.Name)
		switch {
		case ok && old != in.Value:
			why = append(why, fmt.Sprintf("%s %s -> %s%s", in.Name, old, in.Value, at(in.Decl)))
		case !ok && done.Version == s.Version:
			why = append(why, fmt.Sprintf("%s is now %s%s", in.Name, in.Value, at(in.Decl)))
		}
	}
	if done.Version == s.Version {
		gone := make([]string, 0, len(was))
		for n, v := range was {
			gone = append(gone, fmt.Sprintf("%s is no longer given (was %s)", n, v))
		}
		sort.Strings(gone)
		why = append(why, gone...)
	}
	return why
}

// at shows where an input is declared.
func at(r SourceRange) string {
	if r.File == "" {
		return ""
	}
	return fmt.Sprintf(" (%s:%d)", r.File, r.Line)
}

func (d *differ) admit(s Step, a Action, why []string) {
	s.Action, s.Why = a, why
	d.planned[s.ID] = true
	d.plan.Steps = append(d.plan.Steps, s)
}

// keepConditional drops the conditional steps whose condition does not hold. It
// goes from the last step to the first, since what a dropped step needs is not
// needed by it.
func (d *differ) keepConditional() {
	erased, needed := map[string]bool{}, map[StepID]bool{}
	for _, s := range d.plan.Steps {
		if s.May.Has(Erase) && s.Subject.Kind == subject.Node {
			erased[s.Subject.Name] = true
		}
	}
	var kept []Step
	for _, s := range slices.Backward(d.plan.Steps) {
		if s.Only == WhenReinstalled && (!erased[s.Subject.Name] || !d.prior.Nodes[s.Subject.Name].Known()) ||
			s.Only == WhenNeeded && !needed[s.ID] {
			delete(d.planned, s.ID)
			continue
		}
		for _, n := range s.Needs {
			needed[n.Step] = true
		}
		kept = append(kept, s)
	}
	slices.Reverse(kept)
	d.plan.Steps = kept
}

// finish drops needs that are already met, counts what is erased, and notes
// versions and refusals.
func (d *differ) finish() {
	for i := range d.plan.Steps {
		s := &d.plan.Steps[i]
		s.Needs = slices.DeleteFunc(slices.Clone(s.Needs), func(n Need) bool { return !d.planned[n.Step] })
		for _, n := range nodesOf(*s) {
			d.plan.Versions[subject.OfNode(n)] = d.prior.Nodes[n].Version
		}
		if s.May.Has(Erase) {
			d.erases(*s)
		}
	}
	d.plan.Erase.Budget = d.opt.MaxErase
	sort.Strings(d.plan.Erase.Nodes)
}

// erases applies the safety rules to one erasing step.
func (d *differ) erases(s Step) {
	n := s.Subject.Name
	if !slices.Contains(d.plan.Erase.Nodes, n) {
		d.plan.Erase.Nodes = append(d.plan.Erase.Nodes, n)
	}
	st := d.prior.Nodes[n]
	switch {
	case d.opt.Protected[n]:
		d.refuse(s, n+" is protected: no plan erases it", "remove `protect` from its role, or do it by hand")
	case st.Known() && !d.opt.Replace[n]:
		d.refuse(s, n+" is in service ("+standing(st)+"): it is not reinstalled by an edit alone",
			fmt.Sprintf("`ironrail rebuild %s`, or `ironrail plan --replace %s`, drains and reinstalls it", n, n))
	}
}

func (d *differ) refuse(s Step, cause, action string) {
	d.plan.Refusals = append(d.plan.Refusals, Refusal{Subject: s.Subject, Step: s.ID, Cause: cause, Action: action})
}

// standing names how a node got into service.
func standing(st NodeState) string {
	if st.Accepted {
		return "accepted"
	}
	return "adopted"
}
