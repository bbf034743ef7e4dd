// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"io"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/direct"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/remote"
	"github.com/ironrail/ironrail/provision/selection"
	"github.com/ironrail/ironrail/provision/status"
)

// directConfig is what direct work needs of the site, without a run.
func (s *Site) directConfig(store state.Store, fence state.Fence, bus *event.Bus, bmcs reach.BMCs, ssh *remote.Pool) direct.Config {
	w := s.offlineWorld()
	w.nodes = s.access().Nodes(ssh, reach.Facts(store))
	work := handover.New(s.Inv, handoverKinds(w), standings{store})
	open := func(node string) (direct.BMC, error) {
		h, err := bmcs.Handle(node)
		if err != nil {
			return nil, err // and no handle that is nil and looks like none
		}
		return h, nil
	}
	return direct.Config{Inv: s.Inv, BMC: open, Jobs: work.Jobs, JobsOf: work.JobsOf, Outlets: s.access().Feeds(nil).Outlets, Store: store, Fence: fence, Bus: bus, Capacity: capacity(s.Inv), Clock: clock.Wall{}}
}

// Direct owns the state for direct work alone, while no run is active. It implements
// control.Backend and control.Director.
type Direct struct {
	records
	desk  *direct.Desk
	lines *reach.Shared
	bmcs  reach.BMCs
	ssh   *remote.Pool
	bus   *event.Bus
	owner control.Identity
}

// OpenDirect begins direct work on the site as it is desired. The caller owns the state, and closes
// what this returns.
func (s *Site) OpenDirect(ctx context.Context, store state.Store, fence state.Fence, bus *event.Bus, owner control.Identity) (*Direct, error) {
	if err := s.Keys.CheckVirtual(ctx, store); err != nil {
		return nil, err
	}
	s, err := s.Desired(ctx, store, nil)
	if err != nil {
		return nil, err
	}
	d := &Direct{records: records{site: s, store: store, fence: fence}, bmcs: s.access().BMCs(reach.Facts(store)),
		ssh: remote.NewPoolOn(sshParallel, s.network), bus: bus, owner: owner}
	d.lines = reach.NewShared(reach.TerminalOn(s.network))
	d.desk = direct.NewDesk(s.directConfig(store, fence, bus, d.bmcs, d.ssh))
	return d, nil
}

// Close lets what is under way end, and gives sessions back.
func (d *Direct) Close(ctx context.Context) error {
	d.desk.Close()
	d.lines.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = d.bmcs.Pool.Close(ctx) // a session that is not closed expires at its BMC
	return d.ssh.Close()
}

// PlanDirect implements control.Director. An interrupted run is no reason to refuse a node, and is said.
func (d *Direct) PlanDirect(ctx context.Context, q control.DirectRequest) (control.DirectPlan, error) {
	p, err := d.desk.Plan(ctx, q)
	if err != nil {
		return p, err
	}
	last, version, err := state.Get[state.Run](ctx, d.store, state.LastRun)
	if err == nil && version != state.Absent && last.Resumable() {
		p.Notes = append(p.Notes, "the last run was interrupted and may have work left for these nodes; `ironrail apply` does the rest")
	}
	return p, err
}

// DoDirect implements control.Director.
func (d *Direct) DoDirect(ctx context.Context, id string, report func(control.DirectResult)) error {
	return d.desk.Do(ctx, id, report)
}

// Console implements control.Consoler.
func (d *Direct) Console(ctx context.Context, q control.ConsoleRequest, w control.Watcher) error {
	return openConsole(ctx, d.desk, d.bmcs, d.lines, q, w)
}

// Status implements control.Backend.
func (d *Direct) Status(ctx context.Context) (control.Status, error) {
	return d.site.Status(ctx, d.store, d.owner)
}

// Status is where the nodes stand that a state knows, while no run is active.
func (s *Site) Status(ctx context.Context, r state.Reader, owner control.Identity) (control.Status, error) {
	x, err := status.ReadSite(ctx, s.Inv, r, time.Now())
	return control.Status{Owner: owner, Nodes: x.Nodes, Notes: x.Notes, Last: x.Last, Skipped: x.Skipped, Findings: x.Findings}, err
}

// Why implements control.Backend.
func (d *Direct) Why(ctx context.Context, node string) (control.Why, error) {
	if _, ok := d.site.Inv.Node(node); !ok {
		return control.Why{}, unknownNode(d.site, node)
	}
	y, err := status.ReadNode(ctx, d.site.Inv, d.store, node)
	if err != nil {
		return y, err
	}
	y.Idle = true
	now := time.Now()
	all, err := status.ReadSite(ctx, d.site.Inv, d.store, now)
	y.Alike = why.FindSimilarNodes(node, why.SummariseNodes(all), status.ListTraits(d.site.Inv), now)
	return y, err
}

// Switch implements control.SwitchReader.
func (d *Direct) Switch(ctx context.Context, name string) (control.Switch, error) {
	return status.ReadSwitch(ctx, d.site.Inv, d.store, name)
}

// Look implements control.Backend.
func (d *Direct) Look(ctx context.Context, node string) (control.Look, error) {
	n, ok := d.site.Inv.Node(node)
	if !ok {
		return control.Look{}, unknownNode(d.site, node)
	}
	return reach.AskBMC(ctx, n, d.bmcs, d.site.access().Feeds(nil)), nil
}

// Hold implements control.Backend: what is under way on the node is stopped.
func (d *Direct) Hold(ctx context.Context, node string, h control.HoldRequest) error {
	if _, err := selection.CheckNames(d.site.Inv, []string{node}); err != nil {
		return err
	}
	err := state.HoldNode(ctx, d.store, d.fence, node, state.Hold{By: h.By, Reason: h.Reason, At: time.Now().UTC()})
	d.desk.Stop(node)
	return err
}

// Release implements control.Backend.
func (d *Direct) Release(ctx context.Context, node string, h control.HoldRequest) error {
	if _, err := selection.CheckNames(d.site.Inv, []string{node}); err != nil {
		return err
	}
	if d.desk.IsActive(node) {
		return errDirect(node)
	}
	return state.ReleaseNode(ctx, d.store, d.fence, node, state.Hold{By: h.By, At: time.Now().UTC()})
}

// errDirect refuses to release a node while a command of an operator still ends on it.
func errDirect(node string) error {
	return errkind.New(errkind.Refused, "a command that was stopped has not ended yet on %s", node).Do("Try again in a minute.")
}

// AskBMCs implements control.Backend.
func (d *Direct) AskBMCs(ctx context.Context, q control.BMCQuestion, nodes []string, tell func(control.BMCAnswer)) ([]control.BMCAnswer, error) {
	want, err := selection.CheckNames(d.site.Inv, nodes)
	if err != nil {
		return nil, err
	}
	return d.bmcs.Ask(ctx, q, want, tell), nil
}

// Drain implements control.Backend: there is no run.
func (*Direct) Drain(context.Context) error {
	return errkind.New(errkind.Refused, "no run is active")
}

// Events implements control.Backend.
func (d *Direct) Events(from uint64) *event.Subscription { return d.bus.Subscribe(from) }

// Snapshot implements control.Snapshotter.
func (d *Direct) Snapshot(ctx context.Context, w io.Writer) error {
	return snapshot(ctx, d.store, w)
}

var (
	_ direct.BMC           = (*bmc.Handle)(nil)
	_ direct.Limits        = (*Running)(nil)
	_ control.Director     = (*Direct)(nil)
	_ control.Consoler     = (*Direct)(nil)
	_ control.Snapshotter  = (*Direct)(nil)
	_ control.SwitchReader = (*Direct)(nil)
	_ control.Backend      = (*Direct)(nil)
)
