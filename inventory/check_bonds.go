// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
)

// checkBonds compares the bonds of a host with the ports of hardware that uses it.
func (l *loader) checkBonds(h *Hardware, s *HostSettings) {
	for _, b := range l.bodies[s].Blocks("bond") {
		for i, m := range language.GetList[string](b, "members") {
			if _, _, ok := h.Port(m); ok {
				continue
			}
			var known []string
			for _, x := range h.NICs {
				for j := range x.Ports {
					known = append(known, fmt.Sprintf("%s/%d", x.Name, j))
				}
			}
			l.diags.Add("reference.unknown", b.ElementRange("members", i), "Unknown port", fmt.Sprintf("Hardware %q has no port %q.%s", h.Name, m, diag.DidYouMean(m, known))).Also("the hardware", h.Decl).In(b.Decl)
		}
	}
}

// bondCheck is the check of bonds that cannot be made.
const bondCheck = "host.bond"

// interfaceName is what Linux takes for an interface: 15 characters (IFNAMSIZ), no slash and
// no colon; ones with a meaning are left out.
var interfaceName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]{0,14}$`)

// member is a port of a bond.
type member struct {
	bond *language.Body
	nic  *NIC
}

// checkBondsOf looks whether the bonds of a host can be made of their ports.
func (l *loader) checkBondsOf(h *Hardware, s *HostSettings) {
	taken, names := map[string]string{}, map[string]bool{}
	for _, b := range l.bodies[s].Blocks("bond") {
		if !interfaceName.MatchString(b.Name) || names[b.Name] || slices.Contains([]string{"lo", "all", "default", "bonding_masters"}, b.Name) {
			l.diags.Add(bondCheck, b.Labels[0], "Name that no bond can have", fmt.Sprintf("Bond %q of host %q becomes an interface of that name, once: write up to 15 letters, digits and _ . -, such as bond0.", b.Name, s.Name)).In(b.Decl)
		}
		names[b.Name] = true
		var first *NIC
		for i, m := range language.GetList[string](b, "members") {
			nic, _, ok := h.Port(m)
			if !ok {
				continue // reported as unknown
			}
			if other, twice := taken[m]; twice {
				l.diags.Add(bondCheck, b.ElementRange("members", i), "Port in two bonds", fmt.Sprintf("Port %s is a member of bond %q already. Take it out of one.", m, other)).In(b.Decl)
			}
			taken[m] = b.Name
			if first == nil {
				first = nic
			}
			l.checkMember(member{b, nic}, first, i)
		}
	}
}

// checkMember looks at one member beside the first.
func (l *loader) checkMember(m member, first *NIC, i int) {
	at, mode := m.bond.ElementRange("members", i), language.Get[string](m.bond, "mode")
	switch {
	case m.nic.Fabric != nil:
		l.diags.Add(bondCheck, at, "Port of a fabric in a bond", fmt.Sprintf("NIC %q is on a fabric, whose ports are rails of their own: RDMA over a bond is not set up. Take it out of bond %q.", m.nic.Name, m.bond.Name)).Also("the NIC", m.nic.Decl).In(m.bond.Decl)
	case first.Network != nil && m.nic.Network != nil && m.nic.Network != first.Network:
		l.diags.Add(bondCheck, at, "Bond over two networks", fmt.Sprintf("NIC %q is on network %q, and NIC %q on network %q: ports of one bond are on one network.", m.nic.Name, m.nic.Network.Name, first.Name, first.Network.Name)).Also("the NIC", m.nic.Decl).In(m.bond.Decl)
	case mode == "802.3ad" && m.nic.Speed != first.Speed && m.nic.Speed > 0 && first.Speed > 0:
		l.diags.Add(bondCheck, at, "Ports of different speeds in an aggregation", fmt.Sprintf("NIC %q runs at %s and NIC %q at %s: LACP puts ports of one speed into an aggregation, and the others carry nothing. Use active-backup, or ports of one speed.", m.nic.Name, m.nic.Speed, first.Name, first.Speed)).In(m.bond.Decl)
	case m.nic.Boot && i == 0 && (mode == "balance-rr" || mode == "balance-xor"):
		l.diags.Add(bondCheck, m.bond.Range("mode"), "Network boot over a static aggregation", fmt.Sprintf("Bond %q has a port that the firmware boots from, and mode %s needs an aggregation on the switch that is there at once: the switch sends packets of the firmware, which knows one port, to any of them. Use 802.3ad with the switch's fallback for single ports, or active-backup.", m.bond.Name, mode)).In(m.bond.Decl).Warn()
	}
}
