// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/host"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/target"
)

// healthWait bounds the health checks of one node: nvidia-smi of eight GPUs whose driver is
// not kept loaded takes half a minute.
const healthWait = 3 * time.Minute

// healthLook runs the health checks of accepted nodes once more.
type healthLook struct {
	nodes onnode.Nodes
	facts lookedUp
}

// lookedUp finds facts by their keys.
type lookedUp func(fact.Key) (fact.Fact, bool)

// Fact returns a fact; false when it is not known.
func (l lookedUp) Fact(k fact.Key) (fact.Fact, bool) { return l(k) }

// faults are what the checks find, and what could not be seen. A node that does not answer is
// one of its own unknowns.
func (h healthLook) faults(ctx context.Context, n *inventory.Node) ([]judge.Fault, *drift.Unknown) {
	if !target.HasGates(n) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	found, err := gate.Look(ctx, h.nodes, n, h.facts)
	if err != nil {
		return nil, &drift.Unknown{Node: n.Name, Kind: drift.Health, Why: err.Error()}
	}
	return found, nil
}

// lookAtHealth adds to what was seen of a node what its health checks and its BMC say. asked: its BMC
// was asked in this look, and is asked for supplies, fans and air as well. A BMC that did not
// answer, or cannot tell, says nothing here.
func (l *driftLook) lookAtHealth(ctx context.Context, n *inventory.Node, x *nodeObservation, asked bool) {
	if l.health == nil || !l.accepted[n.Name] || x.isDead() {
		return
	}
	var blind *drift.Unknown
	if x.faults, blind = l.health.faults(ctx, n); blind != nil {
		x.blind = append(x.blind, *blind)
	}
	if asked {
		x.faults = append(x.faults, l.chassisFaults(ctx, n)...)
	}
}

// chassisFaults are what a node's BMC says of supplies, fans and air now.
func (l *driftLook) chassisFaults(ctx context.Context, n *inventory.Node) []judge.Fault {
	ctx, cancel := context.WithTimeout(ctx, host.ChassisWait)
	defer cancel()
	h, err := reach.ChassisBy(l.bmcs.Handle)(n.Name)
	if err != nil {
		return nil
	}
	parts, err := h.Parts(ctx)
	if err != nil {
		return nil
	}
	found, _ := host.JudgeChassis(n.Hardware, host.Chassis{Parts: parts, Watched: l.wants(drift.Power) && host.IsWatched(n)})
	return found
}

// changesOf makes changes of faults of a node that had none when it was accepted.
func changesOf(x nodeObservation, since time.Time) (all []drift.Change) {
	for _, f := range x.faults {
		all = append(all, drift.Change{Node: x.Node, Kind: drift.Health, Part: f.Part, Name: "health checks", Was: "passed", Is: f.Cause, Since: since, Action: f.Action})
	}
	return all
}

// isDead reports whether nothing was seen of the node's own system.
func (x nodeObservation) isDead() bool {
	for _, g := range x.Gaps {
		if g.Kind == wire.ItemHardware {
			return true
		}
	}
	return false
}
