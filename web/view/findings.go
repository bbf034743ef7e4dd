// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/ending"
	"github.com/ironrail/ironrail/engine/evidence"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/status"
)

// Findings is what was found, and the work that follows.
type Findings struct {
	Work  []Job   `json:"work"`  // in the order of a walk past the racks
	Other []Cause `json:"other"` // causes without an action
}

// Job is one line of the work order.
type Job struct {
	Number int    `json:"number"`
	Stops  []Stop `json:"stops"` // where to go
	Cause
}

// Stop is a place with what is to be worked on there.
type Stop struct {
	Rack  string   `json:"rack,omitempty"`
	Unit  int      `json:"unit,omitempty"`
	Parts []string `json:"parts"`
}

// Cause is one thing that was found, of one subject or of several alike.
type Cause struct {
	ID       string   `json:"id"`
	Text     string   `json:"cause"`
	Others   []string `json:"others,omitempty"`
	Parts    []string `json:"parts"`
	Nodes    []string `json:"nodes,omitempty"` // that are out of service by it
	Seen     []string `json:"seen,omitempty"`
	Evidence []string `json:"evidence,omitempty"`
	Action   string   `json:"action,omitempty"`
}

// findingsOf is all findings, and how they end the run.
type findingsOf struct {
	all []stage.Finding
	end ending.Ending
}

// Findings is the work order.
func (k *Keeper) Findings(ctx context.Context) (Findings, error) {
	s, err := k.Current(ctx)
	if err != nil {
		return Findings{}, err
	}
	of, err := k.findingsOf(ctx, s)
	if err != nil {
		return Findings{}, err
	}
	out := Findings{Work: []Job{}, Other: []Cause{}}
	for i, c := range of.end.Work() {
		j := Job{Number: i + 1, Cause: newCause(c), Stops: []Stop{}}
		for _, st := range c.Stops {
			j.Stops = append(j.Stops, Stop{st.Rack, st.Unit, st.Suspects})
		}
		out.Work = append(out.Work, j)
	}
	for _, c := range of.end.Causes {
		if c.Action == "" {
			out.Other = append(out.Other, newCause(c))
		}
	}
	return out, nil
}

// findingsOf reads all findings. Of an active run, those that nodes are quarantined by and
// those about the site.
func (k *Keeper) findingsOf(ctx context.Context, s *Snapshot) (findingsOf, error) {
	return k.findings.get(s, k.Now(), func() (of findingsOf, err error) {
		if of.all, err = k.records(s).Findings(ctx); err != nil {
			return of, err
		}
		of.end = ending.Of(resultOf(s, of.all), status.Places(s.Inv))
		return of, nil
	})
}

// resultOf is how the nodes stand as the end of a run has it.
func resultOf(s *Snapshot, all []stage.Finding) apply.Result {
	var res apply.Result
	for _, n := range s.Site.Nodes {
		r := apply.NodeResult{Name: n.Name, Outcome: apply.NodeSkipped, Accepted: n.Accepted}
		switch {
		case n.Quarantine != nil:
			r.Outcome, r.Finding = apply.NodeQuarantined, &n.Quarantine.Finding
		case n.Hold != nil:
			r.Outcome = apply.NodeHeld
		case n.Accepted:
			r.Outcome = apply.NodeDone
		}
		res.Nodes = append(res.Nodes, r)
	}
	res.Findings = all
	return res
}

// FindingPage is all that is known of the findings of one name.
type FindingPage struct {
	ID       string    `json:"id"`
	Findings []Finding `json:"findings"`
	Nodes    []string  `json:"nodes"` // that are quarantined by it
}

// Finding is the page of a name, such as f-k2q9va.
func (k *Keeper) Finding(ctx context.Context, id string) (FindingPage, error) {
	s, err := k.Current(ctx)
	if err != nil {
		return FindingPage{}, err
	}
	of, err := k.findingsOf(ctx, s)
	if err != nil {
		return FindingPage{}, err
	}
	out := FindingPage{ID: id, Nodes: []string{}}
	for _, f := range of.all {
		if ending.Fold(f).ID() == id {
			out.Findings = append(out.Findings, newFinding(f, time.Time{}))
		}
	}
	for _, n := range s.nodes {
		if n.Finding == id {
			out.Nodes = append(out.Nodes, n.Node)
		}
	}
	if len(out.Findings) == 0 {
		return out, errkind.New(errkind.NotFound, "nothing that is known now is called %s", id)
	}
	return out, nil
}

// newFinding is a finding as it is shown.
func newFinding(f stage.Finding, at time.Time) Finding {
	out := Finding{ID: ending.Fold(f).ID(), Parts: append([]string{}, f.Parts()...), Cause: f.Cause, Action: f.Action, Step: f.Step, At: at}
	out.Seen, out.Evidence = splitEvidence(f.Evidence)
	return out
}

func newCause(c *ending.Cause) Cause {
	out := Cause{ID: c.ID, Text: c.Text, Others: c.Others, Parts: append([]string{}, c.Suspects...), Nodes: c.Nodes, Action: c.Action}
	out.Seen, out.Evidence = splitEvidence(c.Evidence)
	return out
}

// splitEvidence divides sentences from references.
func splitEvidence(list []string) (seen, refs []string) {
	for _, e := range list {
		if evidence.IsRef(e) {
			if !slices.Contains(refs, e) {
				refs = append(refs, e)
			}
		} else {
			seen = append(seen, e)
		}
	}
	return seen, refs
}
