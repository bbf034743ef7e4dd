// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"maps"
	"slices"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// comesUp is how a NIC sorts after a boot: by the priority of a VLAN tag, every
// DSCP in the priority of its class selector, nothing paused.
func comesUp() wire.RoCESorting {
	s := wire.RoCESorting{Trust: "pcp"}
	for d := range 64 {
		s.Set(d, d>>3)
	}
	return s
}

// Sorting is roce.QoS.
func (k *Kernel) Sorting(name, _ string) (wire.RoCESorting, error) {
	i, err := k.port(name)
	if err != nil {
		return wire.RoCESorting{}, err
	}
	s := k.state(i).sorting
	if s.Priorities == nil {
		s = comesUp()
	}
	s.Priorities, s.Paused = maps.Clone(s.Priorities), slices.Clone(s.Paused)
	if bit := k.node.stuckPause(k.node.shape.ports[i].function); bit >= 0 && !slices.Contains(s.Paused, bit) {
		s.Paused = append(s.Paused, bit)
		slices.Sort(s.Paused)
	}
	return s, nil
}

// SetSorting is roce.QoS.
func (k *Kernel) SetSorting(name, _ string, want wire.RoCELossless) error {
	i, err := k.port(name)
	if err != nil {
		return err
	}
	if k.node.shape.ports[i].soft || k.node.shape.ports[i].ib {
		return errkind.New(errkind.Unsupported, "%s: operation not supported", name).Do("Use a NIC that has data centre bridging.")
	}
	return k.change(name, func(d *netdev) {
		s := comesUp()
		s.Trust, s.TrafficClass, s.Paused = "dscp", want.TrafficClass, want.Paused()
		s.Set(want.DSCP, want.Priority)
		s.Set(want.CNP, want.CNPPriority)
		d.sorting = s
	})
}

// StickPause makes one bit of the register of paused priorities of a PCI function
// stay on, whatever is written; false when the function is not there.
func (n *Node) StickPause(address string, priority int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, f := range n.shape.functions {
		if f.address == address && !n.removed[i] {
			if n.pauses == nil {
				n.pauses = map[int]int{}
			}
			n.pauses[i] = priority
			return true
		}
	}
	return false
}

// stuckPause is the priority that a function pauses whatever is written; -1: none.
func (n *Node) stuckPause(function int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p, stuck := n.pauses[function]; stuck {
		return p
	}
	return -1
}
