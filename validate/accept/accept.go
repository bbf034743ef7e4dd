// SPDX-License-Identifier: Apache-2.0

// Package accept is the check that accepts a node, by what the others report of it.
package accept

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/bimodal"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/host"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/speed"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/throughput"
	"github.com/ironrail/ironrail/validate/uniform"
)

// Check accepts each node that no other check speaks against.
var Check = target.Check{Name: "accept", Scope: target.EachNode, For: target.Any, Plan: planAccept, Run: runAccept,
	Duration: target.Duration{Low: time.Second, Mid: 5 * time.Second, High: 30 * time.Second, Source: "estimate: the health checks once more; 20 to 500 ms without GPUs " + target.InLab},
	Docs:     target.Docs{Says: "what all of the above say of a node", Page: "guide.md"}}

// ID returns the step that accepts a node.
func ID(node string) plan.StepID { return target.StepID(node, "accept") }

// planAccept accepts a node that its group's tests say nothing against. A test that
// could not be judged accepts nobody: its own reason is the one that the operator sees.
func planAccept(r target.Request) plan.Step {
	n := r.Node
	st := plan.Step{ID: r.ID, Stage: target.StageName, Action: plan.Create, Subject: subject.OfNode(n.Name), Title: "accept",
		Needs: r.After(target.ReadyNeeds(n), n), Yields: []fact.Key{result.AcceptedFact.Of(subject.OfNode(n.Name))}, Decl: stage.Source(n.Decl), Version: 1, Accepts: true,
		Deadline: plan.Budget{Limit: 15 * time.Minute, Expected: 10 * time.Second}}
	if r.Group == nil {
		return st
	}
	st.Inputs = r.Group.Accepts
	for _, t := range r.Tests {
		st.Needs, st.Reads = append(st.Needs, t.Need), append(st.Reads, t.Fact.Of(result.OfGroup(r.Group.Set)))
	}
	return st
}

// runAccept holds a node against the reports of its group: it took part, it is not
// suspected, and every result that concerns it passed.
func runAccept(ctx context.Context, j *target.Job) error {
	n, run := j.Node, j.Run
	a := result.Acceptance{At: run.Clock().Now().UTC(), Checks: []string{}}
	if rec, ok := target.ReadFact(run, uniform.VersionsFact, subject.OfNode(n.Name)); ok && len(rec.Unlike) > 0 {
		if x := rec.Unlike[0]; x.Of != "" {
			return result.RefuseNode(n.Name, "%s (%s)", x.Cause, x.Of)
		}
		return result.RefuseNode(n.Name, "it is not what hardware.%s says: %s", n.Hardware.Name, rec.Unlike[0].Cause)
	}
	if rec, _ := target.ReadFact(run, throughput.NodeFact, subject.OfNode(n.Name)); rec.Cause != "" {
		return result.RefuseNode(n.Name, "%s", rec.Cause)
	}
	if err := holdUndecided(j, &a); err != nil {
		return err
	}
	digest := sha256.New()
	for _, t := range j.Tests {
		id, key := groundsOf(j, t.Need.Step, t.Fact, t.Fact.Of(result.OfGroup(j.Group.Set)))
		a.Checks, a.Reports = append(a.Checks, string(id)), append(a.Reports, key)
		found, err := j.Judged.Of(run, t.Fact, key)
		if err != nil {
			return err
		}
		digest.Write(found.Digest[:]) // a hash never fails
		if err := found.Passed(n.Name, t.Fact); err != nil {
			return err
		}
		if found.Provisional != "" {
			a.Provisional = append(a.Provisional, string(id)+": "+found.Provisional)
		}
	}
	if err := lookAgain(ctx, j); err != nil {
		return err
	}
	a.Results = "sha256:" + hex.EncodeToString(digest.Sum(nil))
	return target.LearnFact(ctx, run, result.AcceptedFact, subject.OfNode(n.Name), a)
}

// holdUndecided holds a node against what a comparison left open: where its role is in two groups, neither
// of which is a majority, it is accepted provisionally if the site allows that, and else not.
func holdUndecided(j *target.Job, a *result.Acceptance) error {
	n, run := j.Node, j.Run
	speeds, _ := target.ReadFact(run, speed.UndecidedFact, subject.OfNode(n.Name))
	network, _ := target.ReadFact(run, throughput.NodeFact, subject.OfNode(n.Name))
	for _, why := range []string{speeds.Cause, network.Undecided} {
		switch {
		case why == "":
		case bimodal.IsProvisional(n):
			a.Provisional = append(a.Provisional, "provisional: "+why)
		default:
			return result.RefuseNode(n.Name, "%s", why)
		}
	}
	return nil
}

// lookAgain looks at all of the node once more, whatever the first look finds: its parts, the cables of
// its fabrics, and its chassis. What is found of the node comes before what could not be read.
func lookAgain(ctx context.Context, j *target.Job) error {
	var refused, blocked error
	for _, look := range []func(context.Context, *target.Job) error{gate.LastLook, lookAtFabrics, host.ChassisAgain} {
		err := look(ctx, j)
		if err != nil && errkind.Of(err) != errkind.Refused || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
		if _, is := errors.AsType[*stage.BlockedError](err); is {
			blocked = cmp.Or(blocked, err)
			continue
		}
		refused = cmp.Or(refused, err)
	}
	return cmp.Or(refused, blocked)
}

// lookAtFabrics compares the cables of the node's fabrics, and what their switches counted, once
// more. What is about no node is a finding, and keeps none out; what could be read before and
// cannot be read now keeps out those that it concerns, and blames none of them.
func lookAtFabrics(ctx context.Context, j *target.Job) error {
	list, blocked := j.LastSweep(ctx, j.Run, j.Node)
	var own *stage.Finding
	for _, f := range list {
		if err := j.Run.Blame(ctx, f); err != nil {
			return err
		}
		if slices.ContainsFunc(f.Suspects, func(s stage.Suspect) bool { return s.Subject == subject.OfNode(j.Node.Name) }) {
			own = &f
		}
	}
	if err := ctx.Err(); err != nil || own == nil {
		return cmp.Or(err, blocked)
	}
	return result.RefuseNode(j.Node.Name, "%s", own.Cause)
}

// groundsOf returns the test that a node is accepted on, and where its report is:
// what this plan has it tested by, or else what it was accepted on before, unless a
// test of its whole group was later: that of a run which was killed before its end.
func groundsOf(j *target.Job, test plan.StepID, name fact.Name[result.Report], whole fact.Key) (plan.StepID, fact.Key) {
	for _, need := range j.Step.Needs {
		if need.Step.Base() != test {
			continue
		}
		for _, k := range j.Step.Reads {
			if k.Name == whole.Name {
				return need.Step, k
			}
		}
	}
	before, _ := target.ReadFact(j.Run, result.AcceptedFact, subject.OfNode(j.Node.Name))
	for _, k := range before.Reports {
		if k.Name == whole.Name && !isLater(j, name, whole, k) {
			return test, k
		}
	}
	return test, whole
}

// isLater reports whether a node was in the test of one report, and that later than
// the other was written.
func isLater(j *target.Job, name fact.Name[result.Report], one, other fact.Key) bool {
	a, err := j.Judged.Of(j.Run, name, one)
	if err != nil || !a.Members[j.Node.Name] {
		return false
	}
	b, err := j.Judged.Of(j.Run, name, other)
	return err == nil && a.At.After(b.At)
}
