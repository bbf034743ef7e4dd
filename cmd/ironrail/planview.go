// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/fold"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/predict"
)

// mostNames is how many nodes a list names before it only counts.
const mostNames = 12

// writePlan shows a plan: steps grouped by what they work on, each with its why,
// what is erased in capitals, what is known only later, and how long it may take.
// In a large plan, nodes that are treated alike are shown once.
func writePlan(w io.Writer, p *plan.Plan, guess predict.Prediction) { showPlanTo(w, p, guess, false) }

// writeWholePlan shows a plan with every step of every node.
func writeWholePlan(w io.Writer, p *plan.Plan, guess predict.Prediction) {
	showPlanTo(w, p, guess, true)
}

func showPlanTo(w io.Writer, p *plan.Plan, guess predict.Prediction, full bool) {
	var b page
	switch {
	case p.Empty() && len(p.Unmanaged) == 0:
		b.linef("Site %s: nothing to do.", p.Site)
	case p.Empty():
		b.linef("Site %s: no steps are planned.", p.Site)
		writeUnmanaged(&b, p.Unmanaged)
	default:
		b.linef("Plan %s for site %s: %s.", p.ID, p.Site, describeCounts(p))
		writeRollouts(&b, p)
		writeSteps(&b, p, full)
		writeGuess(&b, guess)
	}
	writeErase(&b, p)
	for _, x := range p.Warnings {
		b.linef("Warning: %s", x)
	}
	for _, g := range p.Orphaned {
		b.linef("%s is not in the site's files any more. It is orphaned: automation is paused for it. To drain, erase and forget it: %s", g.Node, g.Command)
	}
	writeOffers(&b, p, full)
	writeRefusals(&b, p)
	b.to(w)
}

// writeGuess says how long a plan with steps may take. The zero prediction is of no
// plan, and never means that there is nothing to do.
func writeGuess(b *page, guess predict.Prediction) {
	b.linef("")
	if guess.Steps == 0 {
		b.linef("Expected time: not known here.")
		return
	}
	for _, l := range guess.Text() {
		b.linef("%s", l)
	}
}

// writeRefusals says why apply will not do a plan, once for all that is refused alike.
func writeRefusals(b *page, p *plan.Plan) {
	for _, g := range refusalGroups(p.Refusals) {
		b.linef("")
		if len(g.Names) > 1 {
			b.linef("Refused for %s", g.Subjects())
			b.linef("  %s", g.Cause)
		} else {
			b.linef("Refused: %s", g.Cause)
		}
		writeOtherCauses(b, "  ", g.Others)
		b.linef("  %s", g.Action)
	}
}

// refusalGroups are refusals with those together that are alike.
func refusalGroups(list []plan.Refusal) []fold.Group {
	findings := make([]fold.Finding, len(list))
	for i, r := range list {
		findings[i] = fold.Finding{Kind: string(r.Subject.Kind), Name: r.Subject.Name, Cause: r.Cause, Action: r.Action}
	}
	return fold.Findings(findings)
}

// writeOtherCauses shows the causes of a group that differ from its first one; of many
// the first ones.
func writeOtherCauses(b *page, indent string, others []string) {
	for i, o := range others {
		if i == mostNames {
			b.linef("%sand %d more; --json has all", indent, len(others)-i)
			return
		}
		b.linef("%s%s", indent, o)
	}
}

// writeUnmanaged says which nodes a plan without steps leaves unmanaged, and what to do.
func writeUnmanaged(b *page, list []plan.Unmanaged) {
	reasons := map[plan.UnmanagedReason]string{
		plan.RunsUnknown:   "running, and not in this state",
		plan.OnHold:        "on hold",
		plan.OutsideTarget: "outside of --target",
	}
	for _, u := range list {
		b.linef("%d %s unmanaged (%s): %s", len(u.Nodes), pluralOf(len(u.Nodes), "node is", "nodes are"), reasons[u.Reason], fold.Names(u.Nodes))
		b.linef("  %s", u.Action)
	}
}

// writeOffers names the nodes that run and are not known; of many, as after the
// state was lost, the first ones.
func writeOffers(b *page, p *plan.Plan, full bool) {
	for i, o := range p.Offers {
		b.linef("")
		if more := len(p.Offers) - i; i == mostNames && more > 1 && !full {
			b.linef("%d more nodes are not in this state and are not idle; `ironrail plan --full` names them.", more)
			b.linef("  Nothing is planned for them. To take all %d as they run: ironrail adopt --all", len(p.Offers))
			return
		}
		b.linef("%s", o.Cause)
		b.linef("  Nothing is planned for it. To take it as it runs: %s", o.Command)
	}
}

// writeRollouts says in which order a change reaches nodes in service.
func writeRollouts(b *page, p *plan.Plan) {
	for _, r := range p.Rollouts {
		b.linef("%s", rolloutText(r))
	}
}

// rolloutText is a rollout in a sentence.
func rolloutText(r plan.Waves) string {
	var parts []string
	for i := 0; i < len(r.Waves); i++ {
		w := r.Waves[i]
		alike := 1 // batches of one size, one after the other
		for w.Name != "canary" && i+1 < len(r.Waves) && len(r.Waves[i+1].Nodes) == len(w.Nodes) {
			alike++
			i++
		}
		switch {
		case w.Name == "canary":
			parts = append(parts, fmt.Sprintf("%s %s", w.Name, shortenNames(w.Nodes, mostNames)))
		case alike > 1:
			parts = append(parts, fmt.Sprintf("%d batches of %d", alike, len(w.Nodes)))
		default:
			parts = append(parts, fmt.Sprintf("a batch of %d", len(w.Nodes)))
		}
	}
	end := "."
	if len(r.Waves) > 1 {
		end = fmt.Sprintf("; stops after %d %s.", r.StopAfter, pluralOf(r.StopAfter, "failure", "failures"))
	}
	return fmt.Sprintf("Rollout of role %s: %s%s", r.Role, strings.Join(parts, ", then "), end)
}

// describeCounts says how much a plan does.
func describeCounts(p *plan.Plan) string {
	nodes, by := map[string]bool{}, map[plan.Action]int{}
	for _, s := range p.Steps {
		by[s.Action]++
		if s.Subject.Kind == subject.Node {
			nodes[s.Subject.Name] = true
		}
	}
	var parts []string
	for _, a := range []plan.Action{plan.Create, plan.Change, plan.Replace, plan.Delete, plan.Read} {
		if by[a] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[a], a))
		}
	}
	on := ""
	if n := len(nodes); n > 0 {
		on = fmt.Sprintf(" on %d %s", n, pluralOf(n, "node", "nodes"))
	}
	return fmt.Sprintf("%d %s (%s)%s", len(p.Steps), pluralOf(len(p.Steps), "step", "steps"), strings.Join(parts, ", "), on)
}

// part is what a group of steps works on: a subject, in one wave of a rollout.
type part struct {
	subject.ID
	wave string
}

// partOf is where a step is shown. The steps of a node stand together.
func partOf(s plan.Step) part {
	if s.Subject.Kind == subject.Node {
		return part{ID: s.Subject}
	}
	return part{s.Subject, s.ID.Wave()}
}

// writeSteps groups steps by what they work on, in the order of the plan.
func writeSteps(b *page, p *plan.Plan, full bool) {
	yields := map[fact.Key]plan.StepID{}
	var order []part
	by := map[part][]plan.Step{}
	for _, s := range p.Steps {
		at := partOf(s)
		if by[at] == nil {
			order = append(order, at)
		}
		by[at] = append(by[at], s)
		for _, k := range s.Yields {
			yields[k] = s.ID
		}
	}
	folds := map[part]nodeFold{}
	if !full {
		folds = foldNodes(order, by)
	}
	for _, at := range order {
		f := folds[at]
		if f.hidden {
			continue
		}
		b.linef("")
		b.linef("%s", headingOf(at, by[at]))
		for _, s := range by[at] {
			writeStep(b, s, yields)
		}
		if n := len(f.alike); n > 0 {
			b.linef("")
			b.linef("%s (%d %s): the same %d steps as %s; `ironrail plan --full` shows them", firstToLast(f.alike), n, pluralOf(n, "node", "nodes"), len(by[at]), at.Name)
		}
		for _, lost := range f.erases {
			b.linef("  ERASES %s", lost)
		}
	}
}

// headingOf names a group of steps.
func headingOf(at part, steps []plan.Step) string {
	wave := ""
	if at.wave != "" {
		wave = ", " + at.wave
	}
	if g := steps[0].Group; g != nil {
		return fmt.Sprintf("%s %s%s: %s", at.Kind, at.Name, wave, groupText(g))
	}
	if at.Kind == subject.Node {
		return at.Name
	}
	return at.ID.String() + wave
}

// groupText names the members of a group, and whom among them it is about.
func groupText(g *plan.Group) string {
	names := func(ms []subject.ID) string {
		var list []string
		for _, m := range ms {
			list = append(list, m.Name)
		}
		return shortenNames(list, mostNames)
	}
	if len(g.Focus) == 0 || len(g.Focus) > len(g.Members) {
		return names(g.Members)
	}
	return fmt.Sprintf("%s, with %s in service", names(g.Focus), names(g.Members[len(g.Focus):]))
}

// writeStep shows a step. A single reason stands in its line where it fits.
func writeStep(b *page, s plan.Step, yields map[fact.Key]plan.StepID) {
	const indent, fits = "                           ", 72
	if len(s.Why) == 1 && len(s.Title)+len(shortenDigests(s.Why[0])) < fits {
		b.linef("  %-3s %-20s %s (%s)", s.Action, s.ID.Kind(), s.Title, shortenDigests(s.Why[0]))
	} else {
		b.linef("  %-3s %-20s %s", s.Action, s.ID.Kind(), s.Title)
		for _, why := range s.Why {
			b.linef(indent+"because: %s", shortenDigests(why))
		}
	}
	if s.Erases != "" {
		b.linef(indent+"ERASES %s", s.Erases)
	}
	for _, k := range s.Reads {
		if by, later := yields[k]; later && k.Subject == s.Subject {
			b.linef(indent+"%s: (known after %s)", k.Name, by.Kind())
		}
	}
}

// digest is a digest in full, as plans hold it.
var digest = lazyregexp.New(`sha256:[0-9a-f]{64}`)

// shortenDigests shortens the digests in a reason; --json has them in full.
func shortenDigests(why string) string {
	return digest.ReplaceAllStringFunc(why, func(d string) string { return d[:len("sha256:")+8] + ".." })
}

// writeErase says what is destroyed, against the site's budget.
func writeErase(b *page, p *plan.Plan) {
	n := len(p.Erase.Nodes)
	if n == 0 {
		return
	}
	b.linef("")
	b.linef("%d %s ERASED: %s (max_erase of the site is %d)", n, pluralOf(n, "NODE IS", "NODES ARE"), fold.Names(p.Erase.Nodes), p.Erase.Budget)
}
