// SPDX-License-Identifier: Apache-2.0

package provision

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
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/validate/accept"
)

// baselineWait bounds the look at a node that is being accepted. A look that is
// not done by then is given up, and the node is accepted all the same.
const baselineWait = 30 * time.Second

// accepting is the validation stage with one thing more: how a node is when it is
// accepted is kept, for whoever asks later what has drifted.
type accepting struct {
	stage.Stage
	run   *Running
	watch *drift.Observer
}

// accepting puts the recording around a stage.
func (r *Running) accepting(st stage.Stage, ssh reach.Nodes) stage.Stage {
	w := drift.NewObserver(ssh, nil)
	w.BMC = func(node string) (*bmc.Handle, error) { return r.bmcs.Handle(node) }
	w.Heard = func(node string) []wire.Neighbour {
		f, ok := r.fact(cabling.NeighboursFact.Of(subject.OfNode(node)))
		if !ok {
			return nil
		}
		list, err := cabling.NeighboursFact.Get(f)
		if err != nil {
			return nil // what cannot be read was not heard
		}
		return list
	}
	return accepting{st, r, w}
}

// Apply implements stage.Stage.
func (a accepting) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	if err := a.Stage.Apply(ctx, run, st); err != nil || st.ID.Base() != accept.ID(st.Subject.Name) {
		return err
	}
	n, ok := a.run.site.Inv.Node(st.Subject.Name)
	if !ok {
		return nil
	}
	look, cancel := context.WithTimeout(ctx, baselineWait)
	defer cancel()
	seen := a.watch.Look(look, n, run.Clock().Now())
	if err := context.Cause(ctx); err != nil {
		return err
	}
	snap := seen.Join(drift.Snapshot{}, "its BMC was not asked")
	snap.Verified = true
	if len(snap.Items) == 0 {
		run.Emit(event.Event{Type: event.Note, Text: "how it is was not recorded, so that `ironrail drift` cannot tell later what changed: " + firstGap(snap)})
		return nil
	}
	if err := a.run.keep().Accept(ctx, snap, seen.Lists); err != nil {
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

// keep writes baselines of this run.
func (r *Running) keep() drift.Keeper { return drift.Keeper{Store: r.store, Fence: r.fence} }
