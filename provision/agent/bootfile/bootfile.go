// SPDX-License-Identifier: Apache-2.0

// Package bootfile reads what a node is told when it netboots: the boot file of
// its initrd segment and the words of the kernel's command line. Both come over
// the boot network and are checked.
package bootfile

import (
	"encoding/json"
	"net/netip"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// Parameters returns the words of the kernel's command line that ironrail reads.
func Parameters(fs sysfs.FS) map[string]string {
	p := map[string]string{}
	for word := range strings.FieldsSeq(fs.Text("proc/cmdline")) {
		key, value, _ := strings.Cut(word, "=")
		p[key] = value
	}
	return p
}

// Read reads the boot file and checks it. The command line may name another
// place (ironrail.boot=) and says which NIC booted (BOOTIF=) where the file does not.
func Read(fs sysfs.FS) (wire.Boot, error) {
	again := "Netboot the node through ironrail; its boot script adds the per-node part of the ramdisk."
	words := Parameters(fs)
	path := wire.BootFile
	if words["ironrail.boot"] != "" {
		path = words["ironrail.boot"]
	}
	b := fs.Bytes(path)
	if b == nil {
		return wire.Boot{}, errkind.New(errkind.NotFound, "no boot file at %s", path).Do(again)
	}
	var boot wire.Boot
	if err := json.Unmarshal(b, &boot); err != nil {
		return wire.Boot{}, errkind.New(errkind.Invalid, "boot file %s: %w", path, err).Do(again)
	}
	if _, err := netip.ParsePrefix(boot.Address); err != nil {
		return wire.Boot{}, errkind.New(errkind.Invalid, "boot file %s: address: %w", path, err).Do(again)
	}
	if boot.Gateway != "" {
		if _, err := netip.ParseAddr(boot.Gateway); err != nil {
			return wire.Boot{}, errkind.New(errkind.Invalid, "boot file %s: gateway: %w", path, err).Do(again)
		}
	}
	const mostVLAN = 4094 // IEEE 802.1Q, 9.6
	if boot.VLAN < 0 || boot.VLAN > mostVLAN {
		return wire.Boot{}, errkind.New(errkind.Invalid, "boot file %s: VLAN %d", path, boot.VLAN).Do(again)
	}
	if boot.BootMAC.IsZero() {
		boot.BootMAC = bootIF(words["BOOTIF"])
	}
	if boot.BootMAC.IsZero() {
		return wire.Boot{}, errkind.New(errkind.NotFound, "neither the boot file nor the command line says which NIC booted").Do(again)
	}
	return boot, nil
}

// bootIF reads the BOOTIF of PXELINUX and its followers: the hardware type (01
// for Ethernet), then the MAC, with dashes. Some loaders leave the type out.
func bootIF(text string) addr.MAC {
	if len(text) == len("01-52-54-00-77-00-11") {
		text = text[3:]
	}
	mac, err := addr.ParseMAC(text)
	if err != nil {
		return addr.MAC{}
	}
	return mac
}
