// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/validate/accept"
)

// baselineWait bounds the look at a node that is being accepted. A look that is
// not done by then is given up, and the node is accepted all the same.
const baselineWait = 30 * time.Second

// recording is the validation stage with one thing more: how a node is when it is
// accepted is kept, for whoever asks later what has drifted.
type recording struct {
	stage.Stage
	inv   *inventory.Inventory
	keep  drift.Writer
	watch *drift.Observer
}

// RecordBaselines puts the recording of accepted nodes around the validation stage of a
// run. bmcs are those of the run; facts are read as they stand.
func (ob Observer) RecordBaselines(st stage.Stage, ssh reach.Nodes, bmcs reach.BMCs, keep drift.Writer) stage.Stage {
	w := drift.NewObserver(ssh, nil)
	w.BMC = bmcs.Handle
	facts := reach.Facts(keep.Store)
	w.Neighbours = func(node string) []wire.Neighbour {
		f, ok := facts(cabling.NeighboursFact.Of(subject.OfNode(node)))
		if !ok {
			return nil
		}
		list, err := cabling.NeighboursFact.Get(f)
		if err != nil {
			return nil // what cannot be read was not heard
		}
		return list
	}
	return recording{st, ob.Inv, keep, w}
}

// Apply implements stage.Stage.
func (a recording) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	if err := a.Stage.Apply(ctx, run, st); err != nil || st.ID.Base() != accept.ID(st.Subject.Name) {
		return err
	}
	n, ok := a.inv.Node(st.Subject.Name)
	if !ok {
		return nil
	}
	look, cancel := context.WithTimeout(ctx, baselineWait)
	defer cancel()
	seen := a.watch.Observe(look, n, run.Clock().Now())
	if err := context.Cause(ctx); err != nil {
		return err
	}
	snap := seen.Join(drift.Snapshot{}, "its BMC was not asked")
	snap.Verified = true
	if len(snap.Items) == 0 {
		run.Emit(event.Event{Type: event.Note, Text: "how it is was not recorded, so that `ironrail drift` cannot tell later what changed: " + firstGap(snap)})
		return nil
	}
	if err := a.keep.Accept(ctx, snap, seen.Lists); err != nil {
		return err
	}
	a.watch.Know(snap.Sets[wire.ItemPackages])
	return nil
}

// firstGap is why nothing is known.
func firstGap(s drift.Snapshot) string {
	if len(s.Gaps) == 0 {
		return "the node said nothing"
	}
	return strings.TrimSpace(s.Gaps[0].Why)
}
