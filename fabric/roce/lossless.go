// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/gocty"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// Lossless is how RDMA traffic is kept from being dropped: one priority, into
// which one DSCP is sorted, is paused (PFC, IEEE 802.1Qbb) and marked (ECN,
// RFC 3168), and congestion notifications have a priority of their own. What is
// not said is as NVIDIA and AMD recommend for RoCEv2: DSCP 26 in priority 3, and
// congestion notifications with DSCP 48.
type Lossless struct {
	Priority int  // 0 to 7; also the traffic class, queue and priority group
	DSCP     int  // of RDMA packets
	CNP      int  // DSCP of congestion notification packets
	PFC      bool // pause the priority
	ECN      bool // mark packets of the priority, as DCQCN needs
}

// LosslessOf reads the lossless block of a fabric; false when it has none.
func LosslessOf(f *inventory.Fabric) (Lossless, bool) {
	l := Lossless{Priority: 3, DSCP: 26, CNP: 48, PFC: true, ECN: true}
	block, ok := inventory.Attribute(f.Value, "lossless")
	if !ok {
		return l, false
	}
	for name, to := range map[string]*int{"priority": &l.Priority, "dscp": &l.DSCP, "cnp_dscp": &l.CNP} {
		if v, given := inventory.Attribute(block, name); given && v.Type() == cty.Number {
			if n := 0; gocty.FromCtyValue(v, &n) == nil {
				*to = n
			}
		}
	}
	for name, to := range map[string]*bool{"pfc": &l.PFC, "ecn": &l.ECN} {
		if v, given := inventory.Attribute(block, name); given && v.Type() == cty.Bool {
			*to = v.True()
		}
	}
	return l, true
}

// CNPPriority is the priority of congestion notifications: that of their DSCP's
// class selector, as NICs have it by default (RFC 2474, 4.2.2).
func (l Lossless) CNPPriority() int { return l.CNP >> 3 }

// PriorityOf is the priority of a DSCP on every device of the fabric: RDMA and
// congestion notifications have theirs, and nothing else shares that of RDMA.
func (l Lossless) PriorityOf(dscp int) int {
	switch p := dscp >> 3; {
	case dscp == l.DSCP:
		return l.Priority
	case p == l.Priority && dscp != l.CNP:
		return 0
	default:
		return p
	}
}

// TrafficClass is the traffic class byte of RDMA packets with ECN capable
// transport, ECT(0): DSCP 26 gives 106.
func (l Lossless) TrafficClass() int { return l.DSCP<<2 | 2 }

// String says the block in short.
func (l Lossless) String() string {
	return fmt.Sprintf("priority %d, DSCP %d, CNP DSCP %d, PFC %t, ECN %t", l.Priority, l.DSCP, l.CNP, l.PFC, l.ECN)
}

// wire is the block as nodes are told it.
func (l Lossless) wire() *wire.RoCELossless {
	return &wire.RoCELossless{Priority: l.Priority, DSCP: l.DSCP, CNP: l.CNP, CNPPriority: l.PriorityOf(l.CNP), TrafficClass: l.TrafficClass(), PFC: l.PFC}
}

// compareSorting does not rely on the agent's own opinion.
func compareSorting(want *wire.RoCELossless, w wire.RoCEPort, p wire.RoCEPortState) string {
	if want == nil || w.SoftwareRDMA != "" {
		return ""
	}
	s := p.Sorting
	if s == nil {
		return "how it sorts RDMA packets is not reported"
	}
	priority, known := s.Priorities[want.DSCP]
	cnp, cnpKnown := s.Priorities[want.CNP]
	switch {
	case s.Trust != "dscp":
		return fmt.Sprintf("it trusts %q, not the DSCP", s.Trust)
	case known && priority != want.Priority:
		return fmt.Sprintf("DSCP %d has priority %d, not %d", want.DSCP, priority, want.Priority)
	case cnpKnown && cnp != want.CNPPriority:
		return fmt.Sprintf("DSCP %d has priority %d, not %d", want.CNP, cnp, want.CNPPriority)
	case !slices.Equal(s.Paused, want.Paused()):
		return fmt.Sprintf("PFC is on for priorities %v, not %v", s.Paused, want.Paused())
	case s.TrafficClass != want.TrafficClass:
		return fmt.Sprintf("its RDMA packets have traffic class %d, not %d", s.TrafficClass, want.TrafficClass)
	}
	return ""
}

// FabricCables returns those of a fabric, computed or given, in the order of the site.
func FabricCables(inv *inventory.Inventory, f *inventory.Fabric) (list []*inventory.Cable) {
	for _, c := range inv.Cables {
		if belongsTo(c, f) {
			list = append(list, c)
		}
	}
	return list
}
