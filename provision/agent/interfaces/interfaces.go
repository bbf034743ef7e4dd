// SPDX-License-Identifier: Apache-2.0

// Package interfaces knows the network interfaces of a node that are on networks of its
// site, rails of fabrics aside: the files that set them up at boot, for systemd-networkd
// and for NetworkManager, and how they are on the node as it runs.
package interfaces

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// Where the two keep what sets interfaces up, below the root.
const (
	networkdFolder = "etc/systemd/network/"
	managerFolder  = "etc/NetworkManager/system-connections/"

	// Prefix begins the names of all files here, in the folder of either.
	NetworkdPrefix = networkdFolder + "10-ironrail-"
	ManagerPrefix  = managerFolder + "ironrail-"
)

// UsesManager reports whether NetworkManager sets the addresses of a system: it has that,
// and no systemd-networkd.
func UsesManager(root rootfs.Root) bool {
	return usesManager(func(name string) bool { return rootfs.Exists(root, name) })
}

// HasManager is UsesManager of the node that runs.
func HasManager(fs sysfs.FS) bool {
	return usesManager(func(name string) bool { return fs.Exists(name) })
}

func usesManager(is func(name string) bool) bool {
	const units = "lib/systemd/system/"
	return is("usr/"+units+"NetworkManager.service") && !is("usr/"+units+"systemd-networkd.service") && !is(units+"systemd-networkd.service")
}

// File is one file of a system; names are below its root.
type File struct {
	Name, Text string
	Mode       fs.FileMode
}

// Layout is the interfaces with what they are on the node; the zero value has none.
type Layout struct {
	Ports []Port
	Bonds []wire.NetworkBond
	VLANs []wire.NetworkVLAN
	IPv6  *wire.NetworkAddress // of the boot interface, beside its own; nil: none
}

// Port is a port that was found.
type Port struct {
	wire.NetworkPort
	Netdev string
	MAC    addr.MAC // its own: members of a bond show that of the bond
	VLANs  []string // names of the interfaces of tagged networks on it
}

// bondOf is the bond that a port is a member of.
func bondOf(bonds []wire.NetworkBond, port string) (wire.NetworkBond, bool) {
	i := slices.IndexFunc(bonds, func(b wire.NetworkBond) bool { return slices.Contains(b.Members, port) })
	if i < 0 {
		return wire.NetworkBond{}, false
	}
	return bonds[i], true
}

// bootBond is the bond with the port that has a MAC.
func (l Layout) bootBond(boot addr.MAC) (wire.NetworkBond, bool) {
	i := slices.IndexFunc(l.Ports, func(p Port) bool { return p.MAC == boot })
	if i < 0 {
		return wire.NetworkBond{}, false
	}
	return bondOf(l.Bonds, l.Ports[i].Name)
}

// port is the port of a name; Find has seen that it is there.
func (l Layout) port(name string) Port {
	return l.Ports[slices.IndexFunc(l.Ports, func(p Port) bool { return p.Name == name })]
}

// What names look like: they become names of files, and of interfaces.
var (
	portName   = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]*/[0-9]+$`)
	bondName   = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]{0,14}$`) // IFNAMSIZ of the kernel is 16 with the end
	pciAddress = lazyregexp.New(`^[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$`)
)

// What an MTU may be, bytes of IP: the language begins at 576, what a host must take by
// RFC 791; the most is that of IPoIB.
const (
	leastMTU = 576
	mostMTU  = 65_520
)

func isMTU(n int) bool { return n >= leastMTU && n <= mostMTU }

// Check reports parameters that cannot be.
func Check(p wire.NetworkParams) error {
	seen := map[string]bool{}
	for _, q := range p.Ports {
		_, member := bondOf(p.Bonds, q.Name)
		switch {
		case !portName.MatchString(q.Name) || seen[q.Name]:
			return errkind.New(errkind.Internal, "interfaces: port %q is not usable, or stands there twice", q.Name)
		case !pciAddress.MatchString(q.PCI):
			return errkind.New(errkind.Internal, "interfaces: port %s: PCI address %q", q.Name, q.PCI)
		case !isMTU(q.MTU) && (q.MTU != 0 || !member):
			return errkind.New(errkind.Internal, "interfaces: port %s: MTU %d", q.Name, q.MTU)
		}
		seen[q.Name] = true
	}
	for _, b := range p.Bonds {
		if err := checkBond(b, seen); err != nil {
			return err
		}
	}
	for i, v := range p.VLANs {
		if err := checkVLAN(v, p, p.VLANs[:i]); err != nil {
			return err
		}
	}
	return checkIPv6(p.IPv6)
}

// checkBond checks a bond; free are the ports that none has yet.
func checkBond(b wire.NetworkBond, free map[string]bool) error {
	_, known := modes[b.Mode]
	switch {
	case !bondName.MatchString(b.Name) || slices.Contains([]string{"lo", "all", "default", "bonding_masters"}, b.Name):
		return errkind.New(errkind.Internal, "interfaces: bond %q is not usable", b.Name)
	case !known || len(b.Members) == 0:
		return errkind.New(errkind.Internal, "interfaces: bond %s: mode %q, %d members", b.Name, b.Mode, len(b.Members))
	case b.MTU != 0 && !isMTU(b.MTU):
		return errkind.New(errkind.Internal, "interfaces: bond %s: MTU %d", b.Name, b.MTU)
	}
	for _, m := range b.Members {
		if !free[m] {
			return errkind.New(errkind.Internal, "interfaces: bond %s: member %q is no port, or of another bond", b.Name, m)
		}
		free[m] = false
	}
	return nil
}

// Find finds the ports on the node whose root fs is. One that has no interface, or of
// which several may be it, is NotFound.
func Find(fs sysfs.FS, p wire.NetworkParams) (l Layout, err error) {
	if err := Check(p); err != nil {
		return l, err
	}
	l.Bonds, l.VLANs, l.IPv6 = p.Bonds, p.VLANs, p.IPv6
	for _, q := range p.Ports {
		found, err := find(fs, q)
		if err != nil {
			return l, err
		}
		found.VLANs = vlansOver(p.VLANs, q.Name)
		l.Ports = append(l.Ports, found)
	}
	return l, nil
}

func find(fs sysfs.FS, q wire.NetworkPort) (Port, error) {
	pci := strings.ToLower(q.PCI)
	names := fs.Names("sys/bus/pci/devices", pci, "net")
	if len(names) == 0 { // a virtio function has its interface one folder deeper
		names = slices.DeleteFunc(fs.Netdevs(), func(name string) bool { return fs.NetdevPCI(name) != pci })
	}
	if len(names) != 1 {
		return Port{}, errkind.New(errkind.NotFound, "port %s: %s at PCI %s", q.Name, counted(names), pci).
			Do("Check that the NIC is in its slot and that this system has its driver; or correct pci of the nic block.")
	}
	text := fs.Text("sys/class/net", names[0], "bonding_slave/perm_hwaddr")
	if text == "" {
		text = fs.Text("sys/class/net", names[0], "address")
	}
	mac, err := addr.ParseMAC(text)
	if err != nil {
		return Port{}, errkind.New(errkind.NotFound, "port %s: interface %s: MAC: %w", q.Name, names[0], err)
	}
	return Port{NetworkPort: q, Netdev: names[0], MAC: mac}, nil
}

func counted(names []string) string {
	if len(names) == 0 {
		return "no network interface"
	}
	return "several network interfaces (" + strings.Join(names, ", ") + ")"
}

// base is the name of the files of a port, without folder and ending.
func base(name string) string { return "port-" + strings.ReplaceAll(name, "/", "-") }
