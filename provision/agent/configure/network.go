// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"strings"

	"github.com/ironrail/ironrail/provision/agent/interfaces"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// units are what `systemctl enable systemd-networkd` links.
var units = map[string]string{
	"etc/systemd/system/multi-user.target.wants/systemd-networkd.service":                 "/lib/systemd/system/systemd-networkd.service",
	"etc/systemd/system/sockets.target.wants/systemd-networkd.socket":                     "/lib/systemd/system/systemd-networkd.socket",
	"etc/systemd/system/network-online.target.wants/systemd-networkd-wait-online.service": "/lib/systemd/system/systemd-networkd-wait-online.service",
	"etc/systemd/system/dbus-org.freedesktop.network1.service":                            "/lib/systemd/system/systemd-networkd.service",
}

// network gives the boot NIC its address and the ports of networks what these say: by
// netplan where the system has that, by NetworkManager where it has that and no
// systemd-networkd, else by that.
func (s settings) network(root rootfs.Root) error {
	boot := s.boot()
	manager := interfaces.UsesManager(root)
	files := interfaces.Networkd(boot, s.layout)
	switch {
	case interfaces.UsesNetplan(root):
		files = interfaces.Netplan(boot, s.layout)
	case manager:
		files = append(interfaces.Manager(boot, s.layout), interfaces.File{Name: managerConf, Text: interfaces.ManagerConf(boot, s.layout), Mode: 0o644})
	}
	for _, f := range files {
		if err := rootfs.WriteText(root, f.Name, f.Text, f.Mode); err != nil {
			return err
		}
	}
	if err := s.resolver(root); err != nil {
		return err
	}
	if manager {
		return nil
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

func (s settings) boot() interfaces.Boot {
	return interfaces.Boot{MAC: s.BootNIC, Address: s.Address, Gateway: s.Gateway, DNS: s.DNS, Domain: s.Domain}
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
