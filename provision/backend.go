// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/direct"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/selection"
	"github.com/ironrail/ironrail/provision/status"
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
	s.Notes, err = status.ReadNotes(ctx, b.run.site.Inv, b.run.store, s.Nodes)
	return s, err
}

// status is Status without notes, which other answers have no need of.
func (b *Backend) status(ctx context.Context) (control.Status, error) {
	run := b.run.Executor.Status()
	ids := make([]plan.StepID, len(run.Active))
	for i, x := range run.Active {
		ids[i] = x.ID
	}
	nodes, err := status.ListNodes(ctx, b.run.site.Inv, b.run.store)
	return control.Status{Owner: b.owner, Run: &run, Nodes: nodes, Waits: b.run.Executor.Waits(), Paces: b.run.Executor.Budgets(ids...)}, err
}

// Why implements control.Backend: the state's story, what is under way, what the
// boot services saw, and who else stands the same way.
func (b *Backend) Why(ctx context.Context, node string) (control.Why, error) {
	if _, ok := b.run.site.Inv.Node(node); !ok {
		return control.Why{}, unknownNode(b.run.site, node)
	}
	w, err := status.ReadNode(ctx, b.run.site.Inv, b.run.store, node)
	if err != nil {
		return w, err
	}
	b.live(&w)
	for _, s := range b.run.bootLog.Of(node, time.Time{}) {
		w.Evidence = append(w.Evidence, bootEvidence(s))
	}
	for _, s := range b.run.bootLog.Unknown() {
		w.Evidence = append(w.Evidence, bootEvidence(s))
	}
	current, err := b.status(ctx)
	if err == nil {
		now := time.Now()
		w.Alike = why.FindSimilarNodes(node, why.SummariseNodes(why.NewSite(current, now)), status.ListTraits(b.run.site.Inv), now)
	}
	return w, err
}

// unknownNode says that a name is not in the inventory, and which may be meant.
func unknownNode(s *Site, node string) error {
	_, err := selection.CheckNames(s.Inv, []string{node})
	return err
}

// Hold implements control.Backend.
func (b *Backend) Hold(_ context.Context, node string, h control.HoldRequest) error {
	if _, err := selection.CheckNames(b.run.site.Inv, []string{node}); err != nil {
		return err
	}
	err := b.run.Executor.Hold(node, h.By, h.Reason)
	b.run.desk.Stop(node)
	return err
}

// Release implements control.Backend.
func (b *Backend) Release(_ context.Context, node string, h control.HoldRequest) error {
	if _, err := selection.CheckNames(b.run.site.Inv, []string{node}); err != nil {
		return err
	}
	if b.run.desk.IsActive(node) { // else the run would go on with it meanwhile
		return errDirect(node)
	}
	return b.run.Executor.Release(node, h.By)
}

// AskBMCs implements control.Backend.
func (b *Backend) AskBMCs(ctx context.Context, q control.BMCQuestion, nodes []string, tell func(control.BMCAnswer)) ([]control.BMCAnswer, error) {
	want, err := selection.CheckNames(b.run.site.Inv, nodes)
	if err != nil {
		return nil, err
	}
	return b.run.bmcs.Ask(ctx, q, want, tell), nil
}

// PlanDirect implements control.Director.
func (b *Backend) PlanDirect(ctx context.Context, q control.DirectRequest) (control.DirectPlan, error) {
	return b.run.desk.Plan(ctx, q)
}

// DoDirect implements control.Director.
func (b *Backend) DoDirect(ctx context.Context, id string, report func(control.DirectResult)) error {
	return b.run.desk.Do(ctx, id, report)
}

// Console implements control.Consoler: a console that the run reads is shared.
func (b *Backend) Console(ctx context.Context, q control.ConsoleRequest, w control.Watcher) error {
	return openConsole(ctx, b.run.desk, b.run.bmcs, b.run.shared, q, w)
}

// openConsole copies the console of a node to a watcher, by the rules of direct work.
func openConsole(ctx context.Context, d *direct.Desk, bmcs reach.BMCs, shared *reach.Shared, q control.ConsoleRequest, w control.Watcher) error {
	return d.Console(ctx, q, w, func(ctx context.Context, keys <-chan string) error {
		return shared.OpenNode(ctx, bmcs, q.Node, w.To, keys, w.Up)
	})
}

// Drain implements control.Backend.
func (b *Backend) Drain(context.Context) error {
	b.run.Executor.Drain()
	return nil
}

// Events implements control.Backend.
func (b *Backend) Events(from uint64) *event.Subscription { return b.bus.Subscribe(from) }

// bootEvidence shows a boot event as an event of the run.
func bootEvidence(s install.BootEvent) event.Event {
	e := event.Event{Time: s.Time.UTC(), Type: event.Evidence, Node: s.Node, Text: s.String(), Data: map[string]string{"mac": s.MAC.String()}}
	if s.Refused {
		e.Data["refused"] = "true"
	}
	return e
}

// live adds what the run does to what is known of a node.
func (b *Backend) live(w *control.Why) {
	e := b.run.Executor
	run := e.Status()
	w.Draining = run.Draining
	w.Active, w.Paces = activeOn(run, w.Node.Name), nil
	var ids []plan.StepID
	for _, x := range w.Active {
		ids = append(ids, x.ID)
	}
	if len(ids) > 0 {
		w.Paces = e.Budgets(ids...)
	}
	if waits, ok := e.Waiting(w.Node.Name); ok {
		w.Waiting = &waits
	}
	for _, x := range w.Active {
		if x.Since.IsZero() {
			continue
		}
		if c := b.run.consoles.Of(w.Node.Name, x.ID); c != nil {
			w.Console = c
		}
		if x.ID.Base() == install.StepOf(w.Node.Name, install.Netboot) {
			w.Guess = b.probableCause(w.Node.Name, x.Since)
		}
	}
}

// activeOn are the active steps of a run that are about a node.
func activeOn(run apply.Status, node string) (out []apply.StepStatus) {
	for _, x := range run.Active {
		if x.Node == node {
			out = append(out, x)
			continue
		}
		for _, m := range x.Members {
			if m == node {
				out = append(out, x)
			}
		}
	}
	return out
}

// probableCause is what the install stage would blame if the node stayed silent now.
func (b *Backend) probableCause(node string, since time.Time) *control.Guess {
	n, ok := b.run.site.Inv.Node(node)
	if !ok {
		return nil
	}
	lines, _ := b.run.consoles.Printed(node)
	d := install.Diagnose(n, b.run.bootLog.Of(node, since), lines)
	return &control.Guess{Cause: d.Cause, Action: d.Action}
}

// Switch implements control.SwitchReader: what the state knows, and what is under way.
func (b *Backend) Switch(ctx context.Context, name string) (control.Switch, error) {
	s, err := status.ReadSwitch(ctx, b.run.site.Inv, b.run.store, name)
	if err != nil {
		return s, err
	}
	run := b.run.Executor.Status()
	s.Draining = run.Draining
	var ids []plan.StepID
	for _, x := range run.Active {
		if slices.ContainsFunc(status.ListSwitchSteps(b.run.site.Inv, s.Name), func(id plan.StepID) bool { return x.ID.Base() == id }) {
			s.Active, ids = append(s.Active, x), append(ids, x.ID)
		}
	}
	if len(ids) > 0 {
		s.Paces = b.run.Executor.Budgets(ids...)
	}
	return s, nil
}

// Look implements control.Backend.
func (b *Backend) Look(ctx context.Context, node string) (control.Look, error) {
	n, ok := b.run.site.Inv.Node(node)
	if !ok {
		return control.Look{}, unknownNode(b.run.site, node)
	}
	return reach.AskBMC(ctx, n, b.run.bmcs, b.run.site.access().Feeds(nil)), nil
}

var (
	_ control.Snapshotter = (*Backend)(nil)
	_ control.Director    = (*Backend)(nil)
	_ control.Consoler    = (*Backend)(nil)
)

// Snapshot implements control.Snapshotter.
func (b *Backend) Snapshot(ctx context.Context, w io.Writer) error {
	return snapshot(ctx, b.run.store, w)
}

// snapshot copies the file of a state.
func snapshot(ctx context.Context, store state.Store, w io.Writer) error {
	s, ok := store.(control.Snapshotter)
	if !ok {
		return errkind.New(errkind.Unsupported, "this state is not kept in a file")
	}
	return s.Snapshot(ctx, w)
}
