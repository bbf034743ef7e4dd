// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// hardware is learned by the install stage in the ramdisk.
const hardware = fact.Name[wire.Hardware]("node.hardware")

// cursor is how far the journal was read.
type cursor struct {
	Seq uint64 `json:"seq"` // of the last record
}

var cursorKey = state.Key{Kind: cursorObject, Name: "cursor"}

// CatchUp reads what the journal says of parts since the last time, and writes it
// down. It is called by the owner of the state only, beside no run. When it is
// interrupted, the next call goes on and nothing is written twice.
func CatchUp(ctx context.Context, s state.Store, f state.Fence, inv *inventory.Inventory) error {
	at, _, err := state.Get[cursor](ctx, s, cursorKey)
	if err != nil {
		return err
	}
	c := &catcher{ctx: ctx, store: s, inv: inv, fitted: map[string]*Fitted{}, parts: map[state.Key]*History{}, changed: map[state.Key]any{}}
	last := at.Seq
	err = s.Read(ctx, at.Seq+1, func(r state.Record) error {
		last = r.Seq
		return c.take(r)
	})
	if err != nil || last == at.Seq {
		return err
	}
	return c.write(f, cursor{last})
}

// catcher is one reading of the journal.
type catcher struct {
	ctx     context.Context
	store   state.Store
	inv     *inventory.Inventory
	fitted  map[string]*Fitted
	parts   map[state.Key]*History
	changed map[state.Key]any
}

// take takes over one record. One that cannot be read says nothing of parts.
func (c *catcher) take(r state.Record) error {
	switch r.Kind {
	case state.FactLearned:
		var f fact.Fact
		if json.Unmarshal(r.Data, &f) != nil || f.Key.Name != string(hardware) || f.Key.Subject.Kind != subject.Node {
			return nil
		}
		hw, err := hardware.Get(f)
		if err != nil {
			return nil
		}
		return c.inspected(f.Key.Subject.Name, hw, cmp.Or(f.Observed, r.Time))
	case state.FindingMade:
		var f stage.Finding
		if json.Unmarshal(r.Data, &f) != nil {
			return nil
		}
		return c.addFinding(f, r.Time)
	}
	return nil
}

// inspected compares what a node has with what it had.
func (c *catcher) inspected(node string, hw wire.Hardware, at time.Time) error {
	was, err := c.of(node)
	if err != nil {
		return err
	}
	now := Fitted{Node: node, At: at, Parts: List(hw)}
	for _, f := range was.Parts {
		if !slices.ContainsFunc(now.Parts, func(g Fit) bool { return isSame(f.Part, g.Part) }) {
			if err := c.endStay(node, f, at); err != nil {
				return err
			}
		}
	}
	for _, f := range now.Parts {
		if err := c.came(node, f, at); err != nil {
			return err
		}
	}
	c.fitted[node] = &now
	c.changed[state.Key{Kind: fittedObject, Name: node}] = &now
	return nil
}

func isSame(a, b Part) bool { return a.Kind == b.Kind && a.Serial == b.Serial }

// endStay ends the stay of a part that has a history.
func (c *catcher) endStay(node string, f Fit, at time.Time) error {
	h, known, err := c.history(f.Part)
	if err != nil || !known {
		return err
	}
	if i := len(h.Seen) - 1; i >= 0 && h.Seen[i].Node == node && h.Seen[i].To.IsZero() {
		h.Seen[i].To = at
		c.changed[f.Key()] = h
	}
	return nil
}

// came begins a stay of a part that has a history.
func (c *catcher) came(node string, f Fit, at time.Time) error {
	h, known, err := c.history(f.Part)
	if err != nil || !known {
		return err
	}
	if i := len(h.Seen) - 1; i >= 0 && h.Seen[i].Node == node && h.Seen[i].Slot == f.Slot && h.Seen[i].To.IsZero() {
		return nil
	}
	h.addPeriod(Seen{Node: node, Slot: f.Slot, From: at})
	c.changed[f.Key()] = h
	return nil
}

// addPeriod begins a period in a node; the one before it has ended then.
func (h *History) addPeriod(s Seen) {
	if i := len(h.Seen) - 1; i >= 0 && h.Seen[i].To.IsZero() {
		h.Seen[i].To = s.From
	}
	h.Seen = append(h.Seen, s)
	h.Seen = h.Seen[max(0, len(h.Seen)-mostSeen):]
}

// addFinding writes a finding into the histories of the parts that it suspects.
func (c *catcher) addFinding(f stage.Finding, at time.Time) error {
	type meant struct {
		node, name string
		fit        Fit
		since      time.Time
	}
	var all []meant
	for _, s := range f.Suspects {
		if s.Subject.Kind != subject.Node || s.Part == "" {
			continue
		}
		was, err := c.of(s.Subject.Name)
		if err != nil {
			return err
		}
		n, _ := c.inv.Node(s.Subject.Name)
		for _, p := range Resolve(was.Parts, s.Part, n) {
			all = append(all, meant{s.Subject.Name, s.Part, p, was.At})
		}
	}
	certain := slices.ContainsFunc(all, func(m meant) bool { return m.fit.Kind != Chassis })
	for _, m := range all {
		if m.fit.Kind == Chassis && certain {
			continue // a part of it is meant
		}
		if err := c.addToHistory(m.node, m.name, m.fit, m.since, f, at); err != nil {
			return err
		}
	}
	return nil
}

// addToHistory writes a finding into the history of one part.
func (c *catcher) addToHistory(node, name string, p Fit, since time.Time, f stage.Finding, at time.Time) error {
	h, _, err := c.history(p.Part)
	if err != nil {
		return err
	}
	x := Finding{Node: node, Slot: p.Slot, Part: name, Cause: f.Cause, Step: f.Step, At: at.UTC()}
	if slices.Contains(h.Findings, x) {
		return nil
	}
	if len(h.Seen) == 0 {
		h.Seen = []Seen{{Node: x.Node, Slot: p.Slot, From: since}}
	}
	h.Findings = append(h.Findings, x)
	h.Findings = h.Findings[max(0, len(h.Findings)-mostFindings):]
	c.changed[p.Key()] = h
	return nil
}

// of is what a node had when it was inspected last.
func (c *catcher) of(node string) (*Fitted, error) {
	if f := c.fitted[node]; f != nil {
		return f, nil
	}
	f, _, err := state.Get[Fitted](c.ctx, c.store, state.Key{Kind: fittedObject, Name: node})
	c.fitted[node] = &f
	return &f, err
}

// history is that of a part; false when it has none yet.
func (c *catcher) history(p Part) (*History, bool, error) {
	k := p.Key()
	if h := c.parts[k]; h != nil {
		return h, len(h.Findings) > 0, nil
	}
	h, version, err := state.Get[History](c.ctx, c.store, k)
	if version == state.Absent {
		h.Part = p
	}
	c.parts[k] = &h
	return &h, version != state.Absent, err
}

// write writes what has changed, the cursor last.
func (c *catcher) write(f state.Fence, at cursor) error {
	keys := slices.SortedFunc(maps.Keys(c.changed), func(a, b state.Key) int { return cmp.Compare(a.String(), b.String()) })
	var b state.Batch
	for _, k := range keys {
		p, err := state.PutOf(k, c.changed[k])
		if err != nil {
			return err
		}
		b.Puts = append(b.Puts, p)
	}
	p, err := state.PutOf(cursorKey, at)
	if err != nil {
		return err
	}
	b.Puts = append(b.Puts, p)
	return state.AppendParts(c.ctx, c.store, f, b.Split()...)
}
