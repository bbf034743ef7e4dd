package validate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// accept holds a node against the reports of its group: it took part, it is not
// suspected, and every result that concerns it passed.
func (s *Stage) accept(ctx context.Context, run stage.Run, st plan.Step, n *inventory.Node, g *group) error {
	a := Acceptance{At: run.Clock().Now().UTC(), Checks: []string{}}
	digest := sha256.New()
	pass := func(test plan.StepID, name fact.Name[Report]) error {
		id, key := s.grounds(run, st, n, test, name, name.Of(OfGroup(g.set)))
		a.Checks, a.Reports = append(a.Checks, string(id)), append(a.Reports, key)
		j, err := s.judged.of(run, name, key)
		if err != nil {
			return err
		}
		digest.Write(j.digest[:]) // a hash never fails
		return j.passed(n.Name, name)
	}
	if g != nil && g.pairs() {
		if err := pass(PairID(g.set), PairReport); err != nil {
			return err
		}
	}
	if g != nil && g.reduces() {
		if err := pass(AllReduceID(g.set), AllReduceReport); err != nil {
			return err
		}
	}
	if err := s.chassisAgain(ctx, run, n); err != nil {
		return err
	}
	a.Results = "sha256:" + hex.EncodeToString(digest.Sum(nil))
	return learn(ctx, run, AcceptedFact, subject.OfNode(n.Name), a)
}

// grounds returns the test that a node is accepted on, and where its report is:
// what this plan has it tested by, or else what it was accepted on before, unless a
// test of its whole group was later: that of a run which was killed before its end.
func (s *Stage) grounds(run stage.Run, st plan.Step, n *inventory.Node, test plan.StepID, name fact.Name[Report], whole fact.Key) (plan.StepID, fact.Key) {
	for _, need := range st.Needs {
		if need.Step.Base() != test {
			continue
		}
		for _, k := range st.Reads {
			if k.Name == whole.Name {
				return need.Step, k
			}
		}
	}
	before, _ := read(run, AcceptedFact, subject.OfNode(n.Name))
	for _, k := range before.Reports {
		if k.Name == whole.Name && !s.later(run, n, name, whole, k) {
			return test, k
		}
	}
	return test, whole
}

// later reports whether a node was in the test of one report, and that later than
// the other was written.
func (s *Stage) later(run stage.Run, n *inventory.Node, name fact.Name[Report], one, other fact.Key) bool {
	a, err := s.judged.of(run, name, one)
	if err != nil || !a.members[n.Name] {
		return false
	}
	b, err := s.judged.of(run, name, other)
	return err == nil && a.at.After(b.at)
}

func describeNodes(r Result) string {
	text := "[" + strings.Join(r.Nodes, " ") + "]"
	if len(r.Nodes) > mostNamed {
		text = "[" + some(r.Nodes) + "]"
	}
	if r.Part != "" {
		text += " " + r.Part
	}
	return text
}

// mostNamed is how many nodes a sentence names.
const mostNamed = 8

// some names nodes for a sentence.
func some(nodes []string) string { return subject.Some(nodes, mostNamed) }

func refuse(node, format string, args ...any) error {
	return errkind.New(errkind.Refused, "%s is not accepted: "+format, append([]any{node}, args...)...).
		Do("Repair what the finding of the test names, then apply again.")
}
