// SPDX-License-Identifier: Apache-2.0

package resident

import (
	"context"
	"io"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision"
)

// backend is what a run, or what is idle, answers with.
type backend interface {
	control.Backend
	control.Director
	control.Consoler
	control.SwitchReader
}

// now is what answers now, for a request with this context, and how to give it back.
func (r *Resident) now(ctx context.Context) (context.Context, backend, func(), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.run != nil && r.run.backend != nil:
		return ctx, r.run.backend, func() {}, nil
	case r.idle != nil:
		i := r.idle
		i.users.Add(1)
		ctx, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(i.life, func() { cancel(context.Cause(i.life)) })
		return ctx, i.direct, func() { stop(); cancel(nil); i.users.Done() }, nil
	case r.run != nil:
		return nil, nil, nil, errkind.New(errkind.Unreachable, "a run is being checked").Do("Ask again in a moment.")
	}
	return nil, nil, nil, errkind.New(errkind.Unreachable, "the site cannot be opened: %s", r.trouble).Do("`ironrail check` shows what is wrong with its files.")
}

// with calls f with what answers now.
func with[T any](ctx context.Context, r *Resident, f func(context.Context, backend) (T, error)) (T, error) {
	ctx, b, done, err := r.now(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer done()
	return f(ctx, b)
}

// doWith is with for what has no answer but an error.
func doWith(ctx context.Context, r *Resident, f func(context.Context, backend) error) error {
	_, err := with(ctx, r, func(ctx context.Context, b backend) (struct{}, error) { return struct{}{}, f(ctx, b) })
	return err
}

// Status implements control.Backend.
func (r *Resident) Status(ctx context.Context) (control.Status, error) {
	s, err := with(ctx, r, func(ctx context.Context, b backend) (control.Status, error) { return b.Status(ctx) })
	if site := r.whileChecked(); err != nil && site != nil {
		s, err = site.Status(ctx, r.cfg.Store, r.cfg.Owner)
	}
	if err != nil {
		return s, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Serves = r.serves()
	if r.run != nil {
		s.First = r.run.from
	}
	if r.loan != nil && r.run == nil {
		s.Serves = append(s.Serves, r.loan.by.String()+" works on the state, or waits for an approval")
	}
	if r.boot.up != nil && r.run == nil {
		r.addSeen(&s)
	}
	r.addDrift(&s)
	return s, nil
}

// whileChecked is the site that was opened last, while a run is checked and nothing else answers; else
// nil.
func (r *Resident) whileChecked() *provision.Site {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.run == nil || r.run.backend != nil || r.idle != nil {
		return nil
	}
	return r.site
}

// Serves says what is done for nodes that boot, and what is wrong with the site's files.
func (r *Resident) Serves() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.serves()
}

// serves is Serves; r.mu is held.
func (r *Resident) serves() []string {
	list := []string{r.describeBoot()}
	if r.trouble != "" {
		list = append(list, r.trouble)
	}
	return list
}

// addSeen adds to the notes of nodes what they were seen to do since no run is active; r.mu is held.
func (r *Resident) addSeen(s *control.Status) {
	for _, n := range s.Nodes {
		if text := r.boot.up.Seen(n, r.restart.kept[n.Name]); text != "" {
			addNote(s, n.Name, text)
		}
	}
}

// Why implements control.Backend.
func (r *Resident) Why(ctx context.Context, node string) (control.Why, error) {
	y, err := with(ctx, r, func(ctx context.Context, b backend) (control.Why, error) { return b.Why(ctx, node) })
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		y.Notes = append(y.Notes, r.watch.notesOf(node)...)
	}
	if err == nil && y.Idle && r.boot.up != nil {
		if text := r.boot.up.Seen(y.Node, r.restart.kept[node]); text != "" {
			y.Notes = append(y.Notes, text)
		}
	}
	return y, err
}

// Look implements control.Backend.
func (r *Resident) Look(ctx context.Context, node string) (control.Look, error) {
	return with(ctx, r, func(ctx context.Context, b backend) (control.Look, error) { return b.Look(ctx, node) })
}

// Switch implements control.SwitchReader.
func (r *Resident) Switch(ctx context.Context, word string) (control.Switch, error) {
	return with(ctx, r, func(ctx context.Context, b backend) (control.Switch, error) { return b.Switch(ctx, word) })
}

// Hold implements control.Backend.
func (r *Resident) Hold(ctx context.Context, node string, h control.HoldRequest) error {
	return doWith(ctx, r, func(ctx context.Context, b backend) error { return b.Hold(ctx, node, h) })
}

// Release implements control.Backend.
func (r *Resident) Release(ctx context.Context, node string, h control.HoldRequest) error {
	err := doWith(ctx, r, func(ctx context.Context, b backend) error { return b.Release(ctx, node, h) })
	if err == nil {
		r.forgetKept(node)
	}
	return err
}

// AskBMCs implements control.Backend.
func (r *Resident) AskBMCs(ctx context.Context, q control.BMCQuestion, nodes []string, tell func(control.BMCAnswer)) ([]control.BMCAnswer, error) {
	return with(ctx, r, func(ctx context.Context, b backend) ([]control.BMCAnswer, error) {
		return b.AskBMCs(ctx, q, nodes, tell)
	})
}

// PlanDirect implements control.Director.
func (r *Resident) PlanDirect(ctx context.Context, q control.DirectRequest) (control.DirectPlan, error) {
	return with(ctx, r, func(ctx context.Context, b backend) (control.DirectPlan, error) { return b.PlanDirect(ctx, q) })
}

// DoDirect implements control.Director. No run begins meanwhile.
func (r *Resident) DoDirect(ctx context.Context, id string, report func(control.DirectResult)) error {
	r.mu.Lock()
	if i := r.idle; i != nil {
		i.work.Add(1)
		defer i.work.Add(-1)
	}
	r.mu.Unlock()
	return doWith(ctx, r, func(ctx context.Context, b backend) error { return b.DoDirect(ctx, id, report) })
}

// Console implements control.Consoler.
func (r *Resident) Console(ctx context.Context, q control.ConsoleRequest, w control.Watcher) error {
	return doWith(ctx, r, func(ctx context.Context, b backend) error { return b.Console(ctx, q, w) })
}

// Events implements control.Backend.
func (r *Resident) Events(from uint64) *event.Subscription { return r.cfg.Bus.Subscribe(from) }

// Snapshot implements control.Snapshotter.
func (r *Resident) Snapshot(ctx context.Context, w io.Writer) error {
	s, ok := r.cfg.Store.(control.Snapshotter)
	if !ok {
		return errkind.New(errkind.Unsupported, "this state is not kept in a file")
	}
	return s.Snapshot(ctx, w)
}

// Object implements control.Lender.
func (r *Resident) Object(ctx context.Context, k state.Key) (state.Object, bool, error) {
	return r.cfg.Store.Object(ctx, k)
}

// Objects implements control.Lender.
func (r *Resident) Objects(ctx context.Context, kind string) ([]state.Object, error) {
	return r.cfg.Store.Objects(ctx, kind)
}

var (
	_ control.Backend     = (*Resident)(nil)
	_ control.Lender      = (*Resident)(nil)
	_ control.Director    = (*Resident)(nil)
	_ control.Consoler    = (*Resident)(nil)
	_ control.Snapshotter = (*Resident)(nil)
)
