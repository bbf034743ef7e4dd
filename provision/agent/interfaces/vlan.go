// SPDX-License-Identifier: Apache-2.0

package interfaces

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// mostVLAN is the largest VLAN ID (IEEE 802.1Q, 9.6: 4095 is reserved).
const mostVLAN = 4094

// checkVLAN refuses an interface that cannot be made; before are those that were taken.
func checkVLAN(v wire.NetworkVLAN, p wire.NetworkParams, before []wire.NetworkVLAN) error {
	over := v.Over == "" && !v.MAC.IsZero() ||
		slices.ContainsFunc(p.Ports, func(q wire.NetworkPort) bool { return q.Name == v.Over }) || slices.ContainsFunc(p.Bonds, func(b wire.NetworkBond) bool { return b.Name == v.Over })
	_, member := bondOf(p.Bonds, v.Over)
	switch {
	case !bondName.MatchString(v.Name) || slices.ContainsFunc(before, func(o wire.NetworkVLAN) bool { return o.Name == v.Name }):
		return errkind.New(errkind.Internal, "interfaces: VLAN interface %q is not usable, or stands there twice", v.Name)
	case v.ID < 1 || v.ID > mostVLAN || !isMTU(v.MTU):
		return errkind.New(errkind.Internal, "interfaces: %s: VLAN %d, MTU %d", v.Name, v.ID, v.MTU)
	case !over || member:
		return errkind.New(errkind.Internal, "interfaces: %s: %q is no port and no bond, or a member of one", v.Name, v.Over)
	case slices.ContainsFunc(v.Addresses, func(a netip.Prefix) bool { return !a.IsValid() || a.Addr().Zone() != "" }):
		return errkind.New(errkind.Internal, "interfaces: %s: addresses %v", v.Name, v.Addresses)
	}
	return nil
}

// vlansOver are the names of the VLAN interfaces on a port or a bond.
func vlansOver(all []wire.NetworkVLAN, over string) (names []string) {
	for _, v := range all {
		if v.Over == over {
			names = append(names, v.Name)
		}
	}
	return names
}

// isOverBoot reports whether a VLAN interface is on the interface that has the node's address.
func (l Layout) isOverBoot(b Boot, v wire.NetworkVLAN) bool {
	if own, bonded := l.bootBond(b.MAC); bonded {
		return v.Over == own.Name || v.Over == ""
	}
	return v.Over == "" || slices.ContainsFunc(l.Ports, func(p Port) bool { return p.Name == v.Over && p.MAC == b.MAC })
}

// vlansOverBoot are the names of the VLAN interfaces on the interface with the node's address.
func (l Layout) vlansOverBoot(b Boot) (names []string) {
	for _, v := range l.VLANs {
		if l.isOverBoot(b, v) {
			names = append(names, v.Name)
		}
	}
	return names
}

// bootVLAN is the VLAN interface that has the node's own address; false: the boot NIC, or the bond
// over it, has that itself.
func (l Layout) bootVLAN() (wire.NetworkVLAN, bool) {
	i := slices.IndexFunc(l.VLANs, func(v wire.NetworkVLAN) bool { return v.Boot })
	if i < 0 {
		return wire.NetworkVLAN{}, false
	}
	return l.VLANs[i], true
}

// networkdVLANs are the lines of what VLAN interfaces are on.
func networkdVLANs(names []string) (text string) {
	for _, name := range names {
		text += "VLAN=" + name + "\n"
	}
	return text
}

// networkdVLAN makes a VLAN interface and gives it its addresses.
func (l Layout) networkdVLAN(b Boot, v wire.NetworkVLAN) []File {
	link, text := notRequired, "[Network]\nDHCP=no\nIPv6AcceptRA=no\n"
	for _, a := range v.Addresses {
		text += "Address=" + a.String() + "\n"
	}
	if v.Boot {
		link, text = "", l.networkdAddresses(b)
	}
	made := fmt.Sprintf("%s[NetDev]\nName=%s\nKind=vlan\n\n[VLAN]\nId=%d\n", written, v.Name, v.ID)
	return []File{{NetworkdPrefix + v.Name + ".netdev", made, 0o644}, network(v.Name, "Name="+v.Name+"\n", link, text, v.MTU)}
}

// netplanVLAN is a VLAN interface.
func (l Layout) netplanVLAN(b Boot, v wire.NetworkVLAN) netplanSection {
	link := base(v.Over)
	switch {
	case slices.ContainsFunc(l.Bonds, func(x wire.NetworkBond) bool { return x.Name == v.Over }):
		link = v.Over
	case l.isOverBoot(b, v):
		link = netplanBoot
	}
	s := netplanSection{v.Name, []string{"id: " + strconv.Itoa(v.ID), "link: " + link}}
	if v.Boot {
		s.lines = append(s.lines, l.netplanAddresses(b)...)
		s.setMTU(v.MTU)
		return s
	}
	s.lines = append(append(s.lines, "optional: true"), netplanQuiet...)
	for i, a := range v.Addresses {
		if i == 0 {
			s.lines = append(s.lines, "addresses:")
		}
		s.lines = append(s.lines, "- "+strconv.Quote(a.String()))
	}
	s.setMTU(v.MTU)
	return s
}

// managerVLAN is the profile of a VLAN interface. What it is on is named by its profile's UUID:
// names of ports differ between kernels.
func (l Layout) managerVLAN(b Boot, v wire.NetworkVLAN) File {
	parent, mac := "boot", b.MAC
	if !l.isOverBoot(b, v) {
		if i := slices.IndexFunc(l.Bonds, func(x wire.NetworkBond) bool { return x.Name == v.Over }); i >= 0 {
			parent, mac = "bond-"+v.Over, l.bondMAC(b, l.Bonds[i])
		} else {
			parent, mac = base(v.Over), l.port(v.Over).MAC
		}
	}
	text := connection(v.Name, "vlan", b.MAC) + fmt.Sprintf("interface-name=%s\n\n[vlan]\nid=%d\nparent=%s\n\n[ethernet]\n", v.Name, v.ID, profileID(parent, mac))
	if v.Boot {
		return profile(v.Name, text+l.managerAddresses(b), v.MTU)
	}
	for _, six := range []bool{false, true} {
		n := 0
		text += "\n[" + map[bool]string{false: "ipv4", true: "ipv6"}[six] + "]\n"
		for _, a := range v.Addresses {
			if a.Addr().Is6() == six {
				n++
				text += fmt.Sprintf("address%d=%s\n", n, a)
			}
		}
		switch {
		case n > 0:
			text += "method=manual\n"
		case six:
			text += "method=link-local\n"
		default:
			text += "method=disabled\n"
		}
	}
	return profile(v.Name, text, v.MTU)
}

// vlanFile is the file that sets up a VLAN interface, as it is to be with its MTU.
func (n Node) vlanFile(v wire.NetworkVLAN) File {
	switch {
	case n.usesNetplan():
		return n.netplanFile(v.Name, v.MTU, netplanSection{})
	case n.usesManager():
		return n.edited(File{ManagerPrefix + v.Name + ".nmconnection", "", 0o600}, v.MTU)
	}
	return n.edited(File{NetworkdPrefix + v.Name + ".network", "", 0o644}, v.MTU)
}

// lookAtVLAN holds a VLAN interface against what was set; netdevs are the interfaces that it may be
// on, by the names of ports and bonds.
func (n Node) lookAtVLAN(v wire.NetworkVLAN, netdevs map[string]string) wire.InterfaceState {
	over := netdevs[v.Over]
	l := wire.InterfaceState{Name: v.Name, Netdev: v.Name, VLAN: true}
	problem := func(format string, args ...any) { l.Problems = append(l.Problems, fmt.Sprintf(format, args...)) }
	if !n.FS.Exists("sys/class/net", v.Name) {
		problem("there is no such interface on the node: VLANs are made by an installation, and need the module 8021q")
		return l
	}
	id, on := n.vlan(v.Name)
	switch {
	case id == 0:
		problem("it is no VLAN interface")
		return l
	case id != v.ID:
		problem("its VLAN is %d, not %d", id, v.ID)
	}
	if mac := n.FS.Text("sys/class/net", on, "address"); v.Over == "" && !strings.EqualFold(mac, v.MAC.String()) {
		problem("it is on %s, with MAC %s, and not on the NIC with MAC %s that the node booted from", on, mac, v.MAC)
	} else if over != "" && on != over {
		problem("it is on %s, not on %s", on, over)
	}
	n.lookAtAddresses(v, problem)
	if judged := slices.Contains(slices.Collect(maps.Values(netdevs)), on); judged && int(n.FS.Int("sys/class/net", on, "mtu")) < v.MTU {
		return l // it follows, and is a problem of what it is on
	}
	n.lookAtMTU(&l, v.MTU, n.vlanFile(v))
	return l
}

// lookAtAddresses says which addresses a VLAN interface lacks, or has twice on its network.
func (n Node) lookAtAddresses(v wire.NetworkVLAN, problem func(format string, args ...any)) {
	have, err := n.Addresses(v.Name)
	if err != nil {
		problem("its addresses cannot be read: %v", err)
	}
	for _, a := range v.Addresses {
		f, _ := n.inet6(a.Addr())
		switch {
		case a.Addr().Is6() && f.netdev == v.Name && f.flags&dadFailed != 0:
			problem("another machine on its network has %s: duplicate address detection failed", a.Addr())
		case !slices.Contains(have, a) && err == nil:
			problem("it has no address %s", a)
		}
	}
}

// vlan is the VLAN ID of an interface and what it is on, by /proc/net/vlan; 0: it is none. The
// first line is `vlan30  VID: 30	 REORDER_HDR: 1  dev->priv_flags: 1021`, and one is `Device: eth0`.
func (n Node) vlan(name string) (id int, over string) {
	for f := range n.procLines("proc/net/vlan/" + name) {
		switch {
		case len(f) >= 3 && f[1] == "VID:":
			id, _ = strconv.Atoi(f[2])
		case len(f) == 2 && f[0] == "Device:":
			over = f[1]
		}
	}
	return id, over
}
