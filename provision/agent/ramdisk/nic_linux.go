// SPDX-License-Identifier: Apache-2.0

package ramdisk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

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
	carrier := link
	if boot.VLAN != 0 {
		if link, err = addVLAN(link, boot.VLAN); err != nil {
			return err
		}
	}
	if err := setAddress(link, boot); err != nil {
		return err
	}
	log.Info("boot NIC is up", "nic", carrier.Attrs().Name, "vlan", boot.VLAN, "mac", boot.BootMAC, "pci", fs.NetdevPCI(name), "addr", boot.Address)
	if !waitCarrier(ctx, fs, name) {
		log.Warn("boot NIC has no link yet", "nic", name, "hint", "Look at the cable and the switch port if this stays.")
	}
	return nil
}

// vlanModule makes VLAN interfaces; kernels ask for it by themselves where modprobe is there.
const vlanModule = "8021q"

// vlanName is the name of the VLAN interface of the boot network.
func vlanName(id int) string { return fmt.Sprintf("vlan%d", id) }

// addVLAN makes the VLAN interface of the boot network on the NIC that booted, or takes the one
// that the agent made before it crashed.
func addVLAN(nic netlink.Link, id int) (netlink.Link, error) {
	name := vlanName(id)
	fail := func(err error) (netlink.Link, error) {
		return nil, errkind.New(errkind.Unsupported, "NIC %s: VLAN %d: %w", nic.Attrs().Name, id, err).
			Do("Look whether the kernel of the image has the module " + vlanModule + ", and build the image again.")
	}
	if err := load(vlanModule); err != nil && errkind.Of(err) != errkind.Unsupported { // that: no modules, so that it may be built in
		return fail(err)
	}
	vlan := &netlink.Vlan{LinkAttrs: netlink.NewLinkAttrs(), VlanId: id}
	vlan.Name, vlan.ParentIndex = name, nic.Attrs().Index
	if err := netlink.LinkAdd(vlan); err != nil && !errors.Is(err, unix.EEXIST) {
		return fail(err)
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fail(err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fail(err)
	}
	return link, nil
}

// retag moves the address and the default route between the VLAN interface and the NIC that it is on.
func retag(fs sysfs.FS, boot wire.Boot, tagged bool) error {
	found := findNICs(fs, boot.BootMAC)
	if len(found) != 1 {
		return noNIC(fs, boot.BootMAC, found)
	}
	nic, err := netlink.LinkByName(found[0])
	if err != nil {
		return fmt.Errorf("NIC %s: %w", found[0], err)
	}
	vlan, err := netlink.LinkByName(vlanName(boot.VLAN))
	if err != nil {
		return fmt.Errorf("VLAN %d: %w", boot.VLAN, err)
	}
	from, to := vlan, nic
	if tagged {
		from, to = nic, vlan
	}
	addresses, err := netlink.AddrList(from, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("addresses of %s: %w", from.Attrs().Name, err)
	}
	for _, a := range addresses { // its routes go with it
		if err := netlink.AddrDel(from, &a); err != nil {
			return fmt.Errorf("address of %s: %w", from.Attrs().Name, err)
		}
	}
	return setAddress(to, boot)
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
