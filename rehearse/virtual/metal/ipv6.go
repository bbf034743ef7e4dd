// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// SetGateway6 sets the gateway of an interface's IPv6 default route.
func (k *Kernel) SetGateway6(name string, gateway netip.Addr) error {
	return k.change(name, func(d *netdev) { d.gateway6 = gateway })
}

// eachNetdev calls do for what is known of interfaces, ports first.
func (k *Kernel) eachNetdev(do func(index int, name string, d netdev)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, p := range k.node.shape.ports {
		if d := k.netdevs[i]; d != nil {
			do(i+2, p.netdev, *d)
		}
	}
	for i, name := range slices.Sorted(maps.Keys(k.bonds)) {
		do(len(k.node.shape.ports)+2+i, name, k.bonds[name].netdev)
	}
	for i, name := range slices.Sorted(maps.Keys(k.vlans)) {
		do(len(k.node.shape.ports)+len(k.bonds)+2+i, name, k.vlans[name].netdev)
	}
}

// inet6 is /proc/net/if_inet6. Link-local addresses are left out: nothing asks for them. The
// flags say that an address was set and not learned (IFA_F_PERMANENT).
func (k *Kernel) inet6() (string, error) {
	text := hexAddress(netip.IPv6Loopback()) + " 01 80 10 80       lo\n"
	k.eachNetdev(func(index int, name string, d netdev) {
		for _, a := range d.addresses {
			if a.Addr().Is6() {
				text += fmt.Sprintf("%s %02x %02x 00 80 %8s\n", hexAddress(a.Addr()), index, a.Bits(), name)
			}
		}
	})
	return text, nil
}

// routes6 is /proc/net/ipv6_route, with the default routes alone.
func (k *Kernel) routes6() (text string, err error) {
	none := strings.Repeat("0", 32)
	k.eachNetdev(func(_ int, name string, d netdev) {
		if d.gateway6.IsValid() {
			text += fmt.Sprintf("%s 00 %s 00 %s 00000400 00000001 00000000 00000003 %8s\n", none, none, hexAddress(d.gateway6), name)
		}
	})
	return text, nil
}

func hexAddress(a netip.Addr) string {
	b := a.As16()
	return hex.EncodeToString(b[:])
}
