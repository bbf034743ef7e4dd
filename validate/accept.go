package validate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/fact"
	"github.com/ironrail/ironrail/provision/stage"
	"github.com/ironrail/ironrail/provision/subject"
)

// accept holds a node against the reports of its group: it took part, it is not
// suspected, and every result that concerns it passed.
func (s *Stage) accept(ctx context.Context, run stage.Run, n *inventory.Node, g *group) error {
	a := Acceptance{At: run.Clock().Now().UTC(), Checks: []string{}}
	digest := sha256.New()
	pass := func(id string, name fact.Name[Report]) error {
		a.Checks = append(a.Checks, id)
		j, err := s.judged.of(run, name, g.set)
		if err != nil {
			return err
		}
		digest.Write(j.digest[:]) // a hash never fails
		return j.passed(n.Name, name)
	}
	if g != nil && g.pairs() {
		if err := pass(string(PairID(g.set)), PairReport); err != nil {
			return err
		}
	}
	if g != nil && g.reduces() {
		if err := pass(string(AllReduceID(g.set)), AllReduceReport); err != nil {
			return err
		}
	}
	a.Results = "sha256:" + hex.EncodeToString(digest.Sum(nil))
	return learn(ctx, run, AcceptedFact, subject.OfNode(n.Name), a)
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

// some names nodes; of many the first ones, and how many more there are.
func some(nodes []string) string {
	if len(nodes) <= mostNamed {
		return strings.Join(nodes, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(nodes[:mostNamed], ", "), len(nodes)-mostNamed)
}

func refuse(node, format string, args ...any) error {
	return errkind.New(errkind.Refused, "%s is not accepted: "+format, append([]any{node}, args...)...).
		Do("Repair what the finding of the test names, then apply again.")
}
