// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/supply"
	"github.com/ironrail/ironrail/validate/trunk"
)

// How what is no node is looked at.
const (
	fabricWait = 3 * time.Minute // for one question about a fabric
	driftPDUs  = 16              // PDUs at once: their cards are slow, and many
	// mostSwitches is how many switches of a fabric are named one by one that could not be seen.
	mostSwitches = 4
)

// siteSeen is what a look shows that is about no single node.
type siteSeen struct {
	mu      sync.Mutex // guards what follows
	changes []drift.Change
	unknown []drift.Unknown
	notes   []drift.Note
}

// add notes what one question has shown.
func (s *siteSeen) add(f func(*siteSeen)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// lookAtSite looks at the fabrics that the nodes are on and at the PDUs that feed them: cables by a
// sweep, counters and settings of switches, outlets and breakers. It changes nothing.
func (l *driftLook) lookAtSite(ctx context.Context) *siteSeen {
	s := &siteSeen{}
	if len(l.nodes) == 0 {
		return s
	}
	var wg sync.WaitGroup
	if l.wants(drift.Power) {
		wg.Go(func() { l.lookAtPDUs(ctx, s) })
	}
	switches := l.Switches(l.pool, l.facts)
	kinds := l.Fabrics(l.Nodes(l.pool, l.facts), switches)
	for _, f := range l.fabricsUp() {
		wg.Go(func() { l.lookAtFabric(ctx, f, kinds[f.Kind], s) })
	}
	wg.Wait()
	return s
}

// fabricsUp are the fabrics that a node that is looked at was brought up on.
func (l *driftLook) fabricsUp() (list []*inventory.Fabric) {
	for _, n := range l.nodes {
		for _, f := range fabric.Of(n) {
			if _, up := l.facts(fabric.Ports(f.Name).Of(subject.OfNode(n.Name))); up && !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	return list
}

// lookRun is the stage.Run of a look at what is no node: what a step learns is there for those
// behind it, and what is blamed is collected.
type lookRun struct {
	readOnlyRun
	memory *lookMemory
	found  *[]stage.Finding
}

func newLookRun(facts lookedUp) lookRun {
	m := &lookMemory{lookedUp: facts, learned: map[fact.Key]fact.Fact{}}
	return lookRun{readOnlyRun{plan.Step{}, m}, m, new([]stage.Finding)}
}

// Blame implements stage.Run.
func (r lookRun) Blame(_ context.Context, f stage.Finding) error {
	*r.found = append(*r.found, f)
	return nil
}

// lookMemory keeps what is learned for the time of a look. It is safe for concurrent use.
type lookMemory struct {
	lookedUp
	mu      sync.Mutex // guards learned
	learned map[fact.Key]fact.Fact
}

// Fact implements Memory.
func (m *lookMemory) Fact(k fact.Key) (fact.Fact, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.learned[k]; ok {
		return f, true
	}
	return m.lookedUp(k)
}

// Learn implements Memory.
func (m *lookMemory) Learn(_ context.Context, fs ...fact.Fact) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range fs {
		m.learned[f.Key] = f
	}
	return nil
}

// lookAtFabric looks at one fabric. What its kind cannot tell is not asked for.
func (l *driftLook) lookAtFabric(ctx context.Context, f *inventory.Fabric, k fabric.Kind, s *siteSeen) {
	run := newLookRun(l.facts)
	within := func(ask func(context.Context)) {
		ctx, cancel := context.WithTimeout(ctx, fabricWait)
		defer cancel()
		ask(ctx)
	}
	if staged, ok := k.(fabric.Staged); ok && l.wants(drift.Settings) {
		within(func(ctx context.Context) { l.compareSettings(ctx, run, f, staged, s) })
	}
	if sweeping, ok := k.(fabric.Sweeping); ok && l.wants(drift.Cables) {
		within(func(ctx context.Context) { l.compareSweep(ctx, run, f, sweeping, s) })
	}
	if counting, ok := k.(fabric.Counting); ok && (l.wants(drift.Errors) || l.wants(drift.Cables)) && len(trunk.Ends(l.Inv, f)) > 0 {
		within(func(ctx context.Context) { l.compareCounters(ctx, run, f, counting, s) })
	}
}

// compareSettings asks the steps of a fabric that are about no node, and that were done: switches and
// the subnet manager.
func (l *driftLook) compareSettings(ctx context.Context, run lookRun, f *inventory.Fabric, k fabric.Staged, s *siteSeen) {
	var nodes []*inventory.Node
	for _, n := range l.Inv.Nodes {
		if slices.Contains(fabric.Of(n), f) {
			nodes = append(nodes, n)
		}
	}
	var unseen []drift.Unknown
	for _, st := range k.Steps(run, f, nodes, func(*inventory.Node) []plan.Need { return nil }) {
		if st.Subject.Kind == subject.Node || !l.wasDone(ctx, st.ID) {
			continue
		}
		o, err := k.ObserveStep(ctx, run, f, st)
		if err != nil {
			o = stage.Observation{State: stage.Unknown, Evidence: err.Error()}
		}
		switch {
		case o.State == stage.Differs:
			_, name, _ := strings.Cut(strings.TrimPrefix(string(st.ID), st.Subject.Name), "/")
			s.add(func(s *siteSeen) {
				s.changes = append(s.changes, drift.Change{Node: st.Subject.Name, Of: st.Subject.Kind, Kind: drift.Settings, Name: name, Was: "as the site has it", Is: o.Evidence,
					Action: "`ironrail plan --refresh` shows the step that puts it right"})
			})
		case o.State == stage.Unknown && o.Evidence != "":
			unseen = append(unseen, drift.Unknown{Node: st.Subject.Name, Of: st.Subject.Kind, Kind: drift.Settings, Why: o.Evidence})
		}
	}
	s.add(func(s *siteSeen) { s.unknown = append(s.unknown, summarize(f, unseen)...) })
}

// wasDone reports whether the state has a good end of a step.
func (l *driftLook) wasDone(ctx context.Context, id plan.StepID) bool {
	st, version, err := state.Get[state.Step](ctx, l.store, state.StepKey(id))
	return err == nil && version != state.Absent && st.State == state.StepIsDone
}

// compareSweep compares the cables of a fabric with the site. What was wrong when it was brought up
// is no drift.
func (l *driftLook) compareSweep(ctx context.Context, run lookRun, f *inventory.Fabric, k fabric.Sweeping, s *siteSeen) {
	swept, err := k.Resweep(ctx, run, f)
	if err != nil {
		s.add(func(s *siteSeen) { s.notSeen(f, drift.Cables, swept.Before, err) })
		return
	}
	s.add(func(s *siteSeen) { s.changes = append(s.changes, l.changesIn(swept.Found, drift.Cables)...) })
}

// notSeen notes that something of a fabric could not be read: unknown where it was read before, else
// it is worth a note.
func (s *siteSeen) notSeen(f *inventory.Fabric, kind string, before bool, err error) {
	if before || errkind.Of(err) != errkind.Unsupported {
		s.unknown = append(s.unknown, drift.Unknown{Node: f.Name, Of: subject.Fabric, Kind: kind, Why: err.Error()})
		return
	}
	what := "cables between switches and what these count"
	if kind == drift.Cables {
		what = "cables"
	}
	s.notes = append(s.notes, drift.Note{Text: fmt.Sprintf("fabric %s: its %s are not looked at: %s", f.Name, what, err)})
}

// changesIn makes changes of findings: of nodes that are looked at, and of what is no node.
func (l *driftLook) changesIn(found []stage.Finding, kind string) (all []drift.Change) {
	for _, f := range found {
		for _, x := range f.Suspects {
			c := drift.Change{Node: x.Subject.Name, Of: x.Subject.Kind, Kind: kind, Part: x.Part, Name: kind, Was: "as the site has it", Is: f.Cause, Action: f.Action}
			if x.Subject.Kind == subject.Node {
				c.Of = ""
				if !slices.ContainsFunc(l.nodes, func(n *inventory.Node) bool { return n.Name == c.Node }) {
					continue
				}
			}
			all = append(all, c)
		}
	}
	return all
}

// lookAtPDUs reads the PDUs that feed the nodes and the power shelves that they draw from; all that
// can be read where all nodes are looked at.
func (l *driftLook) lookAtPDUs(ctx context.Context, s *siteSeen) {
	st := supply.New(l.Inv, l.Feeds(l.facts))
	slots := make(chan struct{}, driftPDUs)
	var wg sync.WaitGroup
	ask := func(of subject.ID, look func(run lookRun) (note string, err error)) {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			run := newLookRun(l.facts)
			note, err := look(run)
			s.add(func(s *siteSeen) {
				switch {
				case err != nil:
					s.unknown = append(s.unknown, drift.Unknown{Node: of.Name, Of: of.Kind, Kind: drift.Power, Why: err.Error()})
				case note != "":
					s.notes = append(s.notes, drift.Note{Text: note})
				}
				s.changes = append(s.changes, l.changesIn(*run.found, drift.Power)...)
			})
		})
	}
	for _, r := range l.Inv.Racks {
		for _, p := range r.PDUs {
			if !supply.IsRead(p) || !l.isBehind(p) {
				continue
			}
			ask(supply.Of(p), func(run lookRun) (note string, err error) {
				before, err := st.Look(ctx, run, p)
				if !before {
					note = fmt.Sprintf("PDU %s: how its outlets were when its nodes were tested is not known, and is not compared; the next test records it", p.Name)
				}
				return note, err
			})
		}
		for _, sh := range r.Shelves {
			if sh.Control == nil || !l.isOnShelves(r) {
				continue
			}
			ask(supply.OfShelf(sh), func(run lookRun) (string, error) { return "", st.LookAtShelf(ctx, run, sh) })
		}
	}
	wg.Wait()
}

// isOnShelves reports whether the shelves of a rack are among those that are looked at.
func (l *driftLook) isOnShelves(r *inventory.Rack) bool {
	return len(l.o.Words) == 0 || slices.ContainsFunc(l.nodes, func(n *inventory.Node) bool { return n.Rack == r && len(n.Feeds) == 0 })
}

// isBehind reports whether a PDU is one of those that are looked at.
func (l *driftLook) isBehind(p *inventory.PDU) bool {
	return len(l.o.Words) == 0 || slices.ContainsFunc(l.nodes, func(n *inventory.Node) bool {
		return slices.ContainsFunc(n.Feeds, func(f inventory.Feed) bool { return f.PDU == p })
	})
}
