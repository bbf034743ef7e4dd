// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// Files of NetworkManager, below the root.
const (
	managerFolder = "etc/NetworkManager"
	managerConf   = managerFolder + "/conf.d/10-ironrail.conf"
	bootProfile   = managerFolder + "/system-connections/ironrail-boot.nmconnection"
)

// usesManager reports whether NetworkManager sets the addresses of a system: it has that,
// and no systemd-networkd.
func usesManager(root rootfs.Root) bool {
	const units = "usr/lib/systemd/system/"
	return rootfs.Exists(root, units+"NetworkManager.service") && !rootfs.Exists(root, units+"systemd-networkd.service") && !rootfs.Exists(root, "lib/systemd/system/systemd-networkd.service")
}

// manager gives the boot NIC its address by a profile of NetworkManager
// (nm-settings-keyfile(5)), matched by MAC, and has it leave the other NICs alone. It reads
// no profile that others than root may read.
func (s settings) manager(root rootfs.Root) error {
	prefix := netip.MustParsePrefix(s.Address) // prepare has checked it
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by ironrail when this node was installed.\n[connection]\nid=ironrail-boot\nuuid=%s\ntype=ethernet\nautoconnect-priority=100\n\n[ethernet]\nmac-address=%s\n",
		uuid.NewSHA1(uuid.NameSpaceOID, s.BootNIC[:]), strings.ToUpper(s.BootNIC.String()))
	other := "\n[ipv6]\nmethod=link-local\n"
	family := "ipv4"
	if prefix.Addr().Is6() {
		family, other = "ipv6", "\n[ipv4]\nmethod=disabled\n"
	}
	fmt.Fprintf(&b, "\n[%s]\nmethod=manual\naddress1=%s\n", family, prefix)
	if s.Gateway != "" {
		fmt.Fprintf(&b, "gateway=%s\n", s.Gateway)
	}
	if dns := slices.DeleteFunc(slices.Clone(s.DNS), func(d string) bool { return netip.MustParseAddr(d).Is6() != prefix.Addr().Is6() }); len(dns) > 0 {
		fmt.Fprintf(&b, "dns=%s;\n", strings.Join(dns, ";"))
	}
	if s.Domain != "" {
		fmt.Fprintf(&b, "dns-search=%s;\n", s.Domain)
	}
	b.WriteString(other)
	if err := rootfs.WriteText(root, bootProfile, b.String(), 0o600); err != nil {
		return err
	}
	// dns=none: resolv.conf is written by the installation.
	conf := "# Written by ironrail: the addresses of this node are those of its profile.\n[main]\nno-auto-default=*\ndns=none\n"
	if err := rootfs.WriteText(root, managerConf, conf, 0o644); err != nil {
		return err
	}
	return s.resolver(root)
}
