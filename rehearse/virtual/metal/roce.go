// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"context"
	"net/netip"
	"slices"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/agent/roce"
)

// largestMTU is what the drivers of fast NICs take, bytes.
const largestMTU = 9978

// Addresses is roce.Network.
func (k *Kernel) Addresses(name string) ([]netip.Prefix, error) {
	if list, ok := k.bondAddresses(name); ok {
		return list, nil
	}
	if list, ok := k.vlanAddresses(name); ok {
		return list, nil
	}
	i, err := k.port(name)
	if err != nil {
		return nil, err
	}
	return slices.Clone(k.state(i).addresses), nil
}

// SetLink is roce.Network.
func (k *Kernel) SetLink(name string, mtu int) error {
	if mtu > largestMTU {
		return errkind.New(errkind.Refused, "set MTU %d of %s: out of range", mtu, name).Do("Set an MTU that this NIC can do.")
	}
	return k.change(name, func(d *netdev) { d.up, d.mtu = true, mtu })
}

// Up brings an interface up and leaves its MTU.
func (k *Kernel) Up(name string) error { return k.change(name, func(d *netdev) { d.up = true }) }

// SetAddress is roce.Network.
func (k *Kernel) SetAddress(name string, address netip.Prefix) error {
	return k.change(name, func(d *netdev) {
		if !slices.Contains(d.addresses, address) {
			d.addresses = append(slices.Clone(d.addresses), address)
		}
	})
}

// DropAddress is roce.Network.
func (k *Kernel) DropAddress(name string, address netip.Prefix) error {
	return k.change(name, func(d *netdev) {
		d.addresses = slices.DeleteFunc(slices.Clone(d.addresses), func(a netip.Prefix) bool { return a == address })
	})
}

// Routing is roce.Network.
func (k *Kernel) Routing(name string, r roce.Route) (bool, error) {
	if _, err := k.port(name); err != nil {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.routes[name] == r, nil
}

// SetRouting is roce.Network.
func (k *Kernel) SetRouting(name string, r roce.Route) error {
	if _, err := k.port(name); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.routes == nil {
		k.routes = map[string]roce.Route{}
	}
	k.routes[name] = r
	return nil
}

// SetIPv4 is roce.Network.
func (k *Kernel) SetIPv4(name, setting, value string) error {
	if _, err := k.port(name); err != nil && name != "all" && name != "default" {
		return err
	}
	if !slices.Contains(sysctls, setting) {
		return errkind.New(errkind.Unsupported, "set %s of %s: no such setting", setting, name)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.settings == nil {
		k.settings = map[string]string{}
	}
	k.settings[name+"/"+setting] = value
	return nil
}

// Device is roce.RDMA.
func (k *Kernel) Device(name string) string {
	i, err := k.port(name)
	if err != nil {
		return ""
	}
	p := k.node.shape.ports[i]
	if p.soft && !k.softDevice(i) {
		return ""
	}
	return p.rdma
}

// AddSoft is roce.RDMA. A port has room for the one device that its block asks for.
func (k *Kernel) AddSoft(_ context.Context, device, name string) error {
	i, err := k.port(name)
	if err != nil {
		return err
	}
	if p := k.node.shape.ports[i]; !p.soft || p.rdma != device {
		return errkind.New(errkind.Unsupported, "soft RDMA device %s on %s: not a device of this node", device, name)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.softAdded == nil {
		k.softAdded = map[int]bool{}
	}
	k.softAdded[i] = true
	return nil
}
