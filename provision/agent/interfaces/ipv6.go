// SPDX-License-Identifier: Apache-2.0

package interfaces

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// checkIPv6 refuses an address that cannot be written into files.
func checkIPv6(a *wire.NetworkAddress) error {
	switch {
	case a == nil:
	case a.MAC.IsZero() || !a.Address.IsValid() || !a.Address.Addr().Is6() || a.Address.Addr().Is4In6():
		return errkind.New(errkind.Internal, "interfaces: IPv6 address %s on %s", a.Address, a.MAC)
	case a.Gateway.IsValid() && (!a.Gateway.Is6() || a.Gateway.Zone() != ""):
		return errkind.New(errkind.Internal, "interfaces: IPv6 gateway %s", a.Gateway)
	}
	return nil
}

// addresses are those of the boot interface, with the length of their networks.
func (l Layout) addresses(b Boot) []string {
	if l.IPv6 == nil {
		return []string{b.Address}
	}
	return []string{b.Address, l.IPv6.Address.String()}
}

// gateways are those of the default routes, at most one of each family.
func (l Layout) gateways(b Boot) (list []string) {
	if b.Gateway != "" {
		list = append(list, b.Gateway)
	}
	if l.IPv6 != nil && l.IPv6.Gateway.IsValid() {
		list = append(list, l.IPv6.Gateway.String())
	}
	return list
}

// Flags of an address in /proc/net/if_inet6 (linux/if_addr.h).
const (
	dadFailed = 0x08 // another machine answered for it
	tentative = 0x40 // not known yet whether another machine has it
)

// mostProc is how much is read of a file of /proc/net, bytes: some ten thousand routes.
const mostProc = 8 << 20

// lookAtIPv6 holds the IPv6 address and the default route that the kernel has against those
// that were set; on is the VLAN interface that has the node's own addresses, "" where the interface
// that it booted from has them itself.
func (n Node) lookAtIPv6(want wire.NetworkAddress, on string) wire.InterfaceState {
	l := wire.InterfaceState{Name: "IPv6 address " + want.Address.String()}
	problem := func(what, format string, args ...any) wire.InterfaceState {
		l.IPv6, l.Problems = what, append(l.Problems, fmt.Sprintf(format, args...))
		return l
	}
	have, there := n.inet6(want.Address.Addr())
	switch {
	case !n.FS.Exists("proc/net/if_inet6"):
		return problem(wire.IPv6Absent, "the kernel has no IPv6: ipv6.disable=1 is among its arguments, or its module is missing")
	case !there:
		return problem(wire.IPv6Absent, "no interface has it")
	}
	l.Netdev = have.netdev
	if mac := n.FS.Text("sys/class/net", have.netdev, "address"); !strings.EqualFold(mac, want.MAC.String()) {
		return problem(wire.IPv6Absent, "%s has it, with MAC %s, and not the interface with MAC %s that the node booted from", have.netdev, mac, want.MAC)
	}
	switch {
	case on != "" && have.netdev != on: // which has the same MAC
		return problem(wire.IPv6Absent, "%s has it, and not %s", have.netdev, on)
	case have.flags&dadFailed != 0:
		return problem(wire.IPv6Duplicate, "another machine on the network of %s has it: duplicate address detection failed", have.netdev)
	case have.flags&tentative != 0:
		return problem(wire.IPv6Pending, "%s does not use it yet: duplicate address detection has not ended", have.netdev)
	case have.bits != want.Address.Bits():
		return problem(wire.IPv6Absent, "%s has it with a prefix of %d bits", have.netdev, have.bits)
	case want.Gateway.IsValid() && !n.hasDefaultRoute6(want.Gateway, have.netdev):
		return problem(wire.IPv6Route, "there is no default route by %s on %s", want.Gateway, have.netdev)
	}
	return l
}

// inet6 is one IPv6 address of an interface.
type inet6 struct {
	netdev string
	bits   int // of its prefix
	flags  uint64
}

// inet6 returns an address as the kernel has it: lines of /proc/net/if_inet6 are the
// address, index of the interface, length of the prefix, scope, flags and name, in hex.
func (n Node) inet6(a netip.Addr) (inet6, bool) {
	for f := range n.procLines("proc/net/if_inet6") {
		if len(f) < 6 || f[0] != hexAddress(a) {
			continue
		}
		bits, err := strconv.ParseUint(f[2], 16, 8)
		flags, err2 := strconv.ParseUint(f[4], 16, 32)
		if err == nil && err2 == nil {
			return inet6{f[5], int(bits), flags}, true
		}
	}
	return inet6{}, false
}

// hasDefaultRoute6 looks for a default route: lines of /proc/net/ipv6_route are destination
// and length, source and length, next hop, metric, counts, flags and name of the interface.
func (n Node) hasDefaultRoute6(gateway netip.Addr, netdev string) bool {
	for f := range n.procLines("proc/net/ipv6_route") {
		if len(f) >= 10 && f[1] == "00" && f[4] == hexAddress(gateway) && f[9] == netdev {
			return true
		}
	}
	return false
}

// procLines are the words of each line of a file.
func (n Node) procLines(name string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		text, err := n.FS.Whole(mostProc, name)
		if err != nil {
			return
		}
		for line := range strings.Lines(string(text)) {
			if !yield(strings.Fields(line)) {
				return
			}
		}
	}
}

func hexAddress(a netip.Addr) string {
	b := a.As16()
	return hex.EncodeToString(b[:])
}
