// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// ReadPrior reads all that planning compares with: facts, of the names that there are now, one by one when they are
// asked for, while r is open. A step that found something wrong
// has no good end, whatever it returned: it is to be repeated until it finds
// nothing. Neither has one that an unfinished plan was to do and did not come to:
// the reason why it was planned may show nowhere else.
func ReadPrior(ctx context.Context, r Reader) (plan.Prior, error) {
	p := plan.Prior{Lineage: r.Info().Lineage}
	var unwell []Step // waves of a rollout without a good end
	_, left, err := lastRun(ctx, r)
	if err != nil {
		return p, err
	}
	by := map[plan.StepID]string{} // only where work is left over
	p.Steps = make(map[plan.StepID]plan.LastSuccess, countKind(r, stepKind))
	err = decodeAll(ctx, r, stepKind, newStepDecoder, func(s *Step, _ uint64) {
		if left {
			by[s.ID] = s.Plan
		}
		switch {
		case s.State == StepIsDone && len(s.Blamed) == 0:
			p.Steps[s.ID] = plan.LastSuccess{Version: s.Version, Inputs: s.Inputs, At: s.Ended}
		case s.ID.Wave() != "":
			unwell = append(unwell, *s)
		}
	})
	if err != nil {
		return p, err
	}
	for _, s := range unwell { // what they were a part of is not done either, unless it was done since
		if s.Started.After(p.Steps[s.ID.Base()].At) {
			delete(p.Steps, s.ID.Base())
		}
	}
	if err = dropUnreached(ctx, r, p.Steps, by); err != nil {
		return p, err
	}
	p.Nodes = make(map[string]plan.NodeState, countKind(r, string(subject.Node)))
	if err = decodeAll(ctx, r, string(subject.Node), newJSONDecoder, func(n *Node, v uint64) { p.Nodes[n.Name] = newNodeState(*n, v) }); err != nil {
		return p, err
	}
	p.Find, err = newFactFinder(ctx, r)
	return p, err
}

// newFactFinder looks up facts one by one, of those names that any fact has.
func newFactFinder(ctx context.Context, r Reader) (func(fact.Key) (fact.Fact, bool), error) {
	b, isFile := r.(*Bolt)
	var names map[string]bool
	if isFile {
		var err error
		if names, err = b.factNames(ctx); err != nil {
			return nil, err
		}
	}
	var found atomic.Uint32
	return func(k fact.Key) (fact.Fact, bool) {
		if isFile && !names[k.Name] {
			return fact.Fact{}, false
		}
		o, ok, err := r.Object(ctx, FactKey(k))
		if isFile && found.Add(1)%letGoAfter == 0 {
			err = errors.Join(err, b.view(ctx, func(tx *bbolt.Tx) error { b.letGo(tx); return nil }))
		}
		if err != nil || !ok {
			return fact.Fact{}, false
		}
		raw, err := WholeValue(ctx, r, o)
		if err != nil {
			return fact.Fact{}, false
		}
		f, ok := quickFact(k, raw)
		if !ok {
			f, ok = fact.Fact{}, json.Unmarshal(raw, &f) == nil
		}
		return f, ok
	}, nil
}

// letGoAfter is after how many facts the pages are let go of that they were read from.
const letGoAfter = 1 << 10

// factNames are the names that the facts of the file have, of any subject. Stages ask for
// many facts of each node that no node has, and each look into the file has its cost.
func (b *Bolt) factNames(ctx context.Context) (map[string]bool, error) {
	names := map[string]bool{}
	prefix := []byte(factKind + "/")
	err := b.view(ctx, func(tx *bbolt.Tx) error {
		c := tx.Bucket(objectBucket).Cursor()
		for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			name := k[bytes.LastIndexByte(k, '#')+1:]
			if !names[string(name)] {
				names[string(name)] = true
			}
		}
		b.letGo(tx)
		return nil
	})
	return names, err
}

// dropUnreached takes those steps out of done that an unfinished plan did not come to;
// by is the plan that did each step last.
func dropUnreached(ctx context.Context, r Reader, done map[plan.StepID]plan.LastSuccess, by map[plan.StepID]string) error {
	run, left, err := lastRun(ctx, r)
	if err != nil || !left {
		return err
	}
	ids, err := plannedSteps(ctx, r, run)
	for _, id := range ids {
		if by[id] != run.Plan {
			delete(done, id)
			delete(done, id.Base()) // of a wave that it did not come to
		}
	}
	return err
}

// newNodeState is a node as planning sees it.
func newNodeState(n Node, version uint64) plan.NodeState {
	s := plan.NodeState{Version: version, Accepted: n.Accepted, Adopted: n.Adopted}
	was := s.Known() || !n.AcceptedAt.IsZero() || !n.AdoptedAt.IsZero()
	s.Lost = was && (n.Quarantine != nil || n.Doubt != "" || !s.Known())
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

// ReadFacts reads everything that was learned.
func ReadFacts(ctx context.Context, r Reader) (map[fact.Key]fact.Fact, error) {
	out := map[fact.Key]fact.Fact{}
	err := Each(ctx, r, factKind, func(_ Key, f fact.Fact) { out[f.Key] = f })
	return out, err
}

// ReadNodes reads every node that the state knows, by name.
func ReadNodes(ctx context.Context, r Reader) (map[string]Node, error) {
	out := map[string]Node{}
	err := Each(ctx, r, string(subject.Node), func(_ Key, n Node) { out[n.Name] = n })
	return out, err
}

// ReadSteps reads the last state of every step that ever ran.
func ReadSteps(ctx context.Context, r Reader) (map[plan.StepID]Step, error) {
	out := map[plan.StepID]Step{}
	err := Each(ctx, r, stepKind, func(_ Key, s Step) { out[s.ID] = s })
	return out, err
}

// ReadEffects reads the last state of every effect, by its key.
func ReadEffects(ctx context.Context, r Reader) (map[string]Effect, error) {
	out := map[string]Effect{}
	err := Each(ctx, r, effectKind, func(_ Key, e Effect) { out[e.Key] = e })
	return out, err
}

// ReadUnfinishedPlan returns the plan and the run that died or was stopped before its
// end, so that apply can go on with it. The plan is nil when there is none.
func ReadUnfinishedPlan(ctx context.Context, r Reader) (*plan.Plan, Run, error) {
	run, left, err := lastRun(ctx, r)
	if err != nil || !left {
		return nil, run, err
	}
	p, err := ReadPlan(ctx, r, run.Plan)
	if err == nil && p == nil {
		err = fmt.Errorf("state: plan %s of run %s is not there", run.Plan, run.ID)
	}
	return p, run, err
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
