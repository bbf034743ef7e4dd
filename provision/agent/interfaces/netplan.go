// SPDX-License-Identifier: Apache-2.0

package interfaces

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// NetplanFile is where netplan has the interfaces of a node, below the root. netplan(5)
// makes the files of systemd-networkd of it at every boot. Nobody but root may read it: it
// may hold passwords in general, and netplan complains of others.
const NetplanFile = "etc/netplan/10-ironrail.yaml"

// netplanProgram is in every system whose interfaces netplan sets up (Ubuntu since 17.10,
// Debian's images for clouds).
const netplanProgram = "usr/sbin/netplan"

// UsesNetplan reports whether netplan sets the addresses of a system, by systemd-networkd.
func UsesNetplan(root rootfs.Root) bool {
	return rootfs.Exists(root, netplanProgram) && !UsesManager(root)
}

// The identifiers of netplan for interfaces of the node are those that its other files have
// as names; a bond is called as its interface.
const netplanBoot = "boot"

// netplanSection is what one interface is set up by: its identifier, and lines.
type netplanSection struct {
	id    string
	lines []string
}

// Netplan returns the file of netplan. Ports match by MAC: names of interfaces differ
// between kernels.
func Netplan(b Boot, l Layout) []File {
	own, bonded := l.bootBond(b.MAC)
	ethernets, bootLines := []netplanSection{}, l.netplanAddresses(b)
	if _, tagged := l.bootVLAN(); tagged {
		bootLines = netplanUnaddressed
	}
	if !bonded {
		ethernets = append(ethernets, netplanEthernet(netplanBoot, b.MAC.String(), bootLines))
	}
	for _, p := range l.Ports {
		switch _, member := bondOf(l.Bonds, p.Name); {
		case member:
			s := netplanEthernet(base(p.Name), p.MAC.String(), netplanQuiet)
			s.setMTU(p.MTU)
			ethernets = append(ethernets, s)
		case p.MAC == b.MAC:
			ethernets[0].setMTU(p.MTU)
		default:
			ethernets = append(ethernets, netplanPort(p))
		}
	}
	text := written + "network:\n  version: 2\n  renderer: networkd\n" + netplanText("ethernets", ethernets)
	var bonds []netplanSection
	for _, x := range l.Bonds {
		lines := netplanUnaddressed
		if bonded && x.Name == own.Name {
			lines = bootLines
		}
		bonds = append(bonds, l.netplanBond(b, x, lines))
	}
	var vlans []netplanSection
	for _, v := range l.VLANs {
		vlans = append(vlans, l.netplanVLAN(b, v))
	}
	list := []File{{NetplanFile, text + netplanText("bonds", bonds) + netplanText("vlans", vlans), 0o600}}
	if len(l.Bonds) > 0 {
		list = append(list, File{bondingFile, bondingText, 0o644})
	}
	return list
}

// netplanQuiet is what every interface has: nothing but what is written here gives it
// addresses. Those without addresses do not hold up the boot, and are set up without a
// cable too, as their MTU is looked at.
var (
	netplanQuiet       = []string{"dhcp4: false", "dhcp6: false", "accept-ra: false"}
	netplanUnaddressed = append(append([]string{}, netplanQuiet...), "link-local: []", "optional: true", "ignore-carrier: true")
)

// netplanAddresses is what the interface with the addresses of the node has.
func (l Layout) netplanAddresses(b Boot) []string {
	lines := append(append([]string{}, netplanQuiet...), "addresses:")
	for _, a := range l.addresses(b) {
		lines = append(lines, "- "+strconv.Quote(a))
	}
	for i, g := range l.gateways(b) {
		if i == 0 {
			lines = append(lines, "routes:")
		}
		lines = append(lines, "- to: default", "  via: "+strconv.Quote(g)) // of the family of via
	}
	if len(b.DNS) == 0 && b.Domain == "" {
		return lines
	}
	lines = append(lines, "nameservers:")
	if len(b.DNS) > 0 {
		lines = append(lines, "  addresses:")
		for _, d := range b.DNS {
			lines = append(lines, "  - "+strconv.Quote(d))
		}
	}
	if b.Domain != "" {
		lines = append(lines, "  search:", "  - "+strconv.Quote(b.Domain))
	}
	return lines
}

// netplanEthernet is a port.
func netplanEthernet(id, mac string, lines []string) netplanSection {
	return netplanSection{id, append([]string{"match:", "  macaddress: " + strconv.Quote(mac)}, lines...)}
}

// netplanPort is a port without addresses, in no bond.
func netplanPort(p Port) netplanSection {
	s := netplanEthernet(base(p.Name), p.MAC.String(), netplanUnaddressed)
	s.setMTU(p.MTU)
	return s
}

// netplanBond is a bond, with the MAC by which the node is known.
func (l Layout) netplanBond(b Boot, x wire.NetworkBond, lines []string) netplanSection {
	s := netplanSection{x.Name, []string{"interfaces:"}}
	for _, m := range x.Members {
		s.lines = append(s.lines, "- "+base(m))
	}
	s.lines = append(s.lines, "macaddress: "+strconv.Quote(l.bondMAC(b, x).String()), "parameters:", "  mode: "+x.Mode, "  mii-monitor-interval: 100")
	for _, set := range modes[x.Mode] {
		s.lines = append(s.lines, "  "+netplanSettings[set.manager]+": "+set.value)
	}
	if x.Mode == "active-backup" {
		for _, m := range x.Members {
			if l.port(m).MAC == b.MAC {
				s.lines = append(s.lines, "  primary: "+base(m))
			}
		}
	}
	s.lines = append(s.lines, lines...)
	s.setMTU(x.MTU)
	return s
}

// netplanSettings are the settings of bonds as netplan calls them, by what the kernel does.
var netplanSettings = map[string]string{"lacp_rate": "lacp-rate", "xmit_hash_policy": "transmit-hash-policy"}

// setMTU sets the MTU, bytes; 0: none is set.
func (s *netplanSection) setMTU(mtu int) {
	if mtu != 0 {
		s.lines = append([]string{fmt.Sprintf("mtu: %d", mtu)}, s.lines...)
	}
}

// netplanText is a mapping of interfaces of a kind; "" for none.
func netplanText(kind string, all []netplanSection) string {
	if len(all) == 0 {
		return ""
	}
	text := "  " + kind + ":\n"
	for _, s := range all {
		text += s.text()
	}
	return text
}

// text is the section in the file.
func (s netplanSection) text() string {
	return "    " + s.id + ":\n      " + strings.Join(s.lines, "\n      ") + "\n"
}

// cutNetplan splits the file around the lines of a section, which are the deeper ones behind
// its identifier.
func cutNetplan(text, id string) (head, lines, tail string, found bool) {
	key := "    " + id + ":\n"
	head, tail, found = strings.Cut(text, "\n"+key)
	if !found {
		return text, "", "", false
	}
	head += "\n" + key
	for line := range strings.Lines(tail) {
		if !strings.HasPrefix(line, "      ") {
			break
		}
		lines += line
	}
	return head, lines, tail[len(lines):], true
}

// usesNetplan reports whether an installation has set up the interfaces of this node by netplan.
func (n Node) usesNetplan() bool { return n.FS.Exists(NetplanFile) }

// netplanFile is the file as it is to be with an MTU for an interface. One that has no
// section yet gets the one that is given; without that, the file has no name.
func (n Node) netplanFile(id string, mtu int, missing netplanSection) File {
	text := string(n.FS.Bytes(NetplanFile))
	head, lines, tail, found := cutNetplan(text, id)
	if !found {
		const kind = "  ethernets:\n"
		before, after, ok := strings.Cut(text, kind)
		if !ok || missing.id == "" {
			return File{}
		}
		return File{NetplanFile, before + kind + missing.text() + after, 0o600}
	}
	if first, rest, _ := strings.Cut(lines, "\n"); strings.HasPrefix(first, "      mtu: ") {
		lines = rest
	}
	return File{NetplanFile, head + fmt.Sprintf("      mtu: %d\n", mtu) + lines + tail, 0o600}
}

// netplanFileOf is fileOf for netplan.
func (n Node) netplanFileOf(p Port, member bool) File {
	if member { // what else it says is the installation's
		return n.netplanFile(base(p.Name), p.MTU, netplanSection{})
	}
	_, own, _, _ := cutNetplan(string(n.FS.Bytes(NetplanFile)), netplanBoot)
	if strings.Contains(own, "macaddress: "+strconv.Quote(p.MAC.String())) {
		return n.netplanFile(netplanBoot, p.MTU, netplanSection{})
	}
	return n.netplanFile(base(p.Name), p.MTU, netplanPort(p))
}
