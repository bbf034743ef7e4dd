// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/agent/roce"
)

// links remembers what the kernel cannot be asked for: which interfaces were
// brought up. It is safe for concurrent use.
type links struct {
	mu sync.Mutex // guards up
	up map[string]bool
}

func (l *links) add(netdev string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up == nil {
		l.up = map[string]bool{}
	}
	l.up[netdev] = true
}

// rails is the kernel as the agent's own code for rails sees it.
type rails struct {
	Kernel
	n *node
}

// SetLink implements roce.Network.
func (r rails) SetLink(netdev string, mtu int) error {
	err := r.Kernel.SetLink(netdev, mtu)
	if err == nil {
		r.n.links.add(netdev)
	}
	return err
}

// AddSoft implements roce.RDMA: it loads the module, as the real one does.
func (r rails) AddSoft(ctx context.Context, device, netdev string) error {
	if err := r.n.cfg.Clock.Sleep(ctx, moduleTime); err != nil {
		return err
	}
	r.n.load("rdma_rxe")
	return r.Kernel.AddSoft(ctx, device, netdev)
}

var _ roce.Network = rails{}

// networkd does what systemd-networkd does with the files that ironrail writes, or netplan
// makes of those: it makes
// bonds, and gives interfaces that files match by MAC or by name their bond, address, MTU
// and state. Bonds are members before they are up.
func (n *node) networkd() {
	const dir = "etc/systemd/network"
	files, err := n.netplan()
	if err != nil {
		files = nil // netplan makes nothing of files with an error
	}
	for _, name := range n.fs.Names(dir) {
		if strings.HasSuffix(name, ".netdev") || strings.HasSuffix(name, ".network") {
			files = append(files, parseNetwork(n.fs.Text(dir, name)))
		}
	}
	for _, f := range files {
		if f.kind == "bond" {
			n.cfg.Kernel.AddBond(f.name, f.mode, f.own)
		}
	}
	for _, f := range files {
		for _, netdev := range n.fs.Netdevs() {
			mac, err := addr.ParseMAC(n.macOf(netdev))
			if err == nil && mac == f.mac {
				n.apply(netdev, f)
			}
		}
	}
	for _, f := range files {
		if slices.Contains(n.cfg.Kernel.Bonds(), f.match) {
			n.apply(f.match, f)
		}
	}
	n.makeVLANs(files)
}

// makeVLANs makes the VLAN interfaces that files of what they are on name, and sets them up.
func (n *node) makeVLANs(files []networkFile) {
	for _, on := range files {
		for _, f := range files {
			if f.kind == "vlan" && slices.Contains(on.vlans, f.name) {
				n.cfg.Kernel.AddVLAN(f.name, f.id, n.netdevOf(on))
			}
		}
	}
	for _, f := range files {
		if slices.Contains(n.cfg.Kernel.VLANs(), f.match) {
			n.apply(f.match, f)
		}
	}
}

// netdevOf is the interface that a file matches.
func (n *node) netdevOf(f networkFile) string {
	for _, netdev := range n.fs.Netdevs() {
		if mac, err := addr.ParseMAC(n.macOf(netdev)); err == nil && mac == f.mac {
			return netdev
		}
	}
	return f.match
}

// macOf is the MAC of an interface of its own.
func (n *node) macOf(netdev string) string {
	if own := n.fs.Text("sys/class/net", netdev, "bonding_slave/perm_hwaddr"); own != "" {
		return own
	}
	return n.fs.Text("sys/class/net", netdev, "address")
}

func (n *node) apply(netdev string, f networkFile) {
	up := n.cfg.Kernel.Up
	if f.mtu > 0 {
		up = func(netdev string) error { return n.cfg.Kernel.SetLink(netdev, f.mtu) }
	}
	if up(netdev) != nil {
		return // the interface is gone: networkd continues with the others
	}
	if f.bond != "" && n.cfg.Kernel.Enslave(netdev, f.bond) != nil {
		return // as above
	}
	n.links.add(netdev)
	for _, a := range f.addresses {
		_ = n.cfg.Kernel.SetAddress(netdev, a) // as above
	}
	if f.gateway6.IsValid() {
		_ = n.cfg.Kernel.SetGateway6(netdev, f.gateway6) // as above
	}
}

// networkFile is what matters of a systemd.network(5) or systemd.netdev(5) file.
type networkFile struct {
	mac       addr.MAC // that is matched
	match     string   // name that is matched
	mtu       int
	addresses []netip.Prefix
	gateway6  netip.Addr
	bond      string // that it is a member of

	vlans []string // names of the VLAN interfaces on it
	id    int      // VLAN ID, of an interface that is made

	name, kind, mode string // of an interface that is made
	own              addr.MAC
}

func parseNetwork(text string) networkFile {
	var f networkFile
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		f.set(section+key, value)
	}
	return f
}

// set takes one line of a file.
func (f *networkFile) set(key, value string) {
	switch key {
	case "[Match]MACAddress", "[Match]PermanentMACAddress":
		f.mac, _ = addr.ParseMAC(value)
	case "[Match]Name":
		f.match = value
	case "[Link]MTUBytes":
		f.mtu, _ = strconv.Atoi(value)
	case "[Network]Bond":
		f.bond = value
	case "[Network]Address", "[Address]Address":
		if a, err := netip.ParsePrefix(value); err == nil {
			f.addresses = append(f.addresses, a)
		}
	case "[Network]Gateway":
		f.setGateway(value)
	case "[NetDev]Name":
		f.name = value
	case "[NetDev]Kind":
		f.kind = value
	case "[NetDev]MACAddress":
		f.own, _ = addr.ParseMAC(value)
	case "[Network]VLAN":
		f.vlans = append(f.vlans, value)
	case "[VLAN]Id":
		f.id, _ = strconv.Atoi(value)
	case "[Bond]Mode":
		f.mode = value
	}
}

// setGateway takes the gateway of IPv6: nothing here asks for that of IPv4.
func (f *networkFile) setGateway(text string) {
	if g, err := netip.ParseAddr(text); err == nil && g.Is6() {
		f.gateway6 = g
	}
}

// portOf returns the port of an interface or of an RDMA device.
func (n *node) portOf(name string) (Port, bool) {
	for _, p := range n.cfg.Ports {
		if name != "" && (p.Netdev == name || p.RDMA == name) {
			return p, true
		}
	}
	return Port{}, false
}

// portWithin returns the port with an address in a network; where a bond has it, the member
// that carries its packets.
func (n *node) portWithin(data netip.Prefix) (Port, netip.Addr, bool) {
	for _, name := range n.cfg.Kernel.Bonds() {
		list, _ := n.cfg.Kernel.Addresses(name)
		for _, a := range list {
			if p, ok := n.portOf(n.cfg.Kernel.Carrying(name)); ok && data.Contains(a.Addr()) {
				return p, a.Addr(), true
			}
		}
	}
	for _, p := range n.cfg.Ports {
		list, err := n.cfg.Kernel.Addresses(p.Netdev)
		if err != nil {
			continue
		}
		for _, a := range list {
			if data.Contains(a.Addr()) {
				return p, a.Addr(), true
			}
		}
	}
	return Port{}, netip.Addr{}, false
}
