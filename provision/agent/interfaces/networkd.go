// SPDX-License-Identifier: Apache-2.0

package interfaces

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/wire"
)

// Boot is the addresses of the node, which are those of the NIC that it booted from. Its
// texts have been checked by the caller.
type Boot struct {
	MAC     addr.MAC
	Address string // CIDR
	Gateway string
	DNS     []string
	Domain  string
}

// written is the first line of every file.
const written = "# Written by ironrail when this node was installed.\n"

// modes are how bonds share their load, with what else is set of each. Links are looked at
// ten times a second, partners are asked each second so that one that is gone is noticed
// in three, and flows are distinguished by their ports: the defaults of Cumulus Linux for
// bonds (docs.nvidia.com, Cumulus Linux, Bonding - Link Aggregation).
var modes = map[string][]setting{
	"802.3ad":       {{"LACPTransmitRate", "lacp_rate", "fast"}, {"TransmitHashPolicy", "xmit_hash_policy", "layer3+4"}},
	"balance-xor":   {{"TransmitHashPolicy", "xmit_hash_policy", "layer3+4"}},
	"balance-rr":    nil,
	"active-backup": nil,
}

// setting is a setting of a bond, as networkd and as NetworkManager call it.
type setting struct{ networkd, manager, value string }

// bondingFile keeps the kernel's module from making a bond0 of its own when it is loaded:
// one that is there is not made as it is to be.
const bondingFile, bondingText = "etc/modprobe.d/ironrail-bonding.conf", written + "options bonding max_bonds=0\n"

// Networkd returns the files of systemd-networkd (systemd.network(5), systemd.netdev(5)).
// Those of ports match by MAC: names of interfaces differ between kernels. Type=ether
// keeps bonds, bridges and VLANs with the same MAC out.
func Networkd(b Boot, l Layout) (list []File) {
	link, boot := "", l.networkdAddresses(b)
	if _, tagged := l.bootVLAN(); tagged {
		link, boot = notRequired, noAddress
	}
	boot += networkdVLANs(l.vlansOverBoot(b))
	match := "MACAddress=" + b.MAC.String() + "\nType=ether\n"
	own, bonded := l.bootBond(b.MAC)
	if bonded {
		match = "Name=" + own.Name + "\n"
	}
	list = []File{network("boot", match, link, boot, own.MTU)}
	for _, x := range l.Bonds {
		list = append(list, l.netdev(b, x))
		if !bonded || x.Name != own.Name {
			list = append(list, network("bond-"+x.Name, "Name="+x.Name+"\n", notRequired, noAddress+networkdVLANs(vlansOver(l.VLANs, x.Name)), x.MTU))
		}
	}
	for _, p := range l.Ports {
		switch x, member := bondOf(l.Bonds, p.Name); {
		case member:
			list = append(list, networkdMember(p, x, p.MAC == b.MAC))
		case p.MAC == b.MAC:
			list[0].Text = withLinkMTU(list[0].Text, p.MTU)
		default:
			list = append(list, networkdPort(p))
		}
	}
	for _, v := range l.VLANs {
		list = append(list, l.networkdVLAN(b, v)...)
	}
	if len(l.Bonds) > 0 {
		list = append(list, File{bondingFile, bondingText, 0o644})
	}
	return list
}

// networkdAddresses is what the interface with the addresses of the node has.
func (l Layout) networkdAddresses(b Boot) string {
	text := "[Network]\nDHCP=no\nIPv6AcceptRA=no\n"
	for _, a := range l.addresses(b) {
		text += "Address=" + a + "\n"
	}
	for _, g := range l.gateways(b) {
		text += "Gateway=" + g + "\n"
	}
	for _, d := range b.DNS {
		text += "DNS=" + d + "\n"
	}
	if b.Domain != "" {
		text += "Domains=" + b.Domain + "\n"
	}
	return text
}

// A port without addresses; one without a cable does not hold up the boot.
const (
	notRequired = "[Link]\nRequiredForOnline=no\n\n"
	noAddress   = "[Network]\nDHCP=no\nIPv6AcceptRA=no\nLinkLocalAddressing=no\nConfigureWithoutCarrier=yes\n"
)

// network is one file of an interface; mtu 0 is not written.
func network(name, match, link, network string, mtu int) File {
	text := written + "[Match]\n" + match + "\n" + link + network
	if mtu != 0 {
		text = withLinkMTU(text, mtu)
	}
	return File{NetworkdPrefix + name + ".network", text, 0o644}
}

func networkdPort(p Port) File {
	return network(base(p.Name), "MACAddress="+p.MAC.String()+"\nType=ether\n", notRequired, noAddress+networkdVLANs(p.VLANs), p.MTU)
}

// networkdMember is the file of a member of a bond, which shows the MAC of the bond when
// it is one: it is matched by its own. Of members of which one is used, that is the one
// that the firmware boots from.
func networkdMember(p Port, b wire.NetworkBond, boots bool) File {
	text := "[Network]\nBond=" + b.Name + "\n"
	if b.Mode == "active-backup" && boots {
		text += "PrimarySlave=yes\n"
	}
	return network(base(p.Name), "PermanentMACAddress="+p.MAC.String()+"\nType=ether\n", notRequired, text, p.MTU)
}

// netdev makes a bond, with the MAC by which the node is known: that of the port that it
// boots from, if that is a member, else that of the first.
func (l Layout) netdev(b Boot, x wire.NetworkBond) File {
	mac := l.bondMAC(b, x)
	text := fmt.Sprintf("%s[NetDev]\nName=%s\nKind=bond\nMACAddress=%s\n\n[Bond]\nMode=%s\nMIIMonitorSec=100ms\n", written, x.Name, mac, x.Mode)
	for _, s := range modes[x.Mode] {
		text += s.networkd + "=" + s.value + "\n"
	}
	return File{NetworkdPrefix + "bond-" + x.Name + ".netdev", text, 0o644}
}

func (l Layout) bondMAC(b Boot, x wire.NetworkBond) addr.MAC {
	if own, ok := l.bootBond(b.MAC); ok && own.Name == x.Name {
		return b.MAC
	}
	return l.port(x.Members[0]).MAC
}

// withLinkMTU returns the text of one of these files with an MTU.
func withLinkMTU(text string, mtu int) string {
	const network = "\n[Network]\n"
	head, tail, found := strings.Cut(text, network)
	if !found {
		return text
	}
	lines := strings.SplitAfter(head, "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "MTUBytes=") })
	head = strings.Join(lines, "")
	if set := fmt.Sprintf("[Link]\nMTUBytes=%d\n", mtu); strings.Contains(head, "[Link]\n") {
		head = strings.Replace(head, "[Link]\n", set, 1)
	} else {
		head += "\n" + set
	}
	return head + network + tail
}
