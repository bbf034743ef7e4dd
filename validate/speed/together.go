// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"context"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// RoleReport is the comparison of a role's nodes.
type RoleReport struct {
	At      time.Time `json:"at"`
	Role    string    `json:"role"`
	Members []string  `json:"members,omitempty"` // that were compared, those in service among them
	Rows    []Row     `json:"rows,omitempty"`
	Notes   []string  `json:"notes,omitempty"`
}

// RoleFact is the last comparison of a role.
const RoleFact = fact.Name[RoleReport]("validate.speeds")

// Together compares the hosts of a role's nodes.
var Together = target.Check{Name: "speeds", Scope: target.EachRole, Needs: []string{"speed"}, For: target.Node(target.HasHost), Fewest: Fewest, Plan: planTogether, Run: runTogether,
	Duration: target.Duration{Low: 10 * time.Millisecond, Mid: 100 * time.Millisecond, High: time.Second, Source: "estimate: it compares what the nodes have measured, and asks none"},
	Report:   target.Section{Title: "Memory, CPUs and disks compared", Read: readTogether},
	Docs:     target.Docs{Says: "memory, CPUs and disks of a role's nodes, against those that are alike", Page: "speed.md"}}

func readTogether(f fact.Fact, _ string) (result.Report, error) {
	r, err := RoleFact.Get(f)
	return r.Report(), err
}

// planTogether compares what the nodes of a role have measured. It asks no node: those in
// service are compared as they were when they were measured.
func planTogether(r target.Request) plan.Step {
	title := fmt.Sprintf("compare the memory, the CPUs and the disks of %d nodes", len(r.Group.Nodes))
	return target.ComparisonStep(r, title, RoleFact.Of(result.OfGroup(r.Name)))
}

// runTogether compares a role, and blames what is slow among the nodes that the step is about.
func runTogether(ctx context.Context, j *target.Job) error {
	run, g := j.Run, *j.Group
	left := target.FrozenMembers(j.Inv, run)
	about, _ := target.InFocus(j.Step, left)
	mine, still := result.SetOf(target.NodeNames(about)), result.SetOf(target.NodeNames(left))
	r := RoleReport{At: run.Clock().Now().UTC(), Role: g.Set}
	var nodes []Node
	for _, n := range target.Compared(run, g, still) {
		if s, ok := target.ReadFact(run, Fact, subject.OfNode(n.Name)); ok {
			nodes, r.Members = append(nodes, Node{n.Name, s.Record}), append(r.Members, n.Name)
		}
	}
	rows, found, notes := CompareNodes(nodes)
	r.Rows, r.Notes = rows, notes
	for _, o := range found {
		if !mine[o.Node] {
			continue
		}
		if err := run.Blame(ctx, o.Finding(o.Node)); err != nil {
			return err
		}
	}
	if err := r.judgeGroups(ctx, j, about); err != nil {
		return err
	}
	for _, text := range r.Notes {
		run.Emit(event.Event{Type: event.Note, Text: text})
	}
	return target.LearnFact(ctx, run, RoleFact, target.ReportOf(j.Step, fact.Name[result.Report](RoleFact), g.Set), r)
}
