package state

import (
	"context"
	"fmt"

	"github.com/ironrail/ironrail/provision/fact"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/subject"
)

// Prior reads all that planning compares with. A step that found something wrong
// has no good end, whatever it returned: it is to be repeated until it finds
// nothing. Neither has one that an unfinished plan was to do and did not come to:
// the reason why it was planned may show nowhere else.
func Prior(ctx context.Context, r Reader) (plan.Prior, error) {
	p := plan.Prior{Lineage: r.Info().Lineage, Steps: map[plan.StepID]plan.Done{}, Nodes: map[string]plan.NodeState{}}
	err := each(ctx, r, stepKind, func(s Step, _ uint64) {
		if s.State == StepIsDone && len(s.Blamed) == 0 {
			p.Steps[s.ID] = plan.Done{Version: s.Version, Inputs: s.Inputs, At: s.Ended}
		}
	})
	if err != nil {
		return p, err
	}
	if err := leftOver(ctx, r, p.Steps); err != nil {
		return p, err
	}
	if err = each(ctx, r, string(subject.Node), func(n Node, v uint64) { p.Nodes[n.Name] = nodeState(n, v) }); err != nil {
		return p, err
	}
	p.Facts, err = Facts(ctx, r)
	return p, err
}

// leftOver takes those steps out of done that an unfinished plan did not come to.
func leftOver(ctx context.Context, r Reader, done map[plan.StepID]plan.Done) error {
	p, _, err := Unfinished(ctx, r)
	if err != nil || p == nil {
		return err
	}
	for _, s := range p.Steps {
		was, version, err := Get[Step](ctx, r, StepKey(s.ID))
		if err != nil {
			return err
		}
		if version != Absent && was.Plan != p.ID {
			delete(done, s.ID)
		}
	}
	return nil
}

// nodeState is a node as planning sees it.
func nodeState(n Node, version uint64) plan.NodeState {
	s := plan.NodeState{Version: version, Accepted: n.Accepted, Adopted: n.Adopted}
	if n.Hold != nil {
		s.Held = fmt.Sprintf("by %s", n.Hold.By)
		if n.Hold.Reason != "" {
			s.Held += ": " + n.Hold.Reason
		}
	}
	if n.Quarantine != nil {
		s.Quarantined = n.Quarantine.Finding.Cause
	}
	return s
}

// Facts reads everything that was learned.
func Facts(ctx context.Context, r Reader) (map[fact.Key]fact.Fact, error) {
	out := map[fact.Key]fact.Fact{}
	err := each(ctx, r, factKind, func(f fact.Fact, _ uint64) { out[f.Key] = f })
	return out, err
}

// Nodes reads every node that the state knows, by name.
func Nodes(ctx context.Context, r Reader) (map[string]Node, error) {
	out := map[string]Node{}
	err := each(ctx, r, string(subject.Node), func(n Node, _ uint64) { out[n.Name] = n })
	return out, err
}

// Steps reads the last state of every step that ever ran.
func Steps(ctx context.Context, r Reader) (map[plan.StepID]Step, error) {
	out := map[plan.StepID]Step{}
	err := each(ctx, r, stepKind, func(s Step, _ uint64) { out[s.ID] = s })
	return out, err
}

// Effects reads the last state of every effect, by its key.
func Effects(ctx context.Context, r Reader) (map[string]Effect, error) {
	out := map[string]Effect{}
	err := each(ctx, r, effectKind, func(e Effect, _ uint64) { out[e.Key] = e })
	return out, err
}

// Unfinished returns the plan and the run that died or was stopped before its
// end, so that apply can go on with it. The plan is nil when there is none.
func Unfinished(ctx context.Context, r Reader) (*plan.Plan, Run, error) {
	run, version, err := Get[Run](ctx, r, LastRun)
	if err != nil || version == Absent || !run.Resumable() {
		return nil, run, err
	}
	p, version, err := Get[plan.Plan](ctx, r, PlanKey(run.Plan))
	if err == nil && version == Absent {
		err = fmt.Errorf("state: plan %s of run %s is not there", run.Plan, run.ID)
	}
	return &p, run, err
}

// The outcomes of a run.
const (
	RunDone        = "done"        // every step ended well
	RunSomeFailed  = "failed"      // all was tried; something failed, is held or was not judged
	RunInterrupted = "interrupted" // stopped at once
	RunDrained     = "drained"     // nothing new was started
)

// Resumable reports whether work of the run's plan is left over.
func (r Run) Resumable() bool {
	return r.ID != "" && r.Outcome != RunDone && r.Outcome != RunSomeFailed
}
