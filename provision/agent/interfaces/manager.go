// SPDX-License-Identifier: Apache-2.0

package interfaces

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/wire"
)

// Manager returns the profiles of NetworkManager (nm-settings-keyfile(5)). It reads no
// profile that others than root may read.
func Manager(b Boot, l Layout) (list []File) {
	own, bonded := l.bootBond(b.MAC)
	begin := ethernet("boot", b.MAC)
	if bonded {
		begin = l.bondProfile(b, own, "boot")
	}
	end := l.managerAddresses(b)
	if _, tagged := l.bootVLAN(); tagged {
		end = unaddressed
	}
	list = []File{profile("boot", begin+end, own.MTU)}
	for _, x := range l.Bonds {
		if !bonded || x.Name != own.Name {
			list = append(list, profile("bond-"+x.Name, l.bondProfile(b, x, "bond-"+x.Name)+unaddressed, x.MTU))
		}
	}
	for _, p := range l.Ports {
		switch x, member := bondOf(l.Bonds, p.Name); {
		case member:
			text := strings.Replace(ethernet(base(p.Name), p.MAC), "\n\n[ethernet]", "\nmaster="+x.Name+"\nslave-type=bond\n\n[ethernet]", 1)
			list = append(list, profile(base(p.Name), text, p.MTU))
		case p.MAC == b.MAC:
			list[0].Text = withProfileMTU(list[0].Text, p.MTU)
		default:
			list = append(list, managerPort(p))
		}
	}
	for _, v := range l.VLANs {
		list = append(list, l.managerVLAN(b, v))
	}
	if len(l.Bonds) > 0 {
		list = append(list, File{bondingFile, bondingText, 0o644})
	}
	return list
}

// managerAddresses is the end of the profile with the addresses of the node: a section of
// each family, of which the one of the address that the node is reached by has the domain.
func (l Layout) managerAddresses(b Boot) (text string) {
	first := netip.MustParsePrefix(b.Address).Addr().Is6()
	for _, six := range []bool{first, !first} {
		name := map[bool]string{false: "ipv4", true: "ipv6"}[six]
		is := func(a string) bool {
			p, err := netip.ParsePrefix(a)
			return err == nil && p.Addr().Is6() == six
		}
		of := func(a string) bool { return netip.MustParseAddr(a).Is6() == six }
		i := slices.IndexFunc(l.addresses(b), is)
		if i < 0 {
			text += "\n[" + name + "]\nmethod=" + map[bool]string{false: "disabled", true: "link-local"}[six] + "\n"
			continue
		}
		text += "\n[" + name + "]\nmethod=manual\naddress1=" + l.addresses(b)[i] + "\n"
		for _, g := range l.gateways(b) {
			if of(g) {
				text += "gateway=" + g + "\n"
			}
		}
		if dns := slices.DeleteFunc(slices.Clone(b.DNS), func(d string) bool { return !of(d) }); len(dns) > 0 {
			text += "dns=" + strings.Join(dns, ";") + ";\n"
		}
		if b.Domain != "" && six == first {
			text += "dns-search=" + b.Domain + ";\n"
		}
	}
	return text
}

// unaddressed is the end of the profile of an interface without addresses.
const unaddressed = "\n[ipv4]\nmethod=disabled\n\n[ipv6]\nmethod=disabled\n"

// profile is one profile; mtu 0 is not written.
func profile(name, text string, mtu int) File {
	if mtu != 0 {
		text = withProfileMTU(text, mtu)
	}
	return File{ManagerPrefix + name + ".nmconnection", text, 0o600}
}

// connection begins a profile.
func connection(name, kind string, mac addr.MAC) string {
	return fmt.Sprintf("%s[connection]\nid=ironrail-%s\nuuid=%s\ntype=%s\nautoconnect-priority=100\n", written, name, profileID(name, mac), kind)
}

// profileID is the UUID of a profile.
func profileID(name string, mac addr.MAC) uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceOID, append(mac[:], name...))
}

// ethernet begins the profile of a port.
func ethernet(name string, mac addr.MAC) string {
	return connection(name, "ethernet", mac) + "\n[ethernet]\nmac-address=" + strings.ToUpper(mac.String()) + "\n"
}

// bondProfile begins the profile of a bond. Its members come up with it.
func (l Layout) bondProfile(b Boot, x wire.NetworkBond, name string) string {
	mac := l.bondMAC(b, x)
	text := connection(name, "bond", mac) + "interface-name=" + x.Name + "\nautoconnect-slaves=1\n\n[bond]\nmode=" + x.Mode + "\nmiimon=100\n"
	for _, s := range modes[x.Mode] {
		text += s.manager + "=" + s.value + "\n"
	}
	return text + "\n[ethernet]\ncloned-mac-address=" + strings.ToUpper(mac.String()) + "\n"
}

func managerPort(p Port) File {
	return profile(base(p.Name), ethernet(base(p.Name), p.MAC)+unaddressed, p.MTU)
}

// withProfileMTU returns the text of one of these profiles with an MTU.
func withProfileMTU(text string, mtu int) string {
	lines := strings.SplitAfter(text, "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "mtu=") })
	at := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "mac-address=") || strings.HasPrefix(l, "cloned-mac-address=")
	})
	if at < 0 { // of a VLAN
		at = slices.Index(lines, "[ethernet]\n")
	}
	if at >= 0 {
		lines = slices.Insert(lines, at+1, fmt.Sprintf("mtu=%d\n", mtu))
	}
	return strings.Join(lines, "")
}

// ManagerConf is the configuration of NetworkManager that goes with the profiles: it sets
// up nothing else, leaves resolv.conf to the installation, and a port without addresses
// is set up without a cable too, as its MTU is looked at.
func ManagerConf(b Boot, l Layout) string {
	text := "# Written by ironrail: the addresses of this node are those of its profile.\n[main]\nno-auto-default=*\ndns=none\n"
	var macs []string
	for _, p := range l.Ports {
		if _, member := bondOf(l.Bonds, p.Name); !member && p.MAC != b.MAC {
			macs = append(macs, "mac:"+p.MAC.String())
		}
	}
	if len(macs) > 0 {
		text += "\n[device-ironrail]\nmatch-device=" + strings.Join(macs, ",") + "\nignore-carrier=yes\n"
	}
	return text
}

// Unmanaged are the interfaces that NetworkManager is to leave to systemd-networkd where a
// system has both (NetworkManager.conf(5), unmanaged-devices).
func Unmanaged(b Boot, l Layout) string {
	text := "mac:" + b.MAC.String()
	for _, p := range l.Ports {
		if p.MAC != b.MAC {
			text += ";mac:" + p.MAC.String()
		}
	}
	for _, x := range l.Bonds {
		text += ";interface-name:" + x.Name
	}
	for _, v := range l.VLANs {
		text += ";interface-name:" + v.Name
	}
	return text
}
