// SPDX-License-Identifier: Apache-2.0

package ramdisk

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// How long the NIC may take to appear, and its link to come up. Switch ports
// with spanning tree take 30 s and more, so a missing link is only said.
const (
	nicDeadline     = 90 * time.Second
	carrierDeadline = 60 * time.Second
	lookEvery       = 250 * time.Millisecond
)

// bringUp finds the NIC that booted and gives it its address. Every other
// interface is left alone: a BMC's USB NIC would otherwise answer first.
func bringUp(ctx context.Context, fs sysfs.FS, boot wire.Boot, log *slog.Logger) error {
	if lo, err := netlink.LinkByName("lo"); err == nil {
		netlink.LinkSetUp(lo) // nothing depends on it
	}
	name, err := waitNIC(ctx, fs, boot.BootMAC)
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("NIC %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("NIC %s: set up: %w", name, err)
	}
	if err := setAddress(link, boot); err != nil {
		return err
	}
	log.Info("boot NIC is up", "nic", name, "mac", boot.BootMAC, "pci", fs.NetdevPCI(name), "addr", boot.Address)
	if !waitCarrier(ctx, fs, name) {
		log.Warn("boot NIC has no link yet", "nic", name, "hint", "Look at the cable and the switch port if this stays.")
	}
	return nil
}

// waitNIC waits for the interface with the MAC. Drivers and firmware of large
// NICs take tens of seconds.
func waitNIC(ctx context.Context, fs sysfs.FS, mac addr.MAC) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, nicDeadline)
	defer cancel()
	for {
		found := findNICs(fs, mac)
		if len(found) == 1 {
			return found[0], nil
		}
		select {
		case <-ctx.Done():
			return "", noNIC(fs, mac, found)
		case <-time.After(lookEvery):
		}
	}
}

// noNIC says why no interface is the boot NIC.
func noNIC(fs sysfs.FS, mac addr.MAC, found []string) error {
	if len(found) > 1 {
		return errkind.New(errkind.Conflict, "%d NICs have the boot MAC %s, and nothing tells which one booted: %s", len(found), mac, describe(fs)).
			Do("Give each port a MAC of its own in the firmware of the NICs, and boot_mac that of the one that boots.")
	}
	return errkind.New(errkind.NotFound, "no NIC has the boot MAC %s after %s; there are %s", mac, nicDeadline, describe(fs)).
		Do("Correct boot_mac in the inventory, or rebuild the ramdisk with the NIC's driver.")
}

// findNICs returns the interfaces with a MAC; those with a PCI parent win over any
// others that have the same (a bridge, a bond, a USB NIC that copies it).
func findNICs(fs sysfs.FS, mac addr.MAC) (found []string) {
	var copies []string
	for _, name := range fs.Names("sys/class/net") {
		have, err := addr.ParseMAC(fs.Text("sys/class/net", name, "address"))
		switch {
		case err != nil || have != mac || !fs.Exists("sys/class/net", name, "device"):
		case fs.NetdevPCI(name) != "":
			found = append(found, name)
		default:
			copies = append(copies, name)
		}
	}
	if len(found) == 0 {
		return copies
	}
	return found
}

// describe lists the NICs that are there, for an error.
func describe(fs sysfs.FS) string {
	var all []string
	for _, name := range fs.Netdevs() {
		all = append(all, fs.Text("sys/class/net", name, "address")+" at "+fs.NetdevPCI(name))
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// setAddress sets the static address and the default route of the boot file.
func setAddress(link netlink.Link, boot wire.Boot) error {
	prefix, err := netip.ParsePrefix(boot.Address)
	if err != nil {
		return err
	}
	ip := &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: ip}); err != nil {
		return fmt.Errorf("NIC %s: address %s: %w", link.Attrs().Name, boot.Address, err)
	}
	if boot.Gateway == "" {
		return nil
	}
	gateway, err := netip.ParseAddr(boot.Gateway)
	if err != nil {
		return err
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: gateway.AsSlice()}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("NIC %s: gateway %s: %w", link.Attrs().Name, boot.Gateway, err)
	}
	return nil
}

// waitCarrier waits for the link; the caller goes on without it.
func waitCarrier(ctx context.Context, fs sysfs.FS, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, carrierDeadline)
	defer cancel()
	for fs.Text("sys/class/net", name, "carrier") != "1" {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(lookEvery):
		}
	}
	return true
}
