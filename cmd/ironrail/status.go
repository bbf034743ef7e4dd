// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show where every node stands",
		Long: `Show where every node stands, one line each, and what a running apply does now:
the step, what it waits for, since when and until when at the latest. Works from
a second terminal while apply runs, and without a run. Below a node stands what
the files do not say of it: that its chassis was replaced, that it is pinned, and,
while it is not up, which of its parts were found bad on another node. More than 40
nodes are counted first. Last stands what the run found about the site and no
node, such as another DHCP server.

--json prints one object: owner and run (null without a run), nodes, where each of
them stands in words, notes by node, findings about the site; without a run also
last, the run that was begun last, and stopped, the same when it did not come to its
end. approvals of run and last say who approved the plan, how, and how many nodes it
erases.`,
		Example: "  ironrail status\n  ironrail status --json | jq -r '.nodes[] | select(.quarantine) | .name'",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.status(c.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(s)
			}
			writeStatus(a.out, s, a.now())
			return nil
		},
	}
}

// siteStatus is what status shows. Owner and Run are nil while nobody owns the
// state.
type siteStatus struct {
	Owner *control.Identity `json:"owner"`
	Run   *apply.Status     `json:"run"`
	Nodes []state.Node      `json:"nodes"` // every node of the site, in its order
	Where []why.NodeSummary `json:"where"` // of each
	// Notes is what the state knows of nodes and the files do not: a replaced
	// chassis, a pin, parts that were found bad elsewhere.
	Notes map[string][]string `json:"notes,omitempty"`
	// Findings are those of the active run, or else the last one, about the site.
	Findings []stage.Finding `json:"findings,omitempty"`
	// Last is the run that was begun last, while nobody owns the state.
	Last *state.Run `json:"last,omitempty"`
	// Rehearsal says that this is what a rehearsal left: nothing of it is true of hardware.
	Rehearsal bool `json:"rehearsal,omitempty"`
	// Serves is what an owner that stays does for nodes that boot; empty without one.
	Serves []string `json:"serves,omitempty"`
	// Stopped is Last when it was stopped or died before its end: apply continues with it.
	Stopped *state.Run `json:"stopped,omitempty"`
}

// status asks the owner, or reads the state when there is none.
func (a *app) status(ctx context.Context) (s siteStatus, err error) {
	inv, err := a.names()
	if err != nil {
		return s, err
	}
	site, owner, err := a.siteNow(ctx, inv)
	if err != nil {
		return s, err
	}
	s = newSiteStatus(site, owner)
	_, s.Rehearsal, err = rehearsal.ReadKept(a.stateDir())
	return s, err
}

// lastText says of the run that was begun last how it ended; of one that did not come
// to its end also what continues with it.
func lastText(r state.Run, now time.Time) string {
	if r.Resumable() {
		return stoppedText(r, now)
	}
	return fmt.Sprintf("Run %s ended %s: %s.", r.ID, formatMoment(r.Ended, now), r.Outcome)
}

// approvals say who let the plan of a run be applied.
func (p *page) approvals(list []state.Approval, now time.Time) {
	for _, a := range list {
		p.linef("Approved %s by %s.", formatMoment(a.At, now), a)
	}
}

// stoppedText says of a run that did not come to its end how it ended, and what
// continues with it.
func stoppedText(r state.Run, now time.Time) string {
	if r.Restored {
		return fmt.Sprintf("The state is that of a copy in which run %s, that began %s, had not ended. `ironrail plan` shows what is left; nothing is resumed.", r.ID, formatMoment(r.Started, now))
	}
	how := fmt.Sprintf("that began %s died", formatMoment(r.Started, now))
	if !r.Ended.IsZero() {
		how = "was stopped " + formatMoment(r.Ended, now)
	}
	return fmt.Sprintf("Run %s %s before its end; nodes may be drained in the middle of it. `ironrail apply` goes on.", r.ID, how)
}

func newSiteStatus(site why.Site, owner *control.Identity) siteStatus {
	s := siteStatus{Owner: owner, Run: site.Run, Nodes: append([]state.Node{}, site.Nodes...), Where: why.SummariseNodes(site), Notes: site.Notes, Last: site.Last, Findings: site.Findings, Serves: site.Serves}
	if s.Last != nil && s.Last.Resumable() {
		s.Stopped = s.Last
	}
	if s.Run != nil && s.Run.Active == nil {
		s.Run.Active = []apply.StepStatus{}
	}
	return s
}

func writeStatus(w io.Writer, s siteStatus, now time.Time) {
	var p page
	defer func() {
		p.ofSite(s.Findings)
		p.to(w)
	}()
	if s.Rehearsal {
		p.linef("What a rehearsal left: its nodes were simulated.")
	}
	for _, text := range s.Serves {
		p.linef("%s: %s.", s.Owner, text)
	}
	if s.Run == nil {
		p.linef("No run is active.")
		if s.Last != nil {
			p.linef("%s", lastText(*s.Last, now))
			p.approvals(s.Last.Approvals, now)
		}
		p.counts(s.Nodes)
		for i, n := range s.Nodes {
			p.linef("%-14s %s", n.Name, describeStatus(n, s.Where[i], now))
			p.notes(s.Notes[n.Name])
		}
		return
	}
	p.linef("%s runs plan %s.", s.Owner, s.Run.Plan)
	p.approvals(s.Run.Approvals, now)
	if s.Run.Draining {
		p.linef("It drains: running steps are let end, nothing new starts.")
	}
	p.counts(s.Nodes)
	steps, of := map[string]apply.NodeStatus{}, map[string]apply.StepStatus{}
	for _, n := range s.Run.Nodes {
		steps[n.Name] = n
	}
	for _, x := range s.Run.Active {
		if x.Node != "" {
			of[x.Node] = x
		}
	}
	for i, n := range s.Nodes {
		p.linef("%-14s %s", n.Name, underWay(n, s.Where[i], steps[n.Name], of[n.Name], now))
		p.notes(s.Notes[n.Name])
	}
	for _, x := range s.Run.Active {
		if x.Node == "" {
			p.linef("%-14s %s%s", textOr(string(x.ID), x.Stage), describeActivity(x, now), nameMembers(x))
		}
	}
}

// counts says how many of many nodes stand where; few are counted by the eye.
func (p *page) counts(nodes []state.Node) {
	if len(nodes) < foldFrom {
		return
	}
	by := map[string]int{}
	for _, n := range nodes {
		switch {
		case n.Hold != nil:
			by["held"]++
		case n.Quarantine != nil:
			by["quarantined"]++
		case n.Accepted:
			by["accepted"]++
		case n.Adopted:
			by["adopted"]++
		default:
			by["not accepted yet"]++
		}
	}
	var parts []string
	for _, where := range []string{"accepted", "adopted", "held", "quarantined", "not accepted yet"} {
		if by[where] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[where], where))
		}
	}
	p.linef("%d nodes: %s. `ironrail why` groups those that are not up by what they have in common.", len(nodes), strings.Join(parts, ", "))
}

// notes are what is known of the node of the line before.
func (p *page) notes(list []string) {
	for _, n := range list {
		p.linef("%-14s   %s", "", n)
	}
}

// nameMembers names the members of a group step.
func nameMembers(x apply.StepStatus) string {
	if len(x.Members) == 0 {
		return ""
	}
	return " [" + shortenNames(x.Members, mostNames) + "]"
}

// underWay says in a line where a node stands while a run is active.
func underWay(n state.Node, w why.NodeSummary, in apply.NodeStatus, x apply.StepStatus, now time.Time) string {
	switch {
	case n.Hold != nil, n.Quarantine != nil, in.Name == "":
		return describeStatus(n, w, now)
	case x.ID != "" && !x.Since.IsZero():
		text := fmt.Sprintf("%2d/%-2d %-20s %s", in.Done, in.Total, x.ID.Kind(), describeActivity(x, now))
		if w.Late {
			text += fmt.Sprintf(", LATE (%s says more)", "`ironrail why "+n.Name+"`")
		}
		return text
	case in.Outcome == apply.NodeActive:
		return fmt.Sprintf("%2d/%-2d %s", in.Done, in.Total, w.Text)
	}
	return fmt.Sprintf("%2d/%-2d %s", in.Done, in.Total, describeStatus(n, w, now))
}

// describeActivity says what a step does or waits for, since when and until when.
func describeActivity(x apply.StepStatus, now time.Time) string {
	parts := []string{addProgress(x.Text, x.Done, x.Total)}
	if when := formatSpan(x.Since, x.Until, now); when != "" {
		parts = append(parts, when)
	}
	return strings.Join(parts, ", ")
}

// describeStatus says in a line where a node stands.
func describeStatus(n state.Node, w why.NodeSummary, now time.Time) string {
	switch {
	case n.Hold != nil:
		by := n.Hold.By
		if n.Hold.Reason != "" {
			by += ": " + n.Hold.Reason
		}
		return fmt.Sprintf("on hold since %s (%s)", formatMoment(n.Hold.At, now), by)
	case n.Quarantine != nil:
		text := fmt.Sprintf("quarantined since %s: %s", formatMoment(n.Quarantine.At, now), n.Quarantine.Finding.Cause)
		if more := len(n.Quarantine.More); more > 0 {
			text += fmt.Sprintf(" (and %d more: `ironrail why %s`)", more, n.Name)
		}
		return text
	case n.Accepted:
		return "accepted " + formatMoment(n.AcceptedAt, now)
	case n.Adopted:
		return "adopted as it was found (unverified) " + formatMoment(n.AdoptedAt, now)
	case n.Run != "" && (w.Status == why.Skipped || w.Status == why.Cut):
		return "not accepted yet: " + w.Text
	case n.Run != "":
		return "not accepted yet"
	}
	return "nothing was done yet"
}
