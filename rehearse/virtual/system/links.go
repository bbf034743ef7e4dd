// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"net/netip"
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

// networkd does what systemd-networkd does with the files that ironrail writes:
// address, MTU and state of the interfaces that they match by MAC.
func (n *node) networkd() {
	const dir = "etc/systemd/network"
	for _, name := range n.fs.Names(dir) {
		if !strings.HasSuffix(name, ".network") {
			continue
		}
		f := parseNetwork(n.fs.Text(dir, name))
		for _, netdev := range n.fs.Netdevs() {
			mac, err := addr.ParseMAC(n.fs.Text("sys/class/net", netdev, "address"))
			if err == nil && mac == f.mac {
				n.apply(netdev, f)
			}
		}
	}
}

func (n *node) apply(netdev string, f networkFile) {
	up := n.cfg.Kernel.Up
	if f.mtu > 0 {
		up = func(netdev string) error { return n.cfg.Kernel.SetLink(netdev, f.mtu) }
	}
	if up(netdev) != nil {
		return // the interface is gone: networkd continues with the others
	}
	n.links.add(netdev)
	for _, a := range f.addresses {
		_ = n.cfg.Kernel.SetAddress(netdev, a) // as above
	}
}

// networkFile is what matters of a systemd.network(5) file.
type networkFile struct {
	mac       addr.MAC
	mtu       int
	addresses []netip.Prefix
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
		switch section + key {
		case "[Match]MACAddress":
			f.mac, _ = addr.ParseMAC(value)
		case "[Link]MTUBytes":
			f.mtu, _ = strconv.Atoi(value)
		case "[Network]Address", "[Address]Address":
			if a, err := netip.ParsePrefix(value); err == nil {
				f.addresses = append(f.addresses, a)
			}
		}
	}
	return f
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

// portWithin returns the port with an address in a network.
func (n *node) portWithin(data netip.Prefix) (Port, netip.Addr, bool) {
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
