package validate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// AcceptID returns the step that accepts a node.
func AcceptID(node string) plan.StepID { return StepID(node, "accept") }

// planAccept accepts a node that its group's tests say nothing against. A test that
// could not be judged accepts nobody: its own reason is the one that the operator sees.
func planAccept(r Request) plan.Step {
	n := r.Node
	st := plan.Step{ID: r.ID, Stage: StageName, Action: plan.Create, Subject: subject.OfNode(n.Name), Title: "accept",
		Needs: r.After(ready(n), n), Yields: []fact.Key{AcceptedFact.Of(subject.OfNode(n.Name))}, Decl: stage.Source(n.Decl), Version: 1, Accepts: true,
		Deadline: plan.Budget{Limit: time.Minute, Expected: time.Second}}
	if r.Group == nil {
		return st
	}
	st.Inputs = r.Group.accepts
	for _, t := range r.Tests {
		st.Needs, st.Reads = append(st.Needs, t.Need), append(st.Reads, t.Fact.Of(OfGroup(r.Group.set)))
	}
	return st
}

// runAccept holds a node against the reports of its group: it took part, it is not
// suspected, and every result that concerns it passed.
func runAccept(ctx context.Context, j *Job) error {
	n, run := j.Node, j.Run
	a := Acceptance{At: run.Clock().Now().UTC(), Checks: []string{}}
	digest := sha256.New()
	for _, t := range j.Tests {
		id, key := grounds(j, t.Need.Step, t.Fact, t.Fact.Of(OfGroup(j.Group.set)))
		a.Checks, a.Reports = append(a.Checks, string(id)), append(a.Reports, key)
		found, err := j.Judged.of(run, t.Fact, key)
		if err != nil {
			return err
		}
		digest.Write(found.digest[:]) // a hash never fails
		if err := found.passed(n.Name, t.Fact); err != nil {
			return err
		}
	}
	if err := chassisAgain(ctx, j); err != nil {
		return err
	}
	a.Results = "sha256:" + hex.EncodeToString(digest.Sum(nil))
	return learn(ctx, run, AcceptedFact, subject.OfNode(n.Name), a)
}

// grounds returns the test that a node is accepted on, and where its report is:
// what this plan has it tested by, or else what it was accepted on before, unless a
// test of its whole group was later: that of a run which was killed before its end.
func grounds(j *Job, test plan.StepID, name fact.Name[Report], whole fact.Key) (plan.StepID, fact.Key) {
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
	before, _ := read(j.Run, AcceptedFact, subject.OfNode(j.Node.Name))
	for _, k := range before.Reports {
		if k.Name == whole.Name && !later(j, name, whole, k) {
			return test, k
		}
	}
	return test, whole
}

// later reports whether a node was in the test of one report, and that later than
// the other was written.
func later(j *Job, name fact.Name[Report], one, other fact.Key) bool {
	a, err := j.Judged.of(j.Run, name, one)
	if err != nil || !a.members[j.Node.Name] {
		return false
	}
	b, err := j.Judged.of(j.Run, name, other)
	return err == nil && a.at.After(b.at)
}
