// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/remote"
	"github.com/ironrail/ironrail/provision/selection"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

// How many nodes and BMCs are looked at together. BMCs are slow computers on a
// slow network.
const (
	driftNodes = 128
	driftBMCs  = 32
)

// BMCs is whether BMCs are asked.
type BMCs string

// The ways. The zero value asks each at most every drift.Peace.
const (
	BMCsAlways BMCs = "always"
	BMCsNever  BMCs = "never"
)

// DriftOptions say what is looked at.
type DriftOptions struct {
	Words []string // as Select reads them; none: every installed node
	Kinds []string // of drift; none: all
	BMCs  BMCs
	Now   time.Time
	Say   func(string) // is told how far it is; nil: nobody
}

// Drift is what is not as it was accepted.
type Drift struct {
	At      time.Time       `json:"at"`
	Nodes   int             `json:"nodes"` // that were looked at
	Links   LinkCount       `json:"links"`
	Changes []drift.Change  `json:"changes"`
	Unknown []drift.Unknown `json:"unknown"`
	Notes   []drift.Note    `json:"notes"`
	// Unloaded says what was not looked at, since nothing was loaded, and what does; "": no node
	// was looked at that was tested under load.
	Unloaded string `json:"without_load,omitempty"`
}

// unloaded is what a look at rest cannot see.
const unloaded = "Nothing was loaded: slow or hot GPUs, weak memory, and rails and switches that pass less show under load alone; `ironrail test NODE` drains idle nodes and measures them again."

// LinkCount counts links of nodes with a baseline.
type LinkCount struct {
	Total   int `json:"total"`
	Changed int `json:"changed"`
	Lower   int `json:"lower"` // slower or narrower than they were
}

// Drift looks at nodes and compares them with how they were accepted. Nothing on
// them is changed; the answers of BMCs are kept in the state, so that they are left
// in peace for a while.
func (ob Observer) Drift(ctx context.Context, store state.Store, fence state.Fence, o DriftOptions) (Drift, error) {
	l, err := ob.driftLook(ctx, store, fence, o)
	if err != nil {
		return Drift{}, err
	}
	defer l.close()
	var site *siteSeen
	var wg sync.WaitGroup
	wg.Go(func() { site = l.lookAtSite(ctx) })
	seen, err := l.all(ctx)
	wg.Wait()
	if err != nil {
		return Drift{}, err
	}
	d, err := l.compareAccepted(ctx, seen)
	d.Changes, d.Unknown, d.Notes = append(d.Changes, site.changes...), append(d.Unknown, site.unknown...), append(d.Notes, site.notes...)
	drift.Sort(d.Changes)
	if l.wants(drift.Health) && slices.ContainsFunc(l.nodes, func(n *inventory.Node) bool { return l.accepted[n.Name] && n.Validation != nil }) {
		d.Unloaded = unloaded
	}
	for _, n := range l.unmanaged {
		d.Notes = append(d.Notes, drift.Note{Node: n, Text: fmt.Sprintf("%s is neither accepted nor adopted: there is nothing to compare it with, and it was not looked at; `ironrail why %s` says where it stands", n, n)})
	}
	return d, err
}

// AcceptDrift takes nodes as they are now for how they are meant to be. It returns
// the nodes that it could not see whole, with the reason; they are left as they
// were.
func (ob Observer) AcceptDrift(ctx context.Context, store state.Store, fence state.Fence, o DriftOptions, by, reason string) (taken []string, unknown []drift.Unknown, err error) {
	o.Kinds, o.BMCs = nil, ""
	l, err := ob.driftLook(ctx, store, fence, o)
	if err != nil {
		return nil, nil, err
	}
	defer l.close()
	seen, err := l.all(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range l.unmanaged {
		unknown = append(unknown, drift.Unknown{Node: n, Kind: wire.ItemHardware, Why: fmt.Sprintf("it is neither accepted nor adopted; `ironrail adopt %s` takes a node that runs as it is", n), Unmanaged: true})
	}
	for i, x := range seen {
		if blind := l.unknown(x); len(blind) > 0 {
			unknown = append(unknown, blind...)
			continue
		}
		snap := seen[i].Snapshot
		snap.By, snap.Reason = by, reason
		if err := l.writer.Accept(ctx, snap, x.lists); err != nil {
			return taken, unknown, err
		}
		taken = append(taken, x.Node)
	}
	return taken, unknown, nil
}

// driftLook is one look at nodes.
type driftLook struct {
	Observer
	o         DriftOptions
	store     state.Store
	writer    drift.Writer
	nodes     []*inventory.Node
	unmanaged []string // asked for by name, and neither accepted nor adopted
	pool      *remote.Pool
	facts     lookedUp
	bmcs      reach.BMCs
	watch     *drift.Observer
	settled   func(context.Context, string) []StepState
	health    *healthLook     // nil: health checks are not wanted
	accepted  map[string]bool // nodes that passed them
	slots     chan struct{}   // of BMCs
}

// nodeObservation is what a look has shown of one node.
type nodeObservation struct {
	drift.Snapshot
	lists   map[string]drift.Set
	settled []StepState
	faults  []judge.Fault   // of its health checks
	blind   []drift.Unknown // what of them could not be seen
}

// add takes a node into the look, if something is known to compare it with; one that was
// chosen by name and of which nothing is known is unmanaged.
func (l *driftLook) add(ctx context.Context, n *inventory.Node, st state.Node, chosen bool) (err error) {
	was := st.Accepted || st.Adopted
	if !was && chosen { // of one that was quarantined since it is known as well
		if _, was, err = drift.ReadBaseline(ctx, l.store, n.Name); err != nil {
			return err
		}
	}
	switch {
	case was:
		l.nodes, l.accepted[n.Name] = append(l.nodes, n), st.Accepted
	case chosen:
		l.unmanaged = append(l.unmanaged, n.Name)
	}
	return nil
}

// driftLook chooses the nodes and opens what reaches them.
func (ob Observer) driftLook(ctx context.Context, store state.Store, fence state.Fence, o DriftOptions) (*driftLook, error) {
	chosen, err := selection.ReadSet(ob.Inv, o.Words)
	if err != nil {
		return nil, err
	}
	stands, err := state.ReadNodes(ctx, store)
	if err != nil {
		return nil, err
	}
	l := &driftLook{Observer: ob, o: o, store: store, writer: drift.Writer{Store: store, Fence: fence}, pool: remote.NewPoolOn(driftNodes, ob.Network), slots: make(chan struct{}, driftBMCs),
		accepted: map[string]bool{}}
	for _, n := range ob.Inv.Nodes {
		if n.Image == nil || len(o.Words) > 0 && !chosen[n.Name] {
			continue
		}
		if err := l.add(ctx, n, stands[n.Name], chosen[n.Name]); err != nil {
			return nil, err
		}
	}
	facts := reach.Facts(store)
	l.facts = facts
	ssh := ob.Nodes(l.pool, facts)
	l.bmcs = ob.BMCs(facts)
	l.watch = drift.NewObserver(ssh, l.wants)
	if l.wants(drift.Settings) {
		l.settled = ob.NodeObserver(ssh, readOnlyFacts(facts))
	}
	if l.wants(drift.Health) {
		l.health = &healthLook{nodes: ssh, facts: l.facts}
	}
	return l, nil
}

func (l *driftLook) wants(kind string) bool {
	return len(l.o.Kinds) == 0 || slices.Contains(l.o.Kinds, kind)
}

func (l *driftLook) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, _ = l.pool.Close(), l.bmcs.Pool.Close(ctx) // sessions that could not be closed expire by themselves
}

// all looks at all nodes, many together.
func (l *driftLook) all(ctx context.Context) ([]nodeObservation, error) {
	out, errs := make([]nodeObservation, len(l.nodes)), make([]error, len(l.nodes))
	slots := make(chan struct{}, driftNodes)
	var wg sync.WaitGroup
	var mu sync.Mutex // guards done
	done := 0
	for i, n := range l.nodes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out[i], errs[i] = l.one(ctx, n)
			mu.Lock()
			defer mu.Unlock()
			if done++; l.o.Say != nil && (done == len(l.nodes) || done%driftNodes == 0) {
				l.o.Say(fmt.Sprintf("%d of %d nodes were looked at", done, len(l.nodes)))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return out, ctx.Err()
}

// one looks at one node: at its system, and at its BMC unless that is to be left
// in peace.
func (l *driftLook) one(ctx context.Context, n *inventory.Node) (nodeObservation, error) {
	base, _, err := drift.ReadBaseline(ctx, l.store, n.Name)
	if err != nil {
		return nodeObservation{}, err
	}
	l.watch.Know(base.Sets[wire.ItemPackages])
	asked, err := drift.ReadLastAnswer(ctx, l.store, n.Name)
	if err != nil {
		return nodeObservation{}, err
	}
	w := l.watch
	none := "its BMC was not asked"
	if l.o.BMCs != BMCsNever && (l.o.BMCs == BMCsAlways || !drift.Fresh(asked, l.o.Now)) {
		w = w.With(func(node string) (*bmc.Handle, error) { return l.bmcs.Handle(node) })
		l.slots <- struct{}{}
		defer func() { <-l.slots }()
	}
	seen := w.Observe(ctx, n, l.o.Now)
	x := nodeObservation{Snapshot: seen.Join(asked, none), lists: seen.Lists}
	if seen.BMC != nil {
		if err := l.writer.Remember(ctx, *seen.BMC, seen.Lists); err != nil {
			return x, err
		}
	}
	l.lookAtHealth(ctx, n, &x, seen.BMC != nil)
	if l.settled != nil {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		x.settled = l.settled(ctx, n.Name)
	}
	return x, nil
}
