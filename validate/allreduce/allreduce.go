// SPDX-License-Identifier: Apache-2.0

// Package allreduce is the check of sums over all nodes of a group: on their GPUs
// (validate/collective), or in host memory where they have none.
package allreduce

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/collective"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/mpi"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// leaveOutUpTo bounds the search for a bad node by leaving one out at a time.
const leaveOutUpTo = 8

// Check sums up over nodes.
var Check = target.Check{Name: "all_reduce", Scope: target.EachGroup, For: isAsked, Plan: planAllReduce, Run: runAllReduce,
	Asks: target.Asks{Limits: bandwidths(inventory.Operations), Block: findProblems},
	Duration: target.Duration{Low: 2500 * time.Millisecond, Mid: 5 * time.Second, High: 8 * time.Second, Per: target.Unit{Name: "level", In: treeLevels}, Words: "collective test",
		Source: "estimate; 5 to 15 s on two nodes " + target.InLab},
	Report: target.Section{Title: "All-reduce", Read: target.AsStored},
	Docs:   target.Docs{Says: "sums over nodes, on their GPUs or in host memory", Page: "collectives.md"}}

// treeLevels returns how many levels a tree over so many members has.
func treeLevels(members int) float64 { return 1 + math.Log2(float64(max(members, 1))) }

// isAsked reports whether a group is tested so: it takes two nodes at least.
func isAsked(t target.Target) bool {
	return t.Group.Validation.AllReduce != nil && len(t.Group.Nodes) >= 2
}

// planAllReduce sums up over all nodes of a group, on their GPUs where they have some.
func planAllReduce(r target.Request) plan.Step {
	g := r.Group
	c := g.Validation.AllReduce
	title := fmt.Sprintf("all-reduce over %d nodes, every element checked", len(g.Nodes))
	if onGPUs(*g) {
		title = fmt.Sprintf("all-reduce of the GPUs of %d nodes (%s), every element checked", len(g.Nodes), strings.Join(c.Scope, ", "))
	}
	st := r.GroupStep(title, c.Decl)
	for _, t := range r.Tests {
		st.Needs = append(st.Needs, t.Need)
	}
	var sizes []string
	for _, s := range c.Sizes {
		sizes = append(sizes, s.String())
	}
	st.Inputs = append(g.Inputs(bandwidths(c.Operations)...), plan.Input{Name: "all_reduce", Value: "mpi " + strings.Join(sizes, " "), Decl: stage.Source(c.Decl)})
	st.Yields = []fact.Key{result.AllReduceReport.Of(result.OfGroup(g.Set))}
	st.Deadline = plan.Budget{Expected: 20 * time.Second, Limit: 10*grouprun.LimitOf(len(g.Nodes)) + 10*time.Minute}
	if onGPUs(*g) {
		st.Inputs[len(st.Inputs)-1].Value = gpuInput(*g)
		st.Deadline = grouprun.DeadlineOf(*g)
		st.Examines = grouprun.ExaminesRails(*g)
	}
	return st
}

// runAllReduce runs the test.
func runAllReduce(ctx context.Context, j *target.Job) error {
	members, _ := target.SplitOut(j.Inv, j.Run)
	return j.Together(ctx, result.AllReduceReport, members, func() error {
		if onGPUs(*j.Group) {
			return collective.Run(ctx, j)
		}
		return newAllReduce(j).run(ctx)
	})
}

// allReduce is one run of the all-reduce test.
type allReduce struct {
	nodes onnode.Nodes
	g     target.Group
	st    plan.Step
	rec   stage.Run
	list  []*inventory.Node
}

func newAllReduce(j *target.Job) *allReduce {
	return &allReduce{nodes: j.Nodes, g: *j.Group, st: j.Step, rec: j.Run, list: target.FrozenMembers(j.Inv, j.Run)}
}

// trial is one job over some of the members.
type trial struct {
	nodes   []*inventory.Node
	without string // the member that was left out; empty for the whole run
	out     mpi.Output
	text    []byte
	named   string // the one node that a failed run names
	err     error
	why     string // it is bad; "" when it is good
}

func (a *allReduce) run(ctx context.Context) error {
	job, err := grouprun.JobOver(a.rec, a.g.Validation.AllReduce, a.list)
	if err != nil {
		return err
	}
	var full trial
	var rest []trial
	err = a.rec.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s/run-%d", a.st.ID, a.rec.Clock().Now().UnixNano()),
		Kind: plan.Load, Repeatable: true,
		Does: fmt.Sprintf("load %d nodes and their rails with an all-reduce", len(a.list)),
		Do: func(ctx context.Context) error {
			full = a.try(ctx, job, a.list)
			rest = nil
			if errors.Is(full.err, onnode.ErrCut) {
				return a.notJudged(full)
			}
			if full.why != "" && ctx.Err() == nil {
				rest = a.leaveOneOut(ctx, full)
			}
			return context.Cause(ctx)
		},
	})
	if err != nil {
		return err
	}
	return a.recordReport(ctx, full, rest)
}

// notJudged is a run whose output could not be read whole. It speaks against no
// node: the test has no result.
func (a *allReduce) notJudged(t trial) error {
	ref, err := a.rec.Attach("mpirun.txt", t.text)
	if err != nil {
		return err
	}
	return fmt.Errorf("the all-reduce over %s: %w (%s)", result.NameSome(target.NodeNames(t.nodes)), t.err, ref)
}

// try runs one job and says whether it is good.
func (a *allReduce) try(ctx context.Context, j mpi.Job, nodes []*inventory.Node) trial {
	t := trial{nodes: nodes}
	a.rec.Emit(event.Event{Type: event.StepProgress, Text: "all-reduce over " + result.NameSome(target.NodeNames(nodes))})
	out, printed, err := j.Run(ctx, a.nodes, a.rec.Clock().Now())
	t.out, t.text, t.named, t.err = out, printed.Text, printed.Named, err
	floor, limit := a.g.Floor(result.AllReduceBandwidth)
	if _, ok := t.out.Largest(); t.err != nil && !ok {
		t.why = t.err.Error()
		return t
	}
	if t.err != nil { // a good run that could not be cleaned up after
		a.rec.Emit(event.Event{Type: event.Note, Text: t.err.Error()})
	}
	t.why = t.out.Problem(floor, limit)
	return t
}

// leaveOneOut runs the job without each of the members in turn, or only without
// the one that the run names: so that a bad node is found, and the others are
// proven without it. With two members there is nobody left to compare with, and
// with many it takes too long.
func (a *allReduce) leaveOneOut(ctx context.Context, full trial) []trial {
	named, ok := a.named(full)
	if len(a.list) < 3 || !ok && len(a.list) > leaveOutUpTo {
		return nil
	}
	var list []trial
	for i, n := range a.list {
		if ok && n.Name != named {
			continue
		}
		rest := slices.Delete(slices.Clone(a.list), i, i+1)
		j, err := grouprun.JobOver(a.rec, a.g.Validation.AllReduce, rest)
		if err != nil || ctx.Err() != nil {
			return list
		}
		t := a.try(ctx, j, rest)
		t.without = n.Name
		list = append(list, t)
	}
	return list
}

// named returns the one node that the run itself speaks against: the one that
// Open MPI or SSH names, or the only one whose results were wrong.
func (a *allReduce) named(t trial) (string, bool) {
	if row, ok := t.out.Largest(); ok && t.out.Wrong() > 0 {
		bad := -1
		for i, w := range row.WrongByRank {
			if w > 0 && bad >= 0 {
				return "", false
			}
			if w > 0 {
				bad = i
			}
		}
		if bad >= 0 && len(row.WrongByRank) > 2 {
			return t.nodes[bad].Name, true
		}
		return "", false
	}
	return t.named, t.named != ""
}

// findSuspect is the one member without which the run is good.
func (a *allReduce) findSuspect(full trial, rest []trial) (string, string) {
	if n, ok := a.named(full); ok {
		return n, "the run itself names " + n
	}
	var good []string
	for _, t := range rest {
		if t.why == "" {
			good = append(good, t.without)
		}
	}
	switch {
	case len(good) == 1:
		return good[0], "the all-reduce is good without " + good[0] + " and bad without any other"
	case len(rest) == 0:
		return "", "with these members the run cannot be narrowed down"
	case len(good) == 0:
		return "", "the all-reduce stays bad whichever node is left out"
	}
	return "", "the all-reduce is good without any one of " + strings.Join(good, ", ")
}

// recordReport records the report and, for a bad run, the finding.
func (a *allReduce) recordReport(ctx context.Context, full trial, rest []trial) error {
	var all []byte
	for _, t := range append([]trial{full}, rest...) {
		all = fmt.Appendf(all, "== %s\n%s\n", strings.Join(target.NodeNames(t.nodes), ", "), t.text)
	}
	ref, err := a.rec.Attach("mpirun.txt", all)
	if err != nil {
		return err
	}
	rep := result.Report{At: a.rec.Clock().Now().UTC(), Members: target.NodeNames(a.list), Results: a.results(full, ref),
		Proves: "All nodes compute one sum together, right in every element, in host memory over " + mpi.Transport + ". It is no figure of RDMA and uses no GPU."}
	if full.why != "" {
		node, how := a.findSuspect(full, rest)
		if node != "" {
			rep.Suspects = []string{node}
		}
		if i := slices.IndexFunc(rest, func(t trial) bool { return t.why == "" && t.without == node }); i >= 0 {
			rep.Results = append(rep.Results, a.results(rest[i], ref)...)
		}
		if err := a.reportFinding(ctx, full, node, how, ref); err != nil {
			return err
		}
	}
	return target.LearnReport(ctx, a.rec, a.st, result.AllReduceReport, a.g.Set, rep)
}

func (a *allReduce) reportFinding(ctx context.Context, full trial, node, how, ref string) error {
	f := stage.Finding{Cause: "the all-reduce over " + result.NameSome(target.NodeNames(full.nodes)) + " is bad: " + full.why, Evidence: []string{how, ref}}
	if node != "" {
		f.Suspects = []stage.Suspect{{Subject: subject.OfNode(node), Part: "all-reduce"}}
		f.Action = "Look at " + node + ": its rails, its memory and its CPU clock; the others compute well without it."
		if full.err != nil {
			f.Action = "Look at " + node + ": its rails and its SSH server, as the attached output says."
		}
	} else {
		f.Suspects = []stage.Suspect{{Subject: result.OfGroup(a.g.Set), Part: "all-reduce"}}
		f.Action = "Read the attached output. No node was taken out, and none is accepted until the all-reduce is good."
	}
	return a.rec.Blame(ctx, f)
}

// results are the bandwidth at the largest size and the count of wrong elements.
func (a *allReduce) results(t trial, ref string) []result.Result {
	_, limit := a.g.Floor(result.AllReduceBandwidth)
	base := result.Result{Nodes: target.NodeNames(t.nodes), Transport: mpi.Transport, Evidence: []string{ref}}
	bw, wrong := base, base
	bw.Check, bw.Unit, bw.Limit, bw.Verdict = result.AllReduceBandwidth, "B/s", limit, result.Pass
	wrong.Check, wrong.Unit, wrong.Limit, wrong.Verdict = result.WrongElements, "elements", "= 0", result.Pass
	row, ok := t.out.Largest()
	if !ok {
		bw.Verdict, bw.Why, wrong.Verdict, wrong.Why = result.Fail, t.why, result.NotJudged, "there is no result"
		return []result.Result{bw, wrong}
	}
	bw.Measured, wrong.Measured = row.BusBW, float64(t.out.Wrong())
	bw.Params = fmt.Sprintf("%s, %s, %d ranks, %d iterations, average of the slowest rank", t.out.MPI, unit.Bytes(row.Size), row.Ranks, row.Iterations)
	wrong.Params = fmt.Sprintf("%d sizes, %d iterations each, every element", len(t.out.Rows), row.Iterations+grouprun.Warmups)
	switch {
	case t.out.Wrong() > 0:
		wrong.Verdict, wrong.Why = result.Fail, t.why
	case t.why != "":
		bw.Verdict, bw.Why = result.Fail, t.why
	}
	return []result.Result{bw, wrong}
}
