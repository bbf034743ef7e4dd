// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/wire"
)

// typeV2 is what the kernel calls RoCE over UDP (gid_attrs/types).
const typeV2 = "RoCE v2"

// observe looks at every rail and compares.
func (n Node) observe(p wire.RoCEParams, ports []port) wire.RoCEResult {
	result := wire.RoCEResult{Problems: n.filesProblems(p, ports)}
	result.Conforms = len(result.Problems) == 0
	for _, q := range ports {
		state := n.observePort(p.MTU, q)
		n.observeSorting(p, q, &state)
		result.Ports = append(result.Ports, state)
		result.Conforms = result.Conforms && len(state.Problems) == 0
	}
	return result
}

// observePort looks at one rail.
func (n Node) observePort(mtu int, q port) wire.RoCEPortState {
	s := wire.RoCEPortState{Rail: q.Rail, Netdev: n.netdev(q), GIDIndex: -1}
	problem := func(format string, args ...any) { s.Problems = append(s.Problems, fmt.Sprintf(format, args...)) }
	if s.Netdev == "" {
		problem("%s", n.lacking(q))
		return s
	}
	s.MTU = int(n.FS.Int("sys/class/net", s.Netdev, "mtu"))
	s.ActiveMTU = rdmaMTU(s.MTU)
	if s.MTU != mtu {
		problem("MTU is %d, not %d", s.MTU, mtu)
	}
	if n.FS.Text("sys/class/net", s.Netdev, "carrier") != "1" {
		problem("no link")
	}
	have, err := n.Network.Addresses(s.Netdev)
	switch {
	case err != nil:
		problem("addresses: %v", err)
	case slices.Contains(have, q.address):
		s.Address = q.address.String()
	default:
		problem("address %s is not there", q.address)
	}
	if q.Table != 0 {
		if is, err := n.Network.Routing(s.Netdev, Route{Address: q.address, Table: q.Table, Gateway: q.gateway}); err != nil || !is {
			problem("routing table %d is not as it should be", q.Table)
		}
	}
	s.Problems = append(s.Problems, n.sysctlProblems(s.Netdev)...)
	n.observeRDMA(&s, q)
	return s
}

// observeRDMA looks at the RDMA device above the rail.
func (n Node) observeRDMA(s *wire.RoCEPortState, q port) {
	problem := func(format string, args ...any) { s.Problems = append(s.Problems, fmt.Sprintf(format, args...)) }
	if s.RDMADevice = n.RDMA.Device(s.Netdev); s.RDMADevice == "" {
		problem("no RDMA device on %s", s.Netdev)
		return
	}
	number, index, gid := n.gid(s.RDMADevice, s.Netdev, q.address.Addr())
	s.GIDIndex = index
	if index < 0 {
		problem("RDMA device %s has no GID of type %s for %s", s.RDMADevice, typeV2, q.address.Addr())
		return
	}
	s.GID, s.GIDType = gid, typeV2
	// "4: ACTIVE"
	_, s.State, _ = strings.Cut(n.FS.Text("sys/class/infiniband", s.RDMADevice, "ports", number, "state"), ": ")
	if s.State != "ACTIVE" {
		problem("RDMA port is %s", s.State)
	}
}

// gid finds the port and the index of the GID that RoCE v2 uses for an address:
// the one of that type, of this network interface, with this address in it.
// Index is -1 when there is none.
func (n Node) gid(device, netdev string, address netip.Addr) (number string, index int, gid string) {
	for _, number := range n.FS.Names("sys/class/infiniband", device, "ports") {
		at := func(elem ...string) string {
			return n.FS.Text(append([]string{"sys/class/infiniband", device, "ports", number}, elem...)...)
		}
		for _, i := range n.FS.Names("sys/class/infiniband", device, "ports", number, "gid_attrs/types") {
			if at("gid_attrs/types", i) != typeV2 || at("gid_attrs/ndevs", i) != netdev {
				continue
			}
			text := at("gids", i)
			if a, err := netip.ParseAddr(text); err != nil || a.Unmap() != address.Unmap() {
				continue
			}
			if index, err := strconv.Atoi(i); err == nil {
				return number, index, text
			}
		}
	}
	return "", -1, ""
}

// netdev is the network interface of a rail; "" where there is none, and where several
// may be it: see lacking.
func (n Node) netdev(q port) string {
	if all := n.netdevs(q); len(all) == 1 {
		return all[0]
	}
	return ""
}

// netdevs finds the network interfaces that may be a rail: by PCI address (of several at
// one function, the one with the MAC), and where that has none, by MAC.
func (n Node) netdevs(q port) []string {
	at := n.netdevsAt(q.PCI)
	if len(at) == 1 {
		return at
	}
	among := at
	if len(at) == 0 {
		among = n.FS.Netdevs()
	}
	var mine []string
	for _, name := range among {
		if n.hasMAC(name, q.MAC) {
			mine = append(mine, name)
		}
	}
	if len(mine) == 0 {
		return at
	}
	return mine
}

// lacking says why a rail has no network interface.
func (n Node) lacking(q port) string {
	all := n.netdevs(q)
	if len(all) == 0 {
		return fmt.Sprintf("no network interface at PCI %s with MAC %s", q.PCI, q.MAC)
	}
	var words []string
	for _, name := range all {
		words = append(words, fmt.Sprintf("%s (%s)", name, n.FS.Text("sys/class/net", name, "address")))
	}
	return fmt.Sprintf("%d network interfaces at PCI %s, and MAC %s does not report which is the rail: %s", len(all), q.PCI, q.MAC, strings.Join(words, ", "))
}

// netdevsAt returns the network interfaces of a PCI function: those in its own
// folder, and where it has none, those that lead to it.
func (n Node) netdevsAt(pci string) []string {
	if pci == "" {
		return nil
	}
	if names := n.FS.Names("sys/bus/pci/devices", pci, "net"); len(names) > 0 {
		return names
	}
	return slices.DeleteFunc(n.FS.Netdevs(), func(name string) bool { return n.FS.NetdevPCI(name) != pci })
}

// hasMAC reports whether a network interface has that address; a zero one is had
// by none.
func (n Node) hasMAC(name string, want addr.MAC) bool {
	mac, err := addr.ParseMAC(n.FS.Text("sys/class/net", name, "address"))
	return err == nil && !want.IsZero() && mac == want
}

// rdmaMTU returns the largest RDMA MTU that fits into an Ethernet MTU, as
// iboe_get_mtu of the kernel (include/rdma/ib_addr.h) does: the headers take 96
// bytes. The kernel shows the active MTU nowhere in sysfs.
func rdmaMTU(mtu int) int {
	const headers = 40 + 8 + 12 + 4 + 28 + 4 // GRH, UDP, BTH, XRC, atomic, ICRC
	for _, size := range []int{4096, 2048, 1024, 512, 256} {
		if mtu-headers >= size {
			return size
		}
	}
	return 0
}
