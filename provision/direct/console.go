// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// CheckHold refuses to type at the console of a node that somebody else has on hold. Who holds a node types
// at it.
func CheckHold(ctx context.Context, r state.Reader, node, by string) error {
	now, _, err := state.Get[state.Node](ctx, r, state.NodeKey(node))
	if err == nil && now.Hold != nil && now.Hold.By != by {
		err = errHeldBy(node, now.Hold)
	}
	return err
}

// CheckIdentity refuses a node whose BMC says that it is of another one.
func CheckIdentity(ctx context.Context, inv *inventory.Inventory, open func(node string) (BMC, error), node string) error {
	n, ok := inv.Node(node)
	if !ok {
		return errkind.New(errkind.NotFound, "%s is not in the inventory", node)
	}
	d := Desk{cfg: Config{Inv: inv, BMC: open}}
	_, _, err := d.reach(ctx, n)
	return err
}

// Console copies a console to w, as open opens it, and types what comes from keys where the request asks
// for it: by the rules of CheckHold and CheckIdentity, and with who typed, from when to when, in the journal. What was
// typed is nowhere.
func (d *Desk) Console(ctx context.Context, q control.ConsoleRequest, open func(keys <-chan string) error, keys <-chan string) error {
	if !q.Type {
		return open(nil)
	}
	if err := CheckHold(ctx, d.cfg.Store, q.Node, q.By); err != nil {
		return err
	}
	if err := CheckIdentity(ctx, d.cfg.Inv, d.cfg.BMC, q.Node); err != nil {
		return err
	}
	x := state.Direct{Node: q.Node, Verb: "console", Does: "type at its console", By: q.By, At: d.now(), State: state.EffectIntended}
	record := context.WithoutCancel(ctx)
	if err := state.RecordDirect(record, d.cfg.Store, d.cfg.Fence, x); err != nil {
		return err
	}
	d.cfg.Bus.Emit(event.Event{Type: event.Direct, Node: q.Node, Text: "console opened to type at by " + q.By, Data: map[string]string{"verb": "console", "by": q.By}})
	err := open(keys)
	x.Ended, x.State = d.now(), state.EffectIsDone
	x.Detail = fmt.Sprintf("open to type at for %s", x.Ended.Sub(x.At).Round(time.Second))
	if err != nil {
		x.State, x.Detail = state.EffectNotDone, x.Detail+": "+errkind.Line(err)
	}
	d.cfg.Bus.Emit(event.Event{Type: event.Direct, Node: q.Node, Text: "console: " + x.Detail, Data: map[string]string{"verb": "console", "by": q.By}})
	if rerr := state.RecordDirect(record, d.cfg.Store, d.cfg.Fence, x); err == nil {
		err = rerr
	}
	return err
}
