// SPDX-License-Identifier: Apache-2.0

package cable

import (
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// kindOf is the kind of link of a run: that of its fabric, else of what it ends
// in; Ethernet when nothing says otherwise.
func kindOf(r *Run) string {
	if r.Fabric != nil {
		if r.Fabric.Kind == infiniband {
			return infiniband
		}
		return ethernet
	}
	c := r.Cables[0]
	for _, e := range []*inventory.CableEnd{&c.From, &c.To} {
		if e.NIC != nil && e.NIC.LinkType == infiniband || e.Switch != nil && e.Switch.Kind == infiniband {
			return infiniband
		}
	}
	return ethernet
}

// speedOf is the speed of a run, of all its halves together; 0: not known.
func speedOf(r *Run) unit.BitRate {
	var sum unit.BitRate
	for _, c := range r.Cables {
		s := c.Speed
		if s == 0 {
			s = halfSpeed(r, c)
		}
		if s == 0 {
			return 0
		}
		sum += s
	}
	return sum
}

// halfSpeed is what the ends of a cable say: the lower one, as links settle.
func halfSpeed(r *Run, c *inventory.Cable) unit.BitRate {
	a, b := endSpeed(r, &c.From), endSpeed(r, &c.To)
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}

// endSpeed is the speed that one end of a cable of a run is made for; 0: not
// known.
func endSpeed(r *Run, e *inventory.CableEnd) unit.BitRate {
	switch {
	case e.NIC != nil:
		return nicSpeed(r, e)
	case e.Switch != nil && e.Switch.Fabric != nil:
		return portSpeed(e.Switch, e.Lane)
	}
	return 0
}

// nicSpeed is that of a node's port, shared by the halves that end in it.
func nicSpeed(r *Run, e *inventory.CableEnd) unit.BitRate {
	s := e.NIC.Speed
	if s == 0 && e.NIC.Fabric != nil {
		s = e.NIC.Fabric.Link
	}
	if len(r.Cables) > 1 && trunkAtFrom(r) && e.Node == r.Cables[0].From.Node {
		s /= unit.BitRate(len(r.Cables))
	}
	return s
}

// modelOf is what a switch of a fabric is, by its tier.
func modelOf(s *inventory.Switch) inventory.SwitchModel {
	m := s.Fabric.Switch
	over := inventory.SwitchModel{}
	switch s.Tier {
	case inventory.Spine:
		over = s.Fabric.Spine
	case inventory.Core:
		over = s.Fabric.Core
	}
	if over.Speed > 0 {
		m.Speed = over.Speed
	}
	if over.Split > 0 {
		m.Split = over.Split
	}
	if over.Model != "" {
		m.Model = over.Model
	}
	return m
}

// portSpeed is that of a switch's port, or of one lane of it; 0 when the fabric
// does not say it, or says that the port may be split and the cable does not say
// whether it is.
func portSpeed(s *inventory.Switch, lane int) unit.BitRate {
	m := modelOf(s)
	switch {
	case m.Speed == 0 && s.Fabric.Planes > 1, m.Split > 1 && lane == 0:
		return 0
	case m.Speed == 0:
		return s.Fabric.Link
	case lane > 0 && m.Split > 1:
		return m.Speed / unit.BitRate(m.Split)
	}
	return m.Speed
}

// trunkAtFrom reports whether the halves of a splitter part from their From end;
// else they meet at To.
func trunkAtFrom(r *Run) bool {
	a, b := &r.Cables[0].From, &r.Cables[len(r.Cables)-1].From
	return a.Node == b.Node && a.NIC == b.NIC && a.Switch == b.Switch && a.Port == b.Port
}
