// SPDX-License-Identifier: Apache-2.0

package interfaces

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
)

// Bits of the state of a port (IEEE 802.1AX, 6.4.2.3; the kernel's
// bonding_slave/ad_actor_oper_port_state).
const (
	distributing = 0x20
	defaulted    = 0x40 // no LACPDU was ever received
	expired      = 0x80 // none was received for too long
)

// lookAtBond compares a bond with what the kernel has.
func (n Node) lookAtBond(b wire.NetworkBond) wire.InterfaceState {
	l := wire.InterfaceState{Name: b.Name, Netdev: b.Name}
	mode, _, _ := strings.Cut(n.FS.Text("sys/class/net", b.Name, "bonding/mode"), " ") // "802.3ad 4"
	switch mode {
	case "":
		l.Problems = []string{"there is no such bond on the node: bonds are made by an installation"}
		l.Bonding = true
		return l
	case b.Mode:
	default:
		l.Problems = []string{fmt.Sprintf("its mode is %s, not %s: modes are set by an installation", mode, b.Mode)}
		l.Bonding = true
	}
	n.lookAtMTU(&l, b.MTU, n.bondFile(b))
	return l
}

// lookAtMember says what keeps a port from carrying packets of its bond.
func (n Node) lookAtMember(p Port, b wire.NetworkBond) []string {
	of := func(elem ...string) string {
		return n.FS.Text(append([]string{"sys/class/net", p.Netdev, "bonding_slave"}, elem...)...)
	}
	members := strings.Fields(n.FS.Text("sys/class/net", b.Name, "bonding/slaves"))
	state := int(n.FS.Int("sys/class/net", p.Netdev, "bonding_slave/ad_actor_oper_port_state"))
	active := n.FS.Text("sys/class/net", b.Name, "bonding/ad_aggregator")
	var text string
	switch {
	case len(members) == 0 && !n.FS.Exists("sys/class/net", b.Name):
		return nil // said of the bond
	case !slices.Contains(members, p.Netdev):
		text = fmt.Sprintf("%s is not in %s", p.Netdev, b.Name)
	case of("mii_status") != "up":
		text = fmt.Sprintf("%s has no link in %s (mii_status %s)", p.Netdev, b.Name, of("mii_status"))
	case b.Mode != "802.3ad" || of("ad_actor_oper_port_state") == "": // only root is shown it
		return nil
	case state&(defaulted|expired) != 0:
		text = fmt.Sprintf("%s has no LACP partner in %s: its switch port sends no LACPDU", p.Netdev, b.Name)
	case of("ad_aggregator_id") != active:
		text = fmt.Sprintf("%s is in aggregator %s, and %s uses %s: its switch port is not in one aggregation with those of the other members", p.Netdev, of("ad_aggregator_id"), b.Name, active)
	case state&distributing == 0:
		text = fmt.Sprintf("%s carries nothing in %s: its switch has not taken it into the aggregation", p.Netdev, b.Name)
	default:
		return nil
	}
	return []string{text}
}
