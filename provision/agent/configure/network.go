// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// units are what `systemctl enable systemd-networkd` links.
var units = map[string]string{
	"etc/systemd/system/multi-user.target.wants/systemd-networkd.service":                 "/lib/systemd/system/systemd-networkd.service",
	"etc/systemd/system/sockets.target.wants/systemd-networkd.socket":                     "/lib/systemd/system/systemd-networkd.socket",
	"etc/systemd/system/network-online.target.wants/systemd-networkd-wait-online.service": "/lib/systemd/system/systemd-networkd-wait-online.service",
	"etc/systemd/system/dbus-org.freedesktop.network1.service":                            "/lib/systemd/system/systemd-networkd.service",
}

// network gives the boot NIC its address by systemd-networkd, where the system has it,
// matched by MAC: names of interfaces differ between kernels. Type=ether keeps bridges and VLANs
// with the same MAC out.
func (s settings) network(root rootfs.Root) error {
	if usesManager(root) {
		return s.manager(root)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by ironrail when this node was installed.\n[Match]\nMACAddress=%s\nType=ether\n\n[Network]\nDHCP=no\nIPv6AcceptRA=no\nAddress=%s\n", s.BootNIC, s.Address)
	if s.Gateway != "" {
		fmt.Fprintf(&b, "Gateway=%s\n", s.Gateway)
	}
	for _, d := range s.DNS {
		fmt.Fprintf(&b, "DNS=%s\n", d)
	}
	if s.Domain != "" {
		fmt.Fprintf(&b, "Domains=%s\n", s.Domain)
	}
	if err := rootfs.WriteText(root, "etc/systemd/network/10-ironrail-boot.network", b.String(), 0o644); err != nil {
		return err
	}
	if err := s.resolver(root); err != nil {
		return err
	}
	for name, target := range units {
		if !rootfs.Exists(root, strings.TrimPrefix(target, "/")) {
			continue // an image without this unit
		}
		if err := rootfs.Link(root, target, name); err != nil {
			return err
		}
	}
	return nil
}

// resolver writes resolv.conf as a plain file, in place of a link into /run.
func (s settings) resolver(root rootfs.Root) error {
	text := "# Written by ironrail when this node was installed.\n"
	if s.Domain != "" {
		text += "search " + s.Domain + "\n"
	}
	for _, d := range s.DNS {
		text += "nameserver " + d + "\n"
	}
	return rootfs.WriteText(root, "etc/resolv.conf", text, 0o644)
}
