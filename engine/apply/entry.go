// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/engine/state"
)

// entry is what one write makes durable, all or nothing: lines of the journal, objects,
// and changes of nodes, which become objects when it is written.
type entry struct {
	records []state.Record
	puts    []state.Put
	changes []nodeChange
	err     error // of the first object that could not be encoded
}

// newStepEntry is an entry with room for what is written of most steps.
func newStepEntry() entry {
	return entry{records: make([]state.Record, 0, 1), puts: make([]state.Put, 0, 2), changes: make([]nodeChange, 0, 1)}
}

// nodeChange is a change of a node. With a nil change it says only that this run has
// worked on the node.
type nodeChange struct {
	name   string
	change func(*state.Node)
}

// addRecord adds a line to the journal.
func (n *entry) addRecord(r state.Record) { n.records = append(n.records, r) }

// addRecordOf adds a line to the journal whose data is v, and stores v at k.
func (n *entry) addRecordOf(r state.Record, k state.Key, v any) {
	n.putObject(k, v)
	r.Data = n.puts[len(n.puts)-1].Value
	n.addRecord(r)
}

// putObject stores v at k.
func (n *entry) putObject(k state.Key, v any) {
	p, err := state.PutOf(k, v)
	if n.err == nil {
		n.err = err
	}
	n.puts = append(n.puts, p)
}

// deleteObject deletes the object at k, whatever its version.
func (n *entry) deleteObject(k state.Key) {
	n.puts = append(n.puts, state.Put{Key: k, Want: state.Any})
}

// changeNode changes a node; changes of one node are made in the order in which they
// were added. The name "" is passed over.
func (n *entry) changeNode(name string, change func(*state.Node)) {
	if name != "" {
		n.changes = append(n.changes, nodeChange{name, change})
	}
}

// stepRecord is a line of the journal about a step.
func stepRecord(k state.RecordKind, t *task) state.Record {
	return state.Record{Kind: k, Step: string(t.step.ID), Subject: t.step.Subject}
}

// cell is the current object of one node. Its lock is held during the write, so
// that two changes of a node reach the disk in their order.
type cell struct {
	mu   sync.Mutex // guards node
	node state.Node
}

// write makes an entry durable, also while its step is being cancelled. A failure ends
// the run.
func (l *ledger) write(n entry) error {
	if err := l.failure(); err != nil {
		return err
	}
	if err := l.append(n); err != nil {
		return l.setFailure(err)
	}
	return nil
}

// writeParts makes entries durable in their order, in one append where they fit into one, and
// else in several: each entry is written whole. It is for what an interrupted run does once
// more, or may leave half done.
func (l *ledger) writeParts(parts []entry) error {
	if len(parts) == 0 {
		return l.failure()
	}
	if err := l.failure(); err != nil {
		return err
	}
	err := l.appendParts(parts)
	if err != nil {
		return l.setFailure(err)
	}
	return nil
}

func (l *ledger) appendParts(parts []entry) error {
	n := joinEntries(parts)
	var err error = &state.LimitError{}
	if len(parts) == 1 || len(n.records)+len(n.puts) <= state.MaxEntries {
		err = l.append(n)
	}
	if _, large := errors.AsType[*state.LimitError](err); !large || len(parts) == 1 {
		return err
	}
	half := len(parts) / 2
	if err := l.appendParts(parts[:half]); err != nil {
		return err
	}
	return l.appendParts(parts[half:])
}

// joinEntries is one entry that says what several say.
func joinEntries(parts []entry) (n entry) {
	for _, p := range parts {
		n.records, n.puts, n.changes = append(n.records, p.records...), append(n.puts, p.puts...), append(n.changes, p.changes...)
		if n.err == nil {
			n.err = p.err
		}
	}
	return n
}

// append writes an entry in one append.
func (l *ledger) append(n entry) error {
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
		return err
	}
	for _, x := range changed {
		l.keepNode(x)
	}
	return nil
}

// lockChanged returns the nodes of an entry as they are after it, by name. Their cells
// stay locked until unlock is called. They are locked in the order of names, so that two
// entries cannot wait for each other.
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

// keepNode takes over a node that is durable now. Its quarantine is in force from here
// on; holds are set by setHold. Called with the node's cell locked.
func (l *ledger) keepNode(n state.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cells[n.Name].node = n
	c := l.conditions[n.Name]
	c.accepted, c.doubt = n.Accepted, n.Doubt
	if c.finding == nil && n.Quarantine != nil {
		c.finding, c.kind = &n.Quarantine.Finding, n.Quarantine.Kind
	}
	l.conditions[n.Name] = c
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

// failure returns the first failure to write; nil: everything was written.
func (l *ledger) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
