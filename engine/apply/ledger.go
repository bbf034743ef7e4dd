package apply

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
)

// ledger makes durable what happens in a run, and answers from memory what was
// made durable. Records and objects move together. It is safe for concurrent
// use; writes about different nodes share one write to disk.
type ledger struct {
	store          state.Store
	fence          state.Fence
	run, plan      string
	now            func() time.Time
	onFailure      func(error)
	frozenGroups   map[plan.StepID]state.Frozen   // of an earlier run of this plan; fixed
	effectsInDoubt map[plan.StepID][]state.Effect // left by earlier runs; fixed
	effectLocks    keyLocks                       // one effect of a key at a time

	mu         sync.Mutex // guards what follows
	cells      map[string]*cell
	conditions map[string]condition
	facts      map[fact.Key]fact.Fact // that were asked for or learned
	err        error                  // the first failure to write
}

// cell is the current object of one node. Its lock is held during the write, so
// that two changes of a node reach the disk in their order.
type cell struct {
	mu   sync.Mutex // guards node
	node state.Node
}

// condition is why nothing is started on a node, and whether it is accepted.
type condition struct {
	hold     *state.Hold
	finding  *stage.Finding
	accepted bool
}

func (m condition) blocked() bool { return m.hold != nil || m.finding != nil }

func (m condition) cause() state.Cause {
	if m.hold == nil {
		return state.Cause{Kind: state.ByFinding, Step: plan.StepID(m.finding.Step), Text: m.finding.Cause}
	}
	text := "held by " + m.hold.By
	if m.hold.Reason != "" {
		text += ": " + m.hold.Reason
	}
	return state.Cause{Kind: state.ByHold, Text: text}
}

func newLedger(ctx context.Context, c Config, run string) (*ledger, error) {
	nodes, err := state.ReadNodes(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	doubts, err := state.ReadEffectsInDoubt(ctx, c.Store)
	l := &ledger{store: c.Store, fence: c.Fence, run: run, plan: c.Plan.ID, facts: map[fact.Key]fact.Fact{},
		now:       func() time.Time { return c.Clock.Now().UTC() },
		onFailure: func(error) {}, cells: map[string]*cell{}, conditions: map[string]condition{}, frozenGroups: map[plan.StepID]state.Frozen{},
		effectsInDoubt: doubts}
	for name, n := range nodes {
		l.cells[name] = &cell{node: n}
		l.conditions[name] = conditionOf(n)
	}
	return l, err
}

func conditionOf(n state.Node) (m condition) {
	m.hold, m.accepted = n.Hold, n.Accepted
	if n.Quarantine != nil {
		m.finding = &n.Quarantine.Finding
	}
	return m
}

// condition returns what stands against a node; nothing for the name "".
func (l *ledger) condition(node string) condition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conditions[node]
}

// anyQuarantined reports whether any node is in quarantine.
func (l *ledger) anyQuarantined() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.conditions {
		if m.finding != nil {
			return true
		}
	}
	return false
}

// conditionsOf returns what stands against each of these nodes.
func (l *ledger) conditionsOf(nodes []string) []condition {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]condition, len(nodes))
	for i, n := range nodes {
		out[i] = l.conditions[n]
	}
	return out
}

// setFinding quarantines a node in memory, ahead of the record that skipped
// writes. The first finding stays.
func (l *ledger) setFinding(node string, f *failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.conditions[node]
	if m.finding == nil {
		m.finding = &f.finding
		l.conditions[node] = m
	}
}

// setHold holds a node in memory, ahead of its record.
func (l *ledger) setHold(node string, h *state.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.conditions[node]
	m.hold = h
	l.conditions[node] = m
}

func (l *ledger) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// lockChanged are the nodes of an entry as they are after it, by name. Their cells are
// locked, in the order of names so that two entries cannot wait for each other,
// until unlock is called.
func (l *ledger) lockChanged(n *entry) (out []state.Node, unlock func()) {
	slices.SortStableFunc(n.changes, func(a, b nodeChange) int { return strings.Compare(a.name, b.name) })
	locked := make([]*cell, 0, len(n.changes))
	for _, c := range n.changes {
		if len(out) == 0 || out[len(out)-1].Name != c.name {
			at := l.cell(c.name)
			at.mu.Lock()
			locked = append(locked, at)
			out = append(out, at.node)
		}
		x := &out[len(out)-1]
		x.Name, x.Run = c.name, l.run
		if c.change != nil {
			c.change(x)
		}
	}
	return out, func() {
		for _, c := range locked {
			c.mu.Unlock()
		}
	}
}

// write makes an entry durable, also while its step is being cancelled: what
// happened is recorded. A failure ends the run.
func (l *ledger) write(n entry) error {
	if err := l.failure(); err != nil {
		return err
	}
	changed, unlock := l.lockChanged(&n)
	defer unlock()
	for _, x := range changed {
		n.putObject(state.NodeKey(x.Name), x)
	}
	if n.err != nil {
		return n.err
	}
	now := l.now()
	for i := range n.records {
		n.records[i].Time, n.records[i].Run = now, l.run
	}
	if _, err := l.store.Append(context.Background(), l.fence, state.Batch{Records: n.records, Puts: n.puts}); err != nil {
		return l.setFailure(err)
	}
	for _, x := range changed {
		l.keepNode(x)
	}
	return nil
}

// cell returns the cell of a node, new for one that the state does not know.
func (l *ledger) cell(name string) *cell {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.cells[name]
	if c == nil {
		c = &cell{}
		l.cells[name] = c
	}
	return c
}

// keepNode takes a node over that is durable now. A quarantine stands from here on;
// holds are marked by setHold. Called with the node's cell locked.
func (l *ledger) keepNode(n state.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cells[n.Name].node = n
	m := l.conditions[n.Name]
	m.accepted = n.Accepted
	if m.finding == nil && n.Quarantine != nil {
		m.finding = &n.Quarantine.Finding
	}
	l.conditions[n.Name] = m
}

// setFailure remembers the first failure to write and stops the run.
func (l *ledger) setFailure(err error) error {
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = err
	}
	l.mu.Unlock()
	if first {
		l.onFailure(err)
	}
	return err
}

// fact returns a fact that is durable. One that was not asked for before is looked
// up in the store; a store that cannot be read ends the run.
func (l *ledger) fact(k fact.Key) (fact.Fact, bool) {
	l.mu.Lock()
	f, ok := l.facts[k]
	l.mu.Unlock()
	if ok {
		return f, true
	}
	f, version, err := state.Get[fact.Fact](context.Background(), l.store, state.FactKey(k))
	if err != nil {
		_ = l.setFailure(err)
	}
	if err != nil || version == state.Absent {
		return fact.Fact{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if newer, ok := l.facts[k]; ok { // learned meanwhile
		return newer, true
	}
	l.facts[k] = f
	return f, true
}

// recordFacts makes facts durable; those that say nothing new are passed over.
func (l *ledger) recordFacts(step string, fs []fact.Fact) ([]fact.Fact, error) {
	var n entry
	var news []fact.Fact
	for _, f := range fs {
		if old, ok := l.fact(f.Key); ok && string(old.Value) == string(f.Value) && old.Part == f.Part {
			continue
		}
		f.Step = step
		if f.Observed.IsZero() {
			f.Observed = l.now()
		}
		n.addRecordOf(state.Record{Kind: state.FactLearned, Step: step, Subject: f.Key.Subject}, state.FactKey(f.Key), f)
		if f.Key.Subject.Kind == subject.Node {
			n.changeNode(f.Key.Subject.Name, nil)
		}
		news = append(news, f)
	}
	if len(news) == 0 {
		return nil, l.failure()
	}
	if err := l.write(n); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range news {
		l.facts[f.Key] = f
	}
	return news, nil
}

// quarantineNode returns the change that takes a node out, unless it is out.
func (l *ledger) quarantineNode(f stage.Finding, kind errkind.Kind) func(*state.Node) {
	return func(n *state.Node) {
		if n.Quarantine == nil {
			n.Quarantine = &state.Quarantine{Finding: f, Kind: kind, At: l.now(), Run: l.run}
		}
	}
}

// recordFinding makes a finding durable and quarantines the nodes that it suspects.
func (l *ledger) recordFinding(f stage.Finding) error {
	var n entry
	for _, s := range f.Suspects {
		n.addRecord(state.Record{Kind: state.FindingMade, Step: f.Step, Subject: s.Subject}.With(f))
		if s.Subject.Kind == subject.Node {
			n.changeNode(s.Subject.Name, l.quarantineNode(f, errkind.Mismatch))
		}
	}
	for _, s := range f.Affected {
		if s.Kind == subject.Node {
			n.changeNode(s.Name, l.quarantineNode(f, errkind.Unreachable))
		}
	}
	return l.write(n)
}
