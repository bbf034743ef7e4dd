// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
)

// lifts undo what plants of kinds that come and go have done: the quantity is as it was. What
// was counted stays.
var lifts = map[fault.Kind]func(*World, fault.Fault) error{
	fault.BMCDead:        onNode(func(n *Node, _ fault.Fault) error { n.oob.Cut(false); return nil }),
	fault.PCIeErrors:     onGPU(func(hw *metal.Node, at string) { hw.DisturbPCIe(at, 0) }),
	fault.NVLinkErrors:   onNVLink(func(hw *metal.Node, at string) { hw.DisturbNVLink(at, 0) }),
	fault.DIMMErrors:     onNode(func(n *Node, _ fault.Fault) error { n.metal.FlipBits(0); return nil }),
	fault.NVLinkDown:     onNVLink(func(hw *metal.Node, at string) { hw.DarkenNVLinks(at, 0) }),
	fault.NVLinkUnseated: onNVLink(func(hw *metal.Node, at string) { hw.DarkenNVLinks(at, 0) }),
	fault.NoTime:         onNode((*Node).restoreTime),
	fault.DegradedLink:   onPort(func(m *model.Model, id model.PortID) error { return restoreLink(m, id) }),
	fault.HighBER:        onPort(func(m *model.Model, id model.PortID) error { return m.SetErrors(id, 0) }),
	fault.LinkDown:       onPort(func(m *model.Model, id model.PortID) error { return m.SetDown(id, false) }),
	fault.BadUplink:      (*World).widenTrunk,
	fault.BadLeaf:        passAll,
	fault.BadSpine:       passAll,
	fault.SlowTrunk:      onTrunk(func(m *model.Model, c *inventory.Cable) error { return m.SetTrunkShare(trunkEnd(c.From), 1) }),
	fault.TrunkErrors:    onTrunk(func(m *model.Model, c *inventory.Cable) error { return m.SetTrunkErrors(trunkEnd(c.To), 0) }),
}

// Lift takes a fault away that comes and goes, now.
func (w *World) Lift(f fault.Fault) error {
	lift := lifts[f.Kind]
	if lift == nil {
		return errkind.New(errkind.Unsupported, "fault %s does not go away by itself", f.Kind)
	}
	return lift(w, f)
}

// onPort changes the link of the port that a fault names.
func onPort(change func(*model.Model, model.PortID) error) func(*World, fault.Fault) error {
	return onNode(func(n *Node, f fault.Fault) error {
		id, err := n.port(f.Port)
		if err != nil {
			return err
		}
		return change(n.world.model, id)
	})
}

// restoreLink gives a link all its lanes back, and no bit errors.
func restoreLink(m *model.Model, id model.PortID) error {
	p, ok := m.Port(id)
	if !ok {
		return errkind.New(errkind.NotFound, "there is no port %s", id)
	}
	if err := m.SetLanes(id, p.Lanes); err != nil {
		return err
	}
	return m.SetErrors(id, 0)
}

// passAll lets a switch pass all that it is brought.
func passAll(w *World, f fault.Fault) error { return w.model.SetSwitchShare(f.Leaf, 1) }

// widenTrunk gives a link between two switches all its lanes back.
func (w *World) widenTrunk(f fault.Fault) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.narrow, fault.FindTrunk(w.inv, f.Port))
	return nil
}

// jobFlows is how many flows a job has from one port to another, which switches spread over the cables
// between them: collectives of NCCL use 16 channels or so. Belief.
const jobFlows = 16

// CarryTraffic lets every port of a fabric that is up send so many bytes to the same rail of
// the next node, as jobs do: errors are counted where bytes go.
func (w *World) CarryTraffic(bytes int64) {
	type rail struct {
		fabric string
		number int
	}
	of := map[rail][]model.PortID{}
	for _, n := range w.model.Nodes() {
		for _, p := range w.model.Ports(n) {
			if p.Fabric != "" && p.Medium.RDMA() && w.model.State(p.ID).Up {
				r := rail{p.Fabric, p.Rail}
				of[r] = append(of[r], p.ID)
			}
		}
	}
	for _, list := range of {
		for i, id := range list {
			w.model.Carry(id, list[(i+1)%len(list)], jobFlows, bytes)
		}
	}
}

// LoadGPUs puts load on the GPUs of all nodes, as jobs do, or takes it off.
func (w *World) LoadGPUs(on bool) {
	for _, n := range w.nodes {
		n.metal.LoadGPUs(on)
	}
}
