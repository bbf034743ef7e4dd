package provision

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
)

// Backend answers the control socket of a run. It implements control.Backend.
type Backend struct {
	run   *Running
	bus   *event.Bus
	owner control.Identity
}

// Backend returns what the control socket answers with while r runs.
func (r *Running) Backend(bus *event.Bus, owner control.Identity) *Backend {
	return &Backend{run: r, bus: bus, owner: owner}
}

// Status implements control.Backend.
func (b *Backend) Status(ctx context.Context) (control.Status, error) {
	s, err := b.status(ctx)
	if err != nil {
		return s, err
	}
	s.Notes, err = notesAll(ctx, b.run.site.Inv, b.run.store, s.Nodes)
	return s, err
}

// status is Status without notes, which other answers have no need of.
func (b *Backend) status(ctx context.Context) (control.Status, error) {
	run := b.run.Executor.Status()
	ids := make([]plan.StepID, len(run.Active))
	for i, x := range run.Active {
		ids[i] = x.ID
	}
	nodes, err := NodeStates(ctx, b.run.site.Inv, b.run.store)
	return control.Status{Owner: b.owner, Run: &run, Nodes: nodes, Waits: b.run.Executor.Waits(), Paces: b.run.Executor.Budgets(ids...)}, err
}

// NodeStates lists every node of the inventory as the state knows it.
func NodeStates(ctx context.Context, inv *inventory.Inventory, r state.Reader) ([]state.Node, error) {
	known, err := state.ReadNodes(ctx, r)
	if err != nil {
		return nil, err
	}
	out := make([]state.Node, 0, len(inv.Nodes))
	for _, n := range inv.Nodes {
		x := known[n.Name]
		x.Name = n.Name
		out = append(out, x)
	}
	return out, nil
}

// Why implements control.Backend: the state's story, what is under way, what the
// boot services saw, and who else stands the same way.
func (b *Backend) Why(ctx context.Context, node string) (control.Why, error) {
	if _, ok := b.run.site.Inv.Node(node); !ok {
		return control.Why{}, unknownNode(b.run.site, node)
	}
	w, err := Known(ctx, b.run.site.Inv, b.run.store, node)
	if err != nil {
		return w, err
	}
	b.live(&w)
	for _, s := range b.run.saw.of(node, time.Time{}) {
		w.Evidence = append(w.Evidence, sightingEvent(s))
	}
	for _, s := range b.run.saw.strangers() {
		w.Evidence = append(w.Evidence, sightingEvent(s))
	}
	status, err := b.status(ctx)
	if err == nil {
		now := time.Now()
		w.Alike = why.FindSimilarNodes(node, why.SummariseNodes(why.NewSite(status, now)), TraitsOf(b.run.site.Inv), now)
	}
	return w, err
}

// unknownNode says that a name is not in the inventory, and which may be meant.
func unknownNode(s *Site, node string) error {
	_, err := s.named([]string{node})
	return err
}

// Hold implements control.Backend.
func (b *Backend) Hold(_ context.Context, node string, h control.HoldRequest) error {
	if _, err := b.run.site.named([]string{node}); err != nil {
		return err
	}
	return b.run.Executor.Hold(node, h.By, h.Reason)
}

// Release implements control.Backend.
func (b *Backend) Release(_ context.Context, node string, h control.HoldRequest) error {
	if _, err := b.run.site.named([]string{node}); err != nil {
		return err
	}
	return b.run.Executor.Release(node, h.By)
}

// Power implements control.Backend.
func (b *Backend) Power(ctx context.Context, nodes []string, tell func(control.Power)) ([]control.Power, error) {
	want, err := b.run.site.named(nodes)
	if err != nil {
		return nil, err
	}
	return b.run.bmcs.PowerOf(ctx, want, tell), nil
}

// Drain implements control.Backend.
func (b *Backend) Drain(context.Context) error {
	b.run.Executor.Drain()
	return nil
}

// Events implements control.Backend.
func (b *Backend) Events(from uint64) *event.Subscription { return b.bus.Subscribe(from) }

// sightingEvent shows a sighting as an event.
func sightingEvent(s install.Sighting) event.Event {
	e := event.Event{Time: s.Time.UTC(), Type: event.Evidence, Node: s.Node, Text: s.String(), Data: map[string]string{"mac": s.MAC.String()}}
	if s.Refused {
		e.Data["refused"] = "true"
	}
	return e
}
