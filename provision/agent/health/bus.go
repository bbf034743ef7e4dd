// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// node is a NUMA node; the kernel writes -1 where the firmware does not say.
func node(s string) *int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

// interfaces reads how often the network interface of a function changed its
// carrier, and what it carries in bits a second; the most of several. nil where it
// has none, or knows no speed.
func interfaces(fs sysfs.FS, at string) (carriers, bits *int64) {
	for _, name := range fs.Names(bus, at, "net") {
		if n, err := strconv.ParseInt(fs.Text(bus, at, "net", name, "carrier_changes"), 10, 64); err == nil && (carriers == nil || n > *carriers) {
			carriers = &n
		}
		if n := fs.Int(bus, at, "net", name, "speed") * 1e6; n > 0 && (bits == nil || n > *bits) { // Mb/s; -1 without a link
			bits = &n
		}
	}
	return carriers, bits
}

// mtu reads how much the first network interface of a function sends at once, bytes; nil
// where it has none.
func mtu(fs sysfs.FS, at string) *int64 {
	for _, child := range append([]string{""}, fs.Names(bus, at)...) { // a virtio function has its interface one folder deeper
		if child != "" && !strings.HasPrefix(child, "virtio") {
			continue
		}
		for _, name := range fs.Names(bus, at, child, "net") {
			if n := fs.Int(bus, at, child, "net", name, "mtu"); n > 0 {
				return &n
			}
		}
	}
	return nil
}

// directNIC reports whether a NIC shows the PCI function through which it reaches
// GPUs on a path of its own: ConnectX-8 Data Direct, 15b3:2100 (mlx5_ib of Linux,
// data_direct.c).
func directNIC(fs sysfs.FS) bool {
	return slices.ContainsFunc(fs.Names(bus), func(at string) bool {
		return fs.Text(bus, at, "vendor") == "0x15b3" && fs.Text(bus, at, "device") == "0x2100"
	})
}

// bridges reads what stands above GPUs and NICs, in the order of addresses.
func bridges(fs sysfs.FS) []wire.PCIBridge {
	above := map[string]bool{}
	for _, at := range fs.Names(bus) {
		if !wanted(strings.TrimPrefix(fs.Text(bus, at, "class"), "0x")) {
			continue
		}
		for _, b := range sysfs.Bridges(fs.Real(bus, at)) {
			above[b] = true
		}
	}
	var list []wire.PCIBridge
	for at := range above {
		text := func(name string) string { return fs.Text(bus, at, name) }
		b := wire.PCIBridge{Address: at, Width: width(text("current_link_width")), MaxWidth: width(text("max_link_width")),
			Speed: speed(text("current_link_speed")), MaxSpeed: speed(text("max_link_speed"))}
		b.Port, b.ACS = portOf(fs.Bytes(bus, at, "config"))
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b wire.PCIBridge) int { return strings.Compare(a.Address, b.Address) })
	return list
}

// Offsets and numbers of the configuration space (PCI Express Base Specification,
// 7.5 and 7.7.11; include/uapi/linux/pci_regs.h).
const (
	firstCapability = 0x34
	capabilityPCIe  = 0x10
	firstExtended   = 0x100
	extendedACS     = 0x0d
	acsControl      = 6 // bytes into the capability
	mostHops        = 64
)

// portTypes are the device types of bridges in the PCIe capabilities register.
var portTypes = map[byte]string{4: "root", 5: "upstream", 6: "downstream"}

// portOf reads from a bridge's configuration space what kind of port it is, and
// its ACS control register. Who is not root is shown 64 bytes of it and learns
// nothing.
func portOf(config []byte) (port string, acs *int) {
	if len(config) <= firstCapability {
		return "", nil
	}
	at := int(config[firstCapability])
	for range mostHops {
		if at < 0x40 || at+3 >= len(config) {
			break
		}
		if config[at] == capabilityPCIe {
			port = portTypes[config[at+2]>>4]
			break
		}
		at = int(config[at+1])
	}
	at = firstExtended
	for range mostHops {
		if at < firstExtended || at+acsControl+2 > len(config) {
			break
		}
		head := binary.LittleEndian.Uint32(config[at:])
		if head&0xffff == extendedACS {
			v := int(binary.LittleEndian.Uint16(config[at+acsControl:]))
			return port, &v
		}
		at = int(head >> 20)
	}
	return port, nil
}
