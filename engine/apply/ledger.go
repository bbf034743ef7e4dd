// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// ledger makes durable what happens in a run, and answers from memory what is durable.
// It alone writes to the store. It is safe for concurrent use.
//
// It owns the objects of the nodes as they were written last, what stands against each
// node, the facts that were read or learned, what earlier runs of this plan left (frozen
// groups, effects in doubt), and the first failure to write. It keeps these rules:
//
//   - An entry is never cut. What the journal says and the objects that follow from it
//     are written together or not at all. Several entries share an append where they fit.
//   - Two entries about one node reach the disk in the order in which they change the
//     node: its cell is locked during the write. Entries about different nodes wait for
//     the disk together.
//   - A hold or a quarantine is in force in memory before, or as soon as, it is durable;
//     a release only after. A fact is answered only once it is durable.
//   - Writing is never cancelled: what happened is recorded. After the first failure
//     nothing more is written, every record function returns that failure, and the run
//     ends.
//
// The records follow in the order of a run: here those of the run, its nodes and its
// findings, in ledgerstep.go those of a step, in ledgerfact.go facts. entry.go writes
// them, condition.go answers what stands against a node.
type ledger struct {
	store          state.Store
	fence          state.Fence
	run, plan      string // their ids
	now            func() time.Time
	onFailure      func(error)                    // called once, with the first failure to write
	frozenGroups   map[plan.StepID]state.Frozen   // of an earlier run of this plan; fixed once the run has begun
	effectsInDoubt map[plan.StepID][]state.Effect // left by earlier runs; fixed
	effectLocks    keyLocks                       // one effect of a key at a time

	mu         sync.Mutex // guards what follows; not held during a write
	cells      map[string]*cell
	conditions map[string]condition
	facts      map[fact.Key]fact.Fact // that were asked for or learned
	err        error                  // the first failure to write
}

// newLedger reads what earlier runs left of nodes and effects. It writes nothing.
func newLedger(ctx context.Context, c Config, run string) (*ledger, error) {
	nodes, err := state.ReadNodes(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	doubts, err := state.ReadEffectsInDoubt(ctx, c.Store)
	l := &ledger{store: c.Store, fence: c.Fence, run: run, plan: c.Plan.ID,
		now:          func() time.Time { return c.Clock.Now().UTC() },
		onFailure:    func(error) {},
		frozenGroups: map[plan.StepID]state.Frozen{}, effectsInDoubt: doubts,
		cells: map[string]*cell{}, conditions: map[string]condition{}, facts: map[fact.Key]fact.Fact{}}
	for name, n := range nodes {
		l.cells[name] = &cell{node: n}
		l.conditions[name] = conditionOf(n)
	}
	return l, err
}

// recordRunStart makes the start of a run durable, with its plan. A run that does not
// resume gives the nodes that it works on a new chance, see clearQuarantines.
func (l *ledger) recordRunStart(ctx context.Context, r state.Run, p *plan.Plan, resume bool) error {
	last, _, err := state.Get[state.Run](ctx, l.store, state.LastRun)
	if err != nil {
		return err
	}
	var parts, cleared []entry
	if !resume {
		if parts, err = l.forgetUnreached(ctx); err != nil {
			return err
		}
	}
	if !resume || last.Clearing {
		cleared = l.clearQuarantines(p)
	}
	r.Clearing = len(cleared) > mostCleared
	start, err := l.newRunStart(ctx, r, p, last)
	if err != nil {
		return l.setFailure(err)
	}
	parts = append(append(parts, start), cleared...)
	if r.Clearing {
		r.Clearing = false
		var n entry
		n.putObject(state.LastRun, r)
		parts = append(parts, n)
	}
	if err := l.writeParts(parts); err != nil {
		return err
	}
	if _, err := l.store.Sweep(ctx, l.fence); err != nil { // of the plan that was replaced
		return l.setFailure(err)
	}
	return nil
}

// mostCleared is how many quarantines are surely lifted in the append that starts the run. A
// run that lifts more says so in its object until all are: the run that continues with it
// lifts the rest.
const mostCleared = 16

// newRunStart is the entry that starts a run and replaces the plan of the last one.
func (l *ledger) newRunStart(ctx context.Context, r state.Run, p *plan.Plan, last state.Run) (entry, error) {
	var n entry
	n.addRecordOf(state.Record{Kind: state.RunStarted}, state.LastRun, r)
	put, err := state.PutPlan(ctx, l.store, l.fence, p)
	n.puts = append(n.puts, put)
	if last.Plan != "" && last.Plan != p.ID {
		n.deleteObject(state.PlanKey(last.Plan))
	}
	return n, err
}

// forgetUnreached drops the good ends of steps that the plan which is replaced did not
// come to, on nodes that it had begun to change. So far these ends did not count because
// that plan was unfinished; once it is replaced, nothing else says so. So they are dropped
// before it is replaced, and not after.
func (l *ledger) forgetUnreached(ctx context.Context) (parts []entry, err error) {
	left, err := state.ReadUnreachedSteps(ctx, l.store)
	for _, id := range left {
		var n entry
		n.deleteObject(state.StepKey(id))
		parts = append(parts, n)
	}
	return parts, err
}

// clearQuarantines takes those nodes of p out of quarantine whose finding came from a step
// that p repeats, in whatever wave. A node whose finding nothing repeats stays in
// quarantine. A node that p is to accept is in doubt until then.
func (l *ledger) clearQuarantines(p *plan.Plan) (parts []entry) {
	if !l.anyQuarantined() {
		return nil
	}
	repeated, accepts := map[string]bool{}, map[string]bool{}
	for i := range p.Steps {
		repeated[string(p.Steps[i].ID.Base())] = true
		if p.Steps[i].Accepts {
			accepts[p.Steps[i].Subject.Name] = true
		}
	}
	for i := range p.Steps {
		for _, name := range nodesOf(&p.Steps[i]) {
			if c := l.condition(name); c.finding == nil || !repeated[string(plan.StepID(c.finding.Step).Base())] {
				continue
			}
			l.clearFinding(name)
			var n entry
			n.addRecord(state.Record{Kind: state.Cleared, Subject: subject.OfNode(name)})
			n.changeNode(name, func(x *state.Node) {
				if accepts[name] && x.Quarantine != nil {
					x.Doubt = x.Quarantine.Finding.Cause
				}
				x.Quarantine = nil
			})
			parts = append(parts, n)
		}
	}
	return parts
}

// recordHold makes a hold or a release durable.
func (l *ledger) recordHold(node string, kind state.RecordKind, h state.Hold) error {
	var n entry
	n.addRecord(state.Record{Kind: kind, Subject: subject.OfNode(node)}.With(h))
	n.changeNode(node, func(x *state.Node) {
		x.Hold = nil
		if kind == state.Held {
			x.Hold = &h
		}
	})
	return l.write(n)
}

// recordFinding makes a finding durable and quarantines the nodes that it suspects.
func (l *ledger) recordFinding(f stage.Finding) error {
	var parts []entry // one of each subject: a finding that is half recorded is made again by its step
	for _, s := range f.Suspects {
		var n entry
		n.addRecord(state.Record{Kind: state.FindingMade, Step: f.Step, Subject: s.Subject}.With(f))
		if s.Subject.Kind == subject.Node {
			n.changeNode(s.Subject.Name, l.blameNode(f))
		}
		parts = append(parts, n)
	}
	for _, s := range f.Affected {
		if s.Kind == subject.Node {
			var n entry
			n.changeNode(s.Name, l.quarantineNode(f, errkind.Unreachable))
			parts = append(parts, n)
		}
	}
	return l.writeParts(parts)
}

// blameNode returns the change that makes a finding one of a node: the first puts it in
// quarantine, what is found later of another part is kept beside that, and what is found of
// the same part is more evidence of it.
func (l *ledger) blameNode(f stage.Finding) func(*state.Node) {
	return func(n *state.Node) {
		if n.Quarantine == nil {
			l.quarantineNode(f, errkind.Mismatch)(n)
			return
		}
		q := *n.Quarantine
		all := append([]stage.Finding{q.Finding}, q.More...)
		i := slices.IndexFunc(all, func(o stage.Finding) bool { return o.Cause == f.Cause || o.OfSameParts(f) })
		switch {
		case i < 0:
			all = append(all, f)
		case all[i].Cause == f.Cause:
			return
		default:
			if more := f.Step + ": " + f.Cause; !slices.Contains(all[i].Evidence, more) {
				all[i].Evidence = append(slices.Clip(all[i].Evidence), more)
			}
		}
		q.Finding, q.More = all[0], all[1:]
		n.Quarantine = &q
	}
}

// quarantineNode returns the change that puts a node in quarantine; the first finding
// stays. Which other nodes are out of service by it stands in the journal: at each of
// 12,500 nodes it would be the names of all.
func (l *ledger) quarantineNode(f stage.Finding, kind errkind.Kind) func(*state.Node) {
	return func(n *state.Node) {
		if n.Quarantine == nil {
			own := f
			own.About, own.Affected = nil, nil
			if me := subject.OfNode(n.Name); slices.Contains(f.Affected, me) {
				own.Affected = []subject.ID{me}
			}
			n.Quarantine = &state.Quarantine{Finding: own, Kind: kind, At: l.now(), Run: l.run}
		}
	}
}

// recordRunEnd makes the outcome of a run durable.
func (l *ledger) recordRunEnd(r state.Run) error {
	var n entry
	n.addRecordOf(state.Record{Kind: state.RunEnded}, state.LastRun, r)
	return l.write(n)
}
