package validate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/fact"
	"github.com/ironrail/ironrail/provision/stage"
	"github.com/ironrail/ironrail/provision/subject"
)

// accept holds a node against the reports of its group: it took part, it is not
// suspected, and every result that concerns it passed.
func accept(ctx context.Context, run stage.Run, n *inventory.Node, g *group) error {
	a := Acceptance{At: run.Clock().Now().UTC(), Checks: []string{}}
	digest := sha256.New()
	if g != nil && g.pairs() {
		a.Checks = append(a.Checks, string(PairID(g.set)))
		if err := passed(run, n.Name, PairReport, g.set, digest.Write); err != nil {
			return err
		}
	}
	if g != nil && g.reduces() {
		a.Checks = append(a.Checks, string(AllReduceID(g.set)))
		if err := passed(run, n.Name, AllReduceReport, g.set, digest.Write); err != nil {
			return err
		}
	}
	a.Results = "sha256:" + hex.EncodeToString(digest.Sum(nil))
	return learn(ctx, run, AcceptedFact, subject.OfNode(n.Name), a)
}

// passed returns why a report does not let a node through.
func passed(run stage.Run, node string, name fact.Name[Report], set string, sum func([]byte) (int, error)) error {
	rep, ok := read(run, name, OfGroup(set))
	if !ok {
		return errkind.New(errkind.Mismatch, "%s of %s has no result", name, set).Do("Apply again: the test is run first.")
	}
	b, err := json.Marshal(rep)
	if err != nil {
		return err
	}
	if _, err := sum(b); err != nil {
		return err
	}
	if !slices.Contains(rep.Members, node) {
		return refuse(node, "it was not among the nodes that were tested (%s)", name)
	}
	if slices.Contains(rep.Suspects, node) {
		return refuse(node, "it is suspected in %s", name)
	}
	if len(rep.Members) == 1 && len(rep.Results) == 0 {
		return nil // the last one of its group, within the quorum; the report says so
	}
	judged := false
	for _, r := range rep.Results {
		if !slices.Contains(r.Nodes, node) || othersFault(r, node, rep.Suspects) {
			continue
		}
		if r.Verdict != Pass {
			return refuse(node, "%s of %s is %s: %s", r.Check, describeNodes(r), r.Verdict, r.Why)
		}
		judged = true
	}
	if !judged {
		return refuse(node, "no result of %s is about it alone: all of its partners are suspected", name)
	}
	return nil
}

// othersFault reports whether a bad result is explained by another node that is
// a suspect already.
func othersFault(r Result, node string, suspects []string) bool {
	return r.Verdict != Pass && slices.ContainsFunc(r.Nodes, func(n string) bool { return n != node && slices.Contains(suspects, n) })
}

func describeNodes(r Result) string {
	text := fmt.Sprint(r.Nodes)
	if r.Part != "" {
		text += " " + r.Part
	}
	return text
}

func refuse(node, format string, args ...any) error {
	return errkind.New(errkind.Refused, "%s is not accepted: "+format, append([]any{node}, args...)...).
		Do("Repair what the finding of the test names, then apply again.")
}
