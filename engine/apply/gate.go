// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// checkGate finds what is wrong with a gate, or with a step that should not have one.
func checkGate(s *plan.Step) error {
	switch {
	case (s.Stage == plan.GateStage) != (s.Gate != nil):
		return fmt.Errorf("plan: step %s: only a step of stage gate has a gate, and it must have one; this one is of stage %q", s.ID, s.Stage)
	case s.Gate == nil:
		return nil
	case s.Subject.Kind == subject.Node || s.May != 0 || s.Group != nil:
		return fmt.Errorf("plan: gate %s has a node, a group or effects; a gate only judges a rollout", s.ID)
	}
	for _, n := range s.Needs {
		if n.On != plan.Settled && slices.Contains(s.Gate.Ends, n.Step) {
			return fmt.Errorf("plan: gate %s needs the success of %s, which it is to judge", s.ID, n.Step)
		}
	}
	return nil
}

// unhealthyNode is a node that counts against the limit of a gate, and why.
type unhealthyNode struct {
	node, why string
	evidence  []string
}

// judgeGate is the work of a gate: it fails when more nodes are unhealthy than the rollout
// allows. Its finding blames the rollout and no node: each node has its own.
func (e *Executor) judgeGate(ctx context.Context, r *stepRun, t *task) error {
	g := t.step.Gate
	bad := e.unhealthyNodes(g)
	if len(bad) <= g.Most {
		return nil
	}
	names := make([]string, len(bad))
	for i, b := range bad {
		names[i] = b.node
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: t.step.Subject}},
		Cause: fmt.Sprintf("the rollout to %s stopped after %s: %d of %d nodes are unhealthy, at most %d are allowed (%s); %s: %s",
			g.Of, g.Wave, len(bad), len(g.Nodes), g.Most, listSome(names), bad[0].node, bad[0].why),
		Evidence: bad[0].evidence,
		Action: fmt.Sprintf("Find the fault of %s (`ironrail why %s`) and correct it, or revert the change; then plan again. The nodes of later waves were not changed.",
			bad[0].node, bad[0].node)}
	if err := r.Blame(ctx, f); err != nil {
		return err
	}
	return errkind.New(errkind.Refused, "%s", f.Cause).Do(f.Action)
}

// unhealthyNodes lists the nodes of a gate that are in quarantine, on hold, without a good
// end of their steps or not accepted, in the order of the gate.
func (e *Executor) unhealthyNodes(g *plan.Gate) (bad []unhealthyNode) {
	ends := e.gateEndsByNode(g)
	for _, n := range g.Nodes {
		m := e.ledger.condition(n)
		end := ends[n]
		switch {
		case m.finding != nil:
			bad = append(bad, unhealthyNode{n, m.finding.Cause, m.finding.Evidence})
		case m.hold != nil:
			bad = append(bad, unhealthyNode{node: n, why: m.cause().Text})
		case end.why != "":
			bad = append(bad, unhealthyNode{node: n, why: end.why})
		case end.accepts && !e.ledger.accepted(n):
			bad = append(bad, unhealthyNode{node: n, why: "not accepted"})
		}
	}
	return bad
}

// gateEnd is what the steps that a gate judges say of one node.
type gateEnd struct {
	why     string // "" when all ended well
	accepts bool
}

// gateEndsByNode looks at the steps that a gate judges. One that is not in this plan
// was done before.
func (e *Executor) gateEndsByNode(g *plan.Gate) map[string]gateEnd {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[string]gateEnd{}
	for _, id := range g.Ends {
		t := e.graph.byID[id]
		if t == nil {
			continue
		}
		of := nodesOf(t.step)
		if len(of) == 0 {
			of = g.Nodes // a step of the site, such as a hand-over
		}
		for _, n := range of {
			end := out[n]
			end.accepts = end.accepts || t.step.Accepts
			if t.state != done && end.why == "" {
				end.why = fmt.Sprintf("%s is %s: %s", id, t.state, t.cause.Text)
			}
			out[n] = end
		}
	}
	return out
}

// findGateObstacle skips a gate whose rollout an earlier gate stopped before it came to
// the nodes of this one: there is nothing to judge. Called with e.mu held.
func (e *Executor) findGateObstacle(t *task) *obstacle {
	for _, id := range t.step.Gate.Ends {
		if end := e.graph.byID[id]; end != nil && end.cause.Kind == state.ByRollout {
			return &obstacle{cause: end.cause, root: end.root}
		}
	}
	return nil
}
