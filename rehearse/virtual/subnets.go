// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/subnet"
	"github.com/ironrail/ironrail/rehearse/virtual/wiring"
)

// laneSpeeds are the generations of InfiniBand by the rate of a link of four
// lanes, bits a second.
var laneSpeeds = []struct {
	least unit.BitRate
	name  string
}{{800e9, "XDR"}, {400e9, "NDR"}, {200e9, "HDR"}, {100e9, "EDR"}, {56e9, "FDR"}, {40e9, "QDR"}, {0, "SDR"}}

// narrowTrunk leaves one lane of a link between two switches.
func (w *World) narrowTrunk(f fault.Fault) error {
	c := fault.FindTrunk(w.inv, f.Port)
	if c == nil || c.From.Switch.Fabric == nil || w.subnets[c.From.Switch.Fabric.Name] == nil {
		return errkind.New(errkind.NotFound, "%s is no link between switches of InfiniBand", f.Port)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.narrow[c] = oneLane
	return nil
}

// lanesOf is how many lanes of a link between switches carry.
func (w *World) lanesOf(c *inventory.Cable) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n, ok := w.narrow[c]; ok {
		return n
	}
	return fabricLanes
}

// fabricLanes is how many lanes a whole link has.
const fabricLanes = 4

// SubnetManager is the controller's host on an InfiniBand fabric; nil: there is no
// such fabric.
func (w *World) SubnetManager(fabric string) *subnet.Manager { return w.subnets[fabric] }

// endManagers ends the subnet managers of the controller.
func (w *World) endManagers(fault.Fault) error {
	for _, m := range w.subnets {
		m.End()
	}
	return nil
}

// switchOnManager switches on the subnet manager of a switch.
func (w *World) switchOnManager(f fault.Fault) error {
	for _, s := range w.inv.Switches {
		if s.Name == f.Leaf && s.Fabric != nil && w.subnets[s.Fabric.Name] != nil {
			w.subnets[s.Fabric.Name].SwitchOn(s.Name)
			return nil
		}
	}
	return errkind.New(errkind.NotFound, "%s is no switch of InfiniBand", f.Leaf)
}

// newSubnets makes a subnet manager for every InfiniBand fabric.
func (w *World) newSubnets() {
	w.subnets = map[string]*subnet.Manager{}
	for _, f := range w.inv.Fabrics {
		if f.Kind == "infiniband" {
			w.subnets[f.Name] = subnet.New(&subnetWiring{w, f}, w.opt.Clock, w.opt.Standbys[f.Name])
		}
	}
}

// subnetWiring is the cables of one InfiniBand fabric as they are now.
type subnetWiring struct {
	w *World
	f *inventory.Fabric
}

// Ports implements subnet.Wiring.
func (s *subnetWiring) Ports() (list []subnet.Port) {
	for _, n := range s.w.inv.Nodes {
		node := s.w.nodes[n.Name]
		if node == nil || node.chassis.Power() != chassis.On {
			continue
		}
		for _, p := range node.metal.Ports() {
			if p.GUID == 0 || !s.on(n, p.NIC) {
				continue
			}
			id := model.PortID{Node: n.Name, NIC: p.NIC, Index: p.Index}
			state := s.w.model.State(id)
			q := subnet.Port{Node: n.Name, Name: n.Name + " " + p.RDMA, HCA: p.GUID, GUID: p.GUID, Lanes: cmp.Or(state.Lanes, fabricLanes), Speed: s.speed()}
			if end, up := s.w.cables.Far(wiring.Port(id)); up && state.Up {
				q.Switch, q.Number = end.Switch, end.Number
			}
			list = append(list, q)
		}
	}
	return list
}

// on reports whether a NIC of a node is on the fabric.
func (s *subnetWiring) on(n *inventory.Node, nic string) bool {
	return slices.ContainsFunc(n.Hardware.NICs, func(x inventory.NIC) bool { return x.Name == nic && x.Fabric == s.f })
}

func (s *subnetWiring) speed() string {
	link := s.f.Link
	for _, n := range s.w.inv.Nodes {
		for _, nic := range n.Hardware.NICs {
			if link == 0 && nic.Fabric == s.f {
				link = nic.Speed
			}
		}
	}
	for _, g := range laneSpeeds {
		if link >= g.least && link > 0 {
			return g.name
		}
	}
	return "NDR"
}

// Trunks implements subnet.Wiring.
func (s *subnetWiring) Trunks() (list []subnet.Trunk) {
	for _, c := range s.w.inv.Cables {
		from, to := c.From.Switch, c.To.Switch
		if from != nil && to != nil && (from.Fabric == s.f || to.Fabric == s.f) && !s.isDown(c.From) {
			list = append(list, subnet.Trunk{From: from.Name, FromPort: c.From.Port, To: to.Name, ToPort: c.To.Port, Lanes: s.w.lanesOf(c), Speed: s.speed(),
				Counted: [2]subnet.Counted{s.counted(c.From), s.counted(c.To)}})
		}
	}
	return list
}

// isDown reports whether the cable between switches in a port has no link.
func (s *subnetWiring) isDown(e inventory.CableEnd) bool {
	c, _ := s.w.model.SwitchCounters(trunkEnd(e))
	return c.Down
}

// counted is what a port of a switch has counted.
func (s *subnetWiring) counted(e inventory.CableEnd) subnet.Counted {
	c, _ := s.w.model.SwitchCounters(trunkEnd(e))
	return subnet.Counted{XmitData: c.XmitBytes, RcvData: c.RcvBytes, XmitPackets: c.XmitPackets, RcvPackets: c.RcvPackets, SymbolErrors: c.SymbolError, RcvErrors: c.RcvErrors}
}

// trunkEnd is the end of a cable between switches as the model has it.
func trunkEnd(e inventory.CableEnd) model.SwitchPort {
	return model.SwitchPort{Switch: e.Switch.Name, Number: e.Port, Lane: e.Lane}
}

// onTrunk changes the cable between two switches that a fault names by its lower end.
func onTrunk(change func(*model.Model, *inventory.Cable) error) func(*World, fault.Fault) error {
	return func(w *World, f fault.Fault) error { return w.onTrunkAt(f.Port, change) }
}

// onTrunkAt changes the cable between two switches whose lower end is in a port.
func (w *World) onTrunkAt(port string, change func(*model.Model, *inventory.Cable) error) error {
	c := fault.FindTrunk(w.inv, port)
	if c == nil {
		return errkind.New(errkind.NotFound, "%s is no cable between two switches", port)
	}
	return change(w.model, c)
}

// Switches implements subnet.Wiring.
func (s *subnetWiring) Switches() (list []subnet.Switch) {
	mine := map[string]bool{}
	for _, sw := range s.w.inv.Switches {
		mine[sw.Name] = sw.Fabric == s.f
	}
	for _, t := range s.Trunks() {
		mine[t.From], mine[t.To] = true, true
	}
	for _, p := range s.Ports() {
		mine[p.Switch] = true
	}
	for _, sw := range s.w.cables.Switches() {
		if mine[sw.Name] {
			list = append(list, subnet.Switch{Name: sw.Name, Ports: sw.Ports})
		}
	}
	slices.SortFunc(list, func(a, b subnet.Switch) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// table is what the subnet manager has written into a port: its LID and P_Keys.
func (w *World) table(f *inventory.Fabric, guid addr.GUID) (lid int, keys []uint16) {
	if m := w.subnets[f.Name]; m != nil {
		return m.Table(guid)
	}
	return 0, nil
}
