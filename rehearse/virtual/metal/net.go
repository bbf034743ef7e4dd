// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/ironrail/ironrail/internal/addr"
)

// gids is how many slots of a GID table are shown; real tables have 256.
const gids = 16

// netCounters and portCounters are the kernel's names of what a port counts.
var (
	netCounters  = []string{"rx_bytes", "rx_crc_errors", "rx_errors", "rx_frame_errors", "rx_packets", "tx_bytes", "tx_carrier_errors", "tx_errors", "tx_packets"}
	portCounters = []string{"excessive_buffer_overrun_errors", "link_downed", "link_error_recovery", "local_link_integrity_errors", "port_rcv_data", "port_rcv_errors", "port_xmit_data", "symbol_error"}
	hwCounters   = []string{"out_of_sequence", "packet_seq_err", "roce_adp_retrans"}
)

// addPort adds the network interface of a port and its RDMA device.
func (s *shape) addPort(t *tree, i int) {
	p := s.ports[i]
	dir, there := s.dirOf(s.functions[p.function].address), hasNetdev(p.function)
	b := branch{t, path.Join(dir, "net", p.netdev), there}
	b.live("address", func(k *Kernel) string { return k.netAddress(i) })
	addMember(b.at("bonding_slave"), i)
	b.live("mtu", func(k *Kernel) string { return strconv.Itoa(k.mtu(i)) })
	// An interface that is not up does not know its carrier: the read fails with EINVAL.
	b.attr("carrier", func(k *Kernel) (string, error) {
		if !k.isUp(i) {
			return "", syscall.EINVAL
		}
		return formatFlag(k.carrier(i)) + "\n", nil
	})
	b.attr("speed", func(k *Kernel) (string, error) {
		if !k.isUp(i) {
			return "", syscall.EINVAL
		}
		if !k.carrier(i) || p.speed == 0 {
			return "-1\n", nil
		}
		return strconv.FormatInt(k.node.rate(i)/1e6, 10) + "\n", nil
	})
	b.live("operstate", func(k *Kernel) string {
		if k.carrier(i) {
			return "up"
		}
		return "down"
	})
	b.live("carrier_changes", func(k *Kernel) string { return k.node.count(i, "carrier_changes") })
	b.text("type", map[bool]string{false: "1", true: "32"}[p.ib]) // ARPHRD_ETHER, ARPHRD_INFINIBAND
	for _, name := range netCounters {
		b.live("statistics/"+name, func(k *Kernel) string { return k.node.count(i, name) })
	}
	b.link("device", dir)
	branch{t, "sys/class/net", there}.link(p.netdev, b.dir)
	if p.rdma != "" {
		s.addRDMA(t, i, dir)
	}
}

func formatFlag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// addRDMA adds the RDMA device of a port: the hardware's own, or the soft one,
// which is there once the kernel was asked for it.
func (s *shape) addRDMA(t *tree, i int, dir string) {
	p := s.ports[i]
	there := isPresent(p.function)
	if p.soft {
		dir = "sys/devices/virtual"
		there = func(k *Kernel) bool { return k.softDevice(i) && !k.node.missing(p.function) }
	}
	b := branch{t, path.Join(dir, "infiniband", p.rdma), there}
	t.put(b.dir, folderIf(there))
	guid := func(k *Kernel) string { return guidText(guidOf(k.node.portMAC(i))) }
	b.live("node_guid", guid)
	b.live("sys_image_guid", guid)
	b.text("node_type", "1: CA")
	b.live("hca_type", func(k *Kernel) string {
		if m, other := k.node.modelAt(p.function); other {
			return m.name
		}
		return p.model.name
	})
	if !p.soft {
		b.live("fw_ver", func(k *Kernel) string { return k.node.firmwareOf(p.function) })
		b.link("device", dir)
	}
	branch{t, "sys/class/infiniband", there}.link(p.rdma, b.dir)
	s.addRDMAPort(b.at("ports/1"), i)
}

func (s *shape) addRDMAPort(b branch, i int) {
	p := s.ports[i]
	active := func(k *Kernel) bool {
		if p.ib {
			return k.node.link(i).up()
		}
		return k.carrier(i)
	}
	b.live("state", func(k *Kernel) string { return chooseText(active(k), "4: ACTIVE", "1: DOWN") })
	b.live("phys_state", func(k *Kernel) string { return chooseText(active(k), "5: LinkUp", "3: Disabled") })
	b.live("link_layer", func(k *Kernel) string { return k.linkLayer(i) })
	b.live("rate", func(k *Kernel) string { return k.node.rateText(i) })
	b.live("lid", func(k *Kernel) string {
		return chooseText(p.ib && active(k), fmt.Sprintf("0x%x", k.node.lid(i)), "0x0")
	})
	if p.ib {
		for slot := range pkeySlots {
			b.live("pkeys/"+strconv.Itoa(slot), func(k *Kernel) string { return fmt.Sprintf("0x%04x", k.node.pkey(i, slot)) })
		}
	}
	for _, name := range portCounters {
		b.live("counters/"+name, func(k *Kernel) string { return k.node.count(i, name) })
	}
	for _, name := range hwCounters {
		b.live("hw_counters/"+name, func(k *Kernel) string { return k.node.count(i, name) })
	}
	for slot := range gids {
		n := strconv.Itoa(slot)
		b.live("gids/"+n, func(k *Kernel) string { return k.gid(i, slot).text() })
		b.attr("gid_attrs/types/"+n, func(k *Kernel) (string, error) {
			g := k.gid(i, slot)
			if g.kind == "" {
				return "", syscall.EINVAL
			}
			return g.kind + "\n", nil
		})
		b.attr("gid_attrs/ndevs/"+n, func(k *Kernel) (string, error) {
			if p.ib || k.gid(i, slot).kind == "" {
				return "", syscall.EINVAL
			}
			return p.netdev + "\n", nil
		})
	}
}

func chooseText(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// gid is one slot of a GID table.
type gid struct {
	kind string // "IB/RoCE v1" or "RoCE v2"; empty: the slot is
	addr netip.Addr
}

// text writes a GID as sysfs does.
func (g gid) text() string {
	if !g.addr.IsValid() {
		g.addr = netip.IPv6Unspecified()
	}
	b := g.addr.As16()
	var s strings.Builder
	for i := 0; i < len(b); i += 2 {
		if i > 0 {
			s.WriteByte(':')
		}
		fmt.Fprintf(&s, "%02x%02x", b[i], b[i+1])
	}
	return s.String()
}

// linkLocal is the address that a MAC makes by itself (RFC 4291, appendix A).
func linkLocal(m addr.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}

// guidText writes a GUID as sysfs does.
func guidText(g addr.GUID) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", uint16(g>>48), uint16(g>>32), uint16(g>>16), uint16(g))
}
