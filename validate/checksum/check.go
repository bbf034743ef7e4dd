// SPDX-License-Identifier: Apache-2.0

package checksum

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// Report is what a node's GPUs computed.
type Report struct {
	At       time.Time         `json:"at"`
	Names    map[string]string `json:"names,omitempty"` // what the GPUs are called, by address
	Evidence []string          `json:"evidence,omitempty"`
	Record
}

// Fact is the fact of a node's last checksums.
const Fact = fact.Name[Report]("validate.checksum")

const (
	// long is how long the GPUs compute: on large ones a hundred rounds of each kind of unit.
	long = 30 * time.Second
	// patience is how long the program may take: GPUs made for graphics take two seconds for
	// a round of fp64.
	patience = 5 * time.Minute
)

// isAsked reports whether something brings the program to a node.
func isAsked(n *inventory.Node) bool {
	return target.HasGates(n) && n.Hardware != nil && n.Hardware.GPUCount() > 0 && kinds.Brought(n, kinds.Checksum)
}

// Check computes checksums on the GPUs of a node, after its burn-in, where it has one: they
// are warm then.
var Check = target.Check{Name: "checksum", Scope: target.EachNode, Needs: []string{"gates", "bandwidth", "speed", "burn"}, For: target.Node(isAsked), Plan: planChecksum, Run: runChecksum,
	Duration: target.Duration{Low: long, Mid: 40 * time.Second, High: 2 * time.Minute, Source: "the time that the program is given, and an estimate of what it takes to begin"},
	Report:   target.Section{Title: "Checksums", Read: readReport, Untested: "what GPUs compute was not compared over the nodes"},
	Docs:     target.Docs{Says: "what GPUs compute, with what they computed a moment ago", Page: "checksums.md"}}

func readReport(f fact.Fact, of string) (result.Report, error) {
	r, err := Fact.Get(f)
	return r.Report(of), err
}

func planChecksum(r target.Request) plan.Step {
	n := r.Node
	return plan.Step{ID: r.ID, Stage: target.StageName, Action: plan.Read, Examines: true, Subject: subject.OfNode(n.Name), Title: "compute checksums on all GPUs",
		Needs: r.After(nil, n), Yields: []fact.Key{Fact.Of(subject.OfNode(n.Name))}, May: plan.Effects(plan.Load), Decl: stage.Source(n.Hardware.Decl), Version: 1,
		Inputs:   []plan.Input{{Name: "gpus", Value: target.GPUsOf(n.Hardware), Decl: stage.Source(n.Hardware.Decl)}},
		Deadline: plan.Budget{Expected: long + 10*time.Second, Limit: patience + 2*time.Minute}}
}

// runChecksum computes on a node, and blames each GPU that failed or did not repeat itself.
func runChecksum(ctx context.Context, j *target.Job) error {
	n, run := j.Node, j.Run
	r := Report{At: run.Clock().Now().UTC()}
	if g, ok := target.ReadFact(run, gate.Fact, subject.OfNode(n.Name)); ok {
		r.Names = g.GPUs
	}
	var out onnode.Output
	var failed error
	err := run.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s/run-%d", j.Step.ID, run.Clock().Now().UnixNano()),
		Kind: plan.Load, Repeatable: true,
		Does: "let the GPUs of " + n.Name + " compute checksums",
		Do: func(ctx context.Context) error {
			within, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			out, failed = j.Nodes.Run(within, n.Name, onnode.Command{Argv: []string{programName, strconv.Itoa(int(long.Seconds()))}})
			if failed != nil && within.Err() != nil && ctx.Err() == nil {
				failed = errkind.New(errkind.Timeout, "node %s: %s did not end within %s", n.Name, programName, patience).Do("Look at dmesg of the node: a GPU may hang.")
			}
			return context.Cause(ctx)
		},
	})
	if err != nil {
		return err
	}
	printed := append(bytes.Clone(out.Stdout), out.Stderr...)
	if len(printed) > 0 {
		ref, err := run.Attach("checksums.txt", printed)
		if err != nil {
			return err
		}
		r.Evidence = []string{ref}
	}
	if failed != nil {
		return fmt.Errorf("node %s: %s: %w", n.Name, programName, failed)
	}
	return r.evaluate(ctx, j, out)
}

// evaluate blames by what a node itself shows.
func (r Report) evaluate(ctx context.Context, j *target.Job, out onnode.Output) (err error) {
	n, run := j.Node, j.Run
	const read = "Read the attached output, and dmesg of the node."
	if r.Record, err = Parse(out.Stdout); err != nil {
		return errkind.New(errkind.Of(err), "node %s: exit status %d: %w", n.Name, out.Exit, err).Do(read)
	}
	if err := r.Whole(n.Hardware.GPUCount()); err != nil {
		return errkind.New(errkind.Of(err), "node %s: %w", n.Name, err).Do(read)
	}
	faults := r.Judge(r.Names)
	if out.Exit != 0 && len(faults) == 0 {
		return errkind.New(errkind.Mismatch, "node %s: %s ended with exit status %d, and no result says why", n.Name, programName, out.Exit).Do(read)
	}
	for _, f := range faults {
		if err := run.Blame(ctx, f.Finding(n.Name, r.Evidence...)); err != nil {
			return err
		}
	}
	return target.LearnFact(ctx, run, Fact, subject.OfNode(n.Name), r)
}

// RoleReport is the comparison of a role's nodes.
type RoleReport struct {
	At      time.Time `json:"at"`
	Role    string    `json:"role"`
	Members []string  `json:"members,omitempty"` // that were compared, those in service among them
	Rows    []Row     `json:"rows,omitempty"`
	Notes   []string  `json:"notes,omitempty"`
}

// RoleFact is the last comparison of a role.
const RoleFact = fact.Name[RoleReport]("validate.checksums")

// Together compares the checksums of a role's nodes.
var Together = target.Check{Name: "checksums", Scope: target.EachRole, Needs: []string{"checksum"}, For: target.Node(isAsked), Fewest: 1, Plan: planTogether, Run: runTogether,
	Duration: target.Duration{Low: 10 * time.Millisecond, Mid: 100 * time.Millisecond, High: time.Second, Source: "estimate: it compares what the nodes have computed, and asks none"},
	Report:   target.Section{Title: "Checksums compared", Read: readTogether},
	Docs:     target.Docs{Says: "what GPUs compute, against those of a role that are alike", Page: "checksums.md"}}

func readTogether(f fact.Fact, _ string) (result.Report, error) {
	r, err := RoleFact.Get(f)
	return r.Report(), err
}

func planTogether(r target.Request) plan.Step {
	title := fmt.Sprintf("compare what the GPUs of %d nodes compute", len(r.Group.Nodes))
	return target.ComparisonStep(r, title, RoleFact.Of(result.OfGroup(r.Name)))
}

// runTogether compares a role, and blames what computes something else among the nodes that
// the step is about. It asks no node: those in service are compared by what they computed
// before they were accepted.
func runTogether(ctx context.Context, j *target.Job) error {
	run, g := j.Run, *j.Group
	left := target.FrozenMembers(j.Inv, run)
	about, _ := target.InFocus(j.Step, left)
	mine, still := result.SetOf(target.NodeNames(about)), result.SetOf(target.NodeNames(left))
	r := RoleReport{At: run.Clock().Now().UTC(), Role: g.Set}
	var nodes []Node
	for _, n := range target.Compared(run, g, still) {
		if s, ok := target.ReadFact(run, Fact, subject.OfNode(n.Name)); ok {
			nodes, r.Members = append(nodes, Node{n.Name, s.Names, s.Record}), append(r.Members, n.Name)
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
	for _, text := range r.Notes {
		run.Emit(event.Event{Type: event.Note, Text: text})
	}
	return target.LearnFact(ctx, run, RoleFact, target.ReportOf(j.Step, fact.Name[result.Report](RoleFact), g.Set), r)
}
